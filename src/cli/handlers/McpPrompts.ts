/** `sigil mcp prompts`. */
import type { Input } from "../commands/McpPrompts.ts"
import type { Handler } from "../Handler.ts"
import { printList } from "../SurfaceList.ts"

/** The handler. */
export const handler: Handler<Input> = (input) => printList("prompts", input)

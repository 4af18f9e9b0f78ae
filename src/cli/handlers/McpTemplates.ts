/** `sigil mcp templates`. */
import type { Input } from "../commands/McpTemplates.ts"
import type { Handler } from "../Handler.ts"
import { printList } from "../SurfaceList.ts"

/** The handler. */
export const handler: Handler<Input> = (input) => printList("templates", input)

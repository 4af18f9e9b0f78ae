/** `sigil mcp resources`. */
import type { Input } from "../commands/McpResources.ts"
import type { Handler } from "../Handler.ts"
import { printList } from "../SurfaceList.ts"

/** The handler. */
export const handler: Handler<Input> = (input) => printList("resources", input)

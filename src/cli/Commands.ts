/** The table of commands, in the order of the help. */
import type { Command } from "./CommandSpec.ts"
import * as Doctor from "./commands/Doctor.ts"
import * as Errors from "./commands/Errors.ts"
import * as McpAdd from "./commands/McpAdd.ts"
import * as McpApprove from "./commands/McpApprove.ts"
import * as McpCall from "./commands/McpCall.ts"
import * as McpDisable from "./commands/McpDisable.ts"
import * as McpEnable from "./commands/McpEnable.ts"
import * as McpExplain from "./commands/McpExplain.ts"
import * as McpGet from "./commands/McpGet.ts"
import * as McpList from "./commands/McpList.ts"
import * as McpLogs from "./commands/McpLogs.ts"
import * as McpPending from "./commands/McpPending.ts"
import * as McpReject from "./commands/McpReject.ts"
import * as McpRemove from "./commands/McpRemove.ts"
import * as McpTools from "./commands/McpTools.ts"

/** All commands. */
export const commands: ReadonlyArray<Command> = [
  McpAdd.command,
  McpList.command,
  McpGet.command,
  McpRemove.command,
  McpEnable.command,
  McpDisable.command,
  McpExplain.command,
  McpLogs.command,
  McpPending.command,
  McpApprove.command,
  McpReject.command,
  McpTools.command,
  McpCall.command,
  Doctor.command,
  Errors.command
]

/** Words that begin several commands. */
export interface Group {
  readonly path: ReadonlyArray<string>
  readonly summary: string
  /** The command that the bare words stand for. */
  readonly standsFor: ReadonlyArray<string>
}

/** All groups. */
export const groups: ReadonlyArray<Group> = [
  {
    path: ["mcp"],
    summary: "Declare, approve, inspect and call MCP servers. Alone it is 'sigil mcp list'.",
    standsFor: ["mcp", "list"]
  }
]

/** The table of commands, in the order of the help. */
import type { Command } from "./CommandSpec.ts"
import * as ArtifactList from "./commands/ArtifactList.ts"
import * as ArtifactRm from "./commands/ArtifactRm.ts"
import * as ArtifactShow from "./commands/ArtifactShow.ts"
import * as Completions from "./commands/Completions.ts"
import * as McpComplete from "./commands/McpComplete.ts"
import * as McpPin from "./commands/McpPin.ts"
import * as McpPrompt from "./commands/McpPrompt.ts"
import * as McpPrompts from "./commands/McpPrompts.ts"
import * as McpRead from "./commands/McpRead.ts"
import * as McpResources from "./commands/McpResources.ts"
import * as McpSearch from "./commands/McpSearch.ts"
import * as McpTemplates from "./commands/McpTemplates.ts"
import * as AuditShow from "./commands/AuditShow.ts"
import * as AuditTail from "./commands/AuditTail.ts"
import * as AuditVerify from "./commands/AuditVerify.ts"
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
  McpPin.command,
  McpTools.command,
  McpCall.command,
  McpSearch.command,
  ArtifactList.command,
  ArtifactShow.command,
  ArtifactRm.command,
  McpResources.command,
  McpTemplates.command,
  McpRead.command,
  McpPrompts.command,
  McpPrompt.command,
  McpComplete.command,
  AuditShow.command,
  AuditTail.command,
  AuditVerify.command,
  Doctor.command,
  Errors.command,
  Completions.command
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
  },
  {
    path: ["audit"],
    summary: "Read and verify what was recorded. Alone it is 'sigil audit show'.",
    standsFor: ["audit", "show"]
  },
  {
    path: ["artifact"],
    summary: "Kept results of this workspace. Alone it is 'sigil artifact list'.",
    standsFor: ["artifact", "list"]
  }
]

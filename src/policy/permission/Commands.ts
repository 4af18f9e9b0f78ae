/**
 * `[permission.commands]` for shell-like tools (R section 1.8): deny before ask before allow.
 *
 * Ask and deny tighten whatever else holds; allow answers the mode's ask about running a program and nothing else.
 */
import { decisions } from "../../config/PermissionSettings.ts"
import { type Call, isShell } from "./Call.ts"
import { namesCommand } from "./CommandText.ts"
import type { Ground } from "./Ground.ts"
import type { Policy } from "./Policy.ts"

const strictestFirst = decisions.toReversed()

/** The group that names the command; `undefined` when none does or the tool is no shell. */
export const commandGround = ({ permission }: Policy, call: Call): Ground | undefined => {
  const { command } = call
  if (command === undefined || !isShell(call)) return undefined
  for (const group of strictestFirst) {
    const patterns = permission.commands[group]
    const index = patterns.findIndex((pattern) => namesCommand(pattern, command, group === "allow"))
    if (index < 0) continue
    const where = permission.places[`commands.${group}[${index}]`]
    return {
      verdict: group,
      kind: "commands",
      by: `'${patterns[index]}' in permission.commands.${group}`,
      ...(where === undefined ? {} : { where })
    }
  }
  return undefined
}

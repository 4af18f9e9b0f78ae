/**
 * Patterns over command lines, for `[permission.commands]` and for `Tool(pattern)` of settings.json.
 *
 * Both sides are compared with white space normalised. A pattern that allows is read narrowly: what its wild cards
 * swallow must not join a second command, so the operators of the text must be the pattern's own, in order. Without
 * that, `git *` would allow `git status; rm -rf ~`.
 */
import { glob } from "./Glob.ts"

const operator = /\r|\n|`|\$\(|<\(|>\(|[;&|<>]/g

const operators = (text: string): string => (text.trim().match(operator) ?? []).join(" ")

/** One space between words, none around. */
export const normaliseSpace = (text: string): string => text.trim().replace(/\s+/g, " ")

/** Whether the pattern names the command. `git:*`, as other hosts write it, is every command that begins so. */
export const namesCommand = (pattern: string, command: string, widens: boolean): boolean => {
  const begins = pattern.endsWith(":*") ? normaliseSpace(pattern.slice(0, -2)) : undefined
  const wanted = begins === undefined ? [normaliseSpace(pattern)] : [begins, widens ? `${begins} *` : `${begins}*`]
  const text = normaliseSpace(command)
  return (
    (wanted.some((one) => glob(one, text)) || (!widens && glob(pattern, command))) &&
    (!widens || operators(command) === operators(pattern))
  )
}

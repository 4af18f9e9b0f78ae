/**
 * Finds the file that a command names, the way the child's own environment would (R section 3.4).
 *
 * Absolute path: as it is. More than one path component: relative to the working directory, and it may not
 * leave that directory through a symlink. Otherwise a search along the child's PATH. No shell is involved.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { failureFields } from "../base/Failure.ts"

/** `SIGIL_COMMAND_NOT_FOUND`; reasons `not_found`, `not_executable`, `mcp_command_symlink_escape`. */
export class ExecutableError extends Schema.TaggedError<ExecutableError>("sigil/ExecutableError")(
  "ExecutableError",
  failureFields
) {
  override get message(): string {
    return this.text
  }
}

/** What a lookup needs. */
export interface Lookup {
  readonly command: string
  /** The command as its entry has it, where variables were filled in: what errors say, for the values may be secrets. */
  readonly written?: string
  /** Directory that relative commands start from, absolute. */
  readonly cwd: string
  /** The child's PATH. */
  readonly searchPath: string
  readonly platform: NodeJS.Platform
  /** PATHEXT of the child, Windows only. */
  readonly pathExtensions?: string
}

type Verdict = "ok" | "missing" | "not_executable"

const judge = (file: string, platform: NodeJS.Platform): Verdict => {
  try {
    if (!fs.statSync(file).isFile()) return "not_executable"
    if (platform !== "win32") fs.accessSync(file, fs.constants.X_OK)
    return "ok"
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EACCES" ? "not_executable" : "missing"
  }
}

const fail = (reason: string, text: string, fix?: string): ExecutableError =>
  new ExecutableError({ code: "SIGIL_COMMAND_NOT_FOUND", reason, text, fix, where: { field: "command" } })

/** The absolute path of the executable a command names. */
export const resolve = (lookup: Lookup): Effect.Effect<string, ExecutableError> =>
  Effect.suspend(() => {
    const { command, cwd, platform, written } = lookup
    const extensions =
      platform === "win32" ? ["", ...(lookup.pathExtensions ?? ".COM;.EXE;.BAT;.CMD").split(";")] : [""]
    const named = path.isAbsolute(command)
    if (named || /[/\\]/.test(command)) {
      const file = path.resolve(cwd, command)
      for (const extension of extensions) {
        const verdict = judge(file + extension, platform)
        if (verdict === "missing") continue
        if (verdict === "not_executable") {
          return fail(
            "not_executable",
            `'${written ?? file}' is not an executable file.`,
            "Make it executable (chmod +x), or start it through its interpreter."
          )
        }
        if (!named && leaves(cwd, file + extension)) {
          return fail(
            "mcp_command_symlink_escape",
            `'${written ?? command}' leaves its directory through a symbolic link.`,
            "Give the absolute path."
          )
        }
        return Effect.succeed(file + extension)
      }
      return fail("not_found", `There is no file '${written ?? file}'.`)
    }
    const folders = lookup.searchPath.split(path.delimiter).filter((folder) => path.isAbsolute(folder))
    let refused: string | undefined
    for (const folder of folders) {
      for (const extension of extensions) {
        const file = path.join(folder, command + extension)
        const verdict = judge(file, platform)
        if (verdict === "ok") return Effect.succeed(file)
        if (verdict === "not_executable" && refused === undefined && isFile(file)) refused = file
      }
    }
    return refused === undefined
      ? fail(
          "not_found",
          `The command '${written ?? command}' was not found. PATH searched: ${folders.join(path.delimiter)}`
        )
      : fail(
          "not_executable",
          written === undefined
            ? `'${refused}' was found for '${command}' but is not executable.`
            : `What was found for '${written}' is not executable.`
        )
  })

/** False also where a directory of the search path may not be entered: nothing was found there. */
const isFile = (file: string): boolean => {
  try {
    return fs.statSync(file).isFile()
  } catch {
    return false
  }
}

const leaves = (base: string, file: string): boolean => {
  try {
    const root = fs.realpathSync(base)
    const inside = path.relative(root, path.dirname(fs.realpathSync(file)))
    // A command outside the base as written (../x) is the user's own words; only links may not surprise.
    const written = path.relative(base, path.dirname(file))
    return !written.startsWith("..") && inside.startsWith("..")
  } catch {
    return true
  }
}

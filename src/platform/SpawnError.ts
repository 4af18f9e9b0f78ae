/**
 * Why the operating system did not start a program.
 *
 * The system has one word, ENOENT, for a missing command, a missing working directory and a missing interpreter
 * of a script. The three need different remedies, so they are told apart here by looking again.
 */
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { failureFields } from "../base/Failure.ts"
import { systemCodeOf } from "./FileFault.ts"

/**
 * `SIGIL_COMMAND_NOT_FOUND`: reasons `not_found`, `not_executable`, `interpreter_missing`.
 * `SIGIL_SPAWN_FAILED`: reasons `cwd_missing`, `cwd_unusable`, `bad_format`, `arguments_too_long`,
 * `too_many_processes`, `spawn_failed`.
 */
export class SpawnError extends Schema.TaggedError<SpawnError>("sigil/SpawnError")("SpawnError", failureFields) {
  override get message(): string {
    return this.text
  }
}

type Found = "file" | "directory" | "missing" | "unreachable"

const look = (file: string): Found => {
  try {
    const stat = fs.statSync(file)
    return stat.isDirectory() ? "directory" : "file"
  } catch (error) {
    const code = systemCodeOf(error)
    return code === "ENOENT" || code === "ENOTDIR" ? "missing" : "unreachable"
  }
}

/** The interpreter that the first line of a script names. */
const interpreterOf = (file: string): string | undefined => {
  try {
    const handle = fs.openSync(file, "r")
    try {
      const head = Buffer.alloc(256)
      const text = head.toString("latin1", 0, fs.readSync(handle, head, 0, head.length, 0))
      return /^#![ \t]*([^\s]+)/.exec(text)?.[1]
    } finally {
      fs.closeSync(handle)
    }
  } catch {
    return undefined
  }
}

/** Explains a failed start of `file` in `cwd`. */
export const spawnError = (file: string, cwd: string, error: unknown): SpawnError => {
  const system = systemCodeOf(error)
  const details = system === "" ? {} : { system_code: system }
  const command = (reason: string, text: string, fix?: string): SpawnError =>
    new SpawnError({ code: "SIGIL_COMMAND_NOT_FOUND", reason, text, fix, where: { field: "command" }, details })
  const failed = (reason: string, text: string, fix?: string, field?: string): SpawnError =>
    new SpawnError({
      code: "SIGIL_SPAWN_FAILED",
      reason,
      text,
      fix,
      ...(field === undefined ? {} : { where: { field } }),
      details
    })

  const folder = look(cwd)
  if (folder === "missing") {
    return failed("cwd_missing", `The working directory '${cwd}' does not exist.`, "Create it, or correct cwd.", "cwd")
  }
  if (folder === "file") {
    return failed("cwd_unusable", `The working directory '${cwd}' is not a directory.`, "Correct cwd.", "cwd")
  }
  const program = file.includes("/") || file.includes("\\") ? look(file) : undefined
  if (system === "ENOENT") {
    const interpreter = program === "file" ? interpreterOf(file) : undefined
    if (interpreter !== undefined) {
      return command(
        "interpreter_missing",
        `'${file}' is a script for '${interpreter}', which does not exist.`,
        "Install the interpreter, or correct the first line of the script."
      )
    }
    return command("not_found", `There is no program '${file}'.`)
  }
  if (system === "EACCES" || system === "EPERM") {
    if (program === "directory") return command("not_executable", `'${file}' is a directory, not a program.`)
    if (program === "file" && !mayEnter(cwd)) {
      return failed(
        "cwd_unusable",
        `The working directory '${cwd}' may not be entered.`,
        "Correct its permissions.",
        "cwd"
      )
    }
    return command(
      "not_executable",
      `The system does not allow '${file}' to be executed (${system}).`,
      "Make it executable (chmod +x), or start it through its interpreter."
    )
  }
  if (system === "ENOEXEC") {
    return failed(
      "bad_format",
      `'${file}' is not a program for this system, nor a script with a '#!' line.`,
      "Start it through its interpreter."
    )
  }
  if (system === "E2BIG") {
    return failed("arguments_too_long", `The arguments and variables for '${file}' exceed the system's limit.`)
  }
  if (system === "EAGAIN" || system === "EMFILE" || system === "ENFILE" || system === "ENOMEM") {
    return failed(
      "too_many_processes",
      `The system has no room for another process (${system}).`,
      "End other programs, or raise the limits of processes and open files."
    )
  }
  const said = error instanceof Error ? error.message : String(error)
  return failed("spawn_failed", `The system did not start '${file}': ${said}.`)
}

/**
 * What `file` would fail with; `undefined` when nothing speaks against it.
 *
 * For a program that another program executes: that one can only answer with an exit code.
 */
export const faultBeforehand = (file: string, cwd: string): SpawnError | undefined => {
  try {
    fs.accessSync(file, fs.constants.X_OK)
    const interpreter = interpreterOf(file)
    if (interpreter !== undefined) fs.accessSync(path.resolve(cwd, interpreter))
    return undefined
  } catch (error) {
    return spawnError(file, cwd, error)
  }
}

const mayEnter = (folder: string): boolean => {
  try {
    fs.accessSync(folder, fs.constants.X_OK)
    return true
  } catch {
    return false
  }
}

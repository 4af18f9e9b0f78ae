/** Writes bytes where a person asked for them. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { FileError } from "./FileError.ts"
import { systemCodeOf } from "./FileFault.ts"

const refused = (file: string, reason: string, why: string): FileError =>
  new FileError({ code: "SIGIL_FILE", reason, text: `'${file}' cannot be written: ${why}.`, where: { file } })

/**
 * Whether `writeBytes` can work, asked before the work whose result is to be saved is done: the folder is there, and
 * the name is free, a file or a device. A pipe is refused, because opening it waits for a reader without end.
 */
export const checkTarget = (file: string): Effect.Effect<void, FileError> =>
  Effect.tryPromise({
    try: async () => {
      const found = await fs.stat(file).catch((error: unknown) => {
        if (systemCodeOf(error) === "ENOENT") return undefined
        throw error
      })
      if (found?.isDirectory() === true) throw refused(file, "is_directory", "it is a directory")
      if (found?.isFIFO() === true || found?.isSocket() === true)
        throw refused(file, "not_a_file", "it is a pipe or a socket")
      if (found !== undefined) return fs.access(file, fs.constants.W_OK)
      const folder = path.dirname(file)
      const above = await fs.stat(folder).catch((error: unknown) => {
        if (systemCodeOf(error) === "ENOENT") throw refused(file, "no_folder", `there is no folder '${folder}'`)
        throw error
      })
      if (!above.isDirectory()) throw refused(file, "no_folder", `'${folder}' is not a folder`)
      return fs.access(folder, fs.constants.W_OK)
    },
    catch: (error) =>
      error instanceof FileError ? error : refused(file, "write_failed", systemCodeOf(error) ?? "unknown fault")
  })

/** Writes a file of the user, replacing what was there; nothing is created above it. */
export const writeBytes = (file: string, bytes: Uint8Array): Effect.Effect<void, FileError> =>
  Effect.tryPromise({
    try: () => fs.writeFile(file, bytes),
    catch: (error) =>
      new FileError({
        code: "SIGIL_FILE",
        reason: "write_failed",
        text: `'${file}' cannot be written: ${error instanceof Error ? error.message : "unknown fault"}`,
        where: { file }
      })
  })

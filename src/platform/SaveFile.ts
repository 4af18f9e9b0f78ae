/** Writes bytes where a person asked for them. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs/promises"
import { FileError } from "./FileError.ts"

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

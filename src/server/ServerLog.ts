/**
 * The kept stderr of each server's last generation, for `sigil mcp logs`.
 *
 * One file per server under the workspace's state, private, replaced at the end of a generation. The text is
 * redacted by the caller. Losing a log never fails anything else.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createHash, randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { ensurePrivateDirectory, readText } from "../platform/AtomicFile.ts"
import type { FileError } from "../platform/FileError.ts"
import { fileFault } from "../platform/FileFault.ts"

/** Keeps the last words of servers. */
export class ServerLog extends Context.Tag("sigil/server/ServerLog")<
  ServerLog,
  {
    /** Keeps the redacted stderr of a generation that ended. */
    readonly save: (server: string, text: string) => Effect.Effect<void>
    /** What was kept; `undefined` when the server never ran here. */
    readonly read: (server: string) => Effect.Effect<string | undefined, FileError>
  }
>() {}

/** A file name that is readable, unique and safe for any server name. */
const fileName = (server: string): string => {
  const readable = server.replace(/[^A-Za-z0-9._-]+/g, "_").slice(0, 48)
  return `${readable}-${createHash("sha256").update(server).digest("hex").slice(0, 12)}.log`
}

/** Replaces a log whole. Nobody reads it to write it, and a crash may cost it: no lock, no wait for the disk. */
const write = (file: string, text: string): Effect.Effect<void, FileError> =>
  Effect.zipRight(
    ensurePrivateDirectory(path.dirname(file)),
    Effect.try({
      try: () => {
        const temporary = `${file}.${randomUUID()}.tmp`
        try {
          fs.writeFileSync(temporary, text, { mode: 0o600, flag: "wx" })
          fs.renameSync(temporary, file)
        } finally {
          fs.rmSync(temporary, { force: true })
        }
      },
      catch: (error) => fileFault("written", file, error)
    })
  )

/** Logs in one directory. */
export const layer = (directory: string): Layer.Layer<ServerLog> =>
  Layer.succeed(ServerLog, {
    save: (server, text) =>
      Effect.suspend(() => {
        const file = path.join(directory, fileName(server))
        // Most servers say nothing.
        if (text === "" && !fs.existsSync(file)) return Effect.void
        return write(file, text)
      }).pipe(Effect.catchAll((error) => Effect.logDebug(`The log of server '${server}' was not kept: ${error.text}`))),
    read: (server) => readText(path.join(directory, fileName(server)))
  })

/** Keeps logs in memory. */
export const layerMemory: Layer.Layer<ServerLog> = Layer.sync(ServerLog, () => {
  const kept = new Map<string, string>()
  return {
    save: (server, text) => Effect.sync(() => kept.set(server, text)),
    read: (server) => Effect.sync(() => kept.get(server))
  }
})

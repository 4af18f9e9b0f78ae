/**
 * The directories a server is told of: the workspace, and those that its own arguments name (R section 9.1, K 9.14).
 *
 * A server such as the official file server replaces the directories of its arguments by the roots of its host; with
 * the workspace alone, `server-filesystem /tmp` would refuse the very directory it was declared for. What the entry
 * names the server knows anyway. Roots are data that leaves: they pass the secret gate of their server, and a server
 * that asks for a root which may not leave loses its connection, because it would work on the wrong place.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type { JsonObject } from "../base/Json.ts"
import { fileUri } from "../protocol/FileUri.ts"
import type { ServerRequestHandler } from "./Connection.ts"

/** Existing directories among absolute arguments, links resolved. */
const directoriesIn = (args: ReadonlyArray<string>): ReadonlyArray<string> =>
  args.flatMap((arg) => {
    if (!path.isAbsolute(arg)) return []
    try {
      const real = fs.realpathSync(arg)
      return fs.statSync(real).isDirectory() ? [real] : []
    } catch {
      return []
    }
  })

/** The answer to `roots/list`: the workspace first. */
export const rootsOf = (workspace: string, args: ReadonlyArray<string>): JsonObject => ({
  roots: [...new Set([workspace, ...directoriesIn(args)])].map((directory) => ({
    uri: fileUri(directory),
    name: path.basename(directory) || "workspace"
  }))
})

/** Answers `roots/list`, or refuses and calls `onSecret`. */
export const handler = (
  workspace: string,
  args: ReadonlyArray<string>,
  mayLeave: (payload: JsonObject) => boolean,
  onSecret: () => void
): ServerRequestHandler => {
  const roots = rootsOf(workspace, args)
  return () =>
    Effect.suspend(() => {
      if (mayLeave(roots)) return Effect.succeed(roots)
      onSecret()
      return Effect.fail({ code: -32000, message: "The workspace root may not be disclosed to this server." })
    })
}

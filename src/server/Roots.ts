/**
 * The one root a server is told of: the workspace (R section 9.1, K section 9.14).
 *
 * A root is data that leaves: it passes the secret gate of its server, and a server that asks for a root which may
 * not leave loses its connection, because it would work on the wrong place.
 */
import * as Effect from "effect/Effect"
import * as path from "node:path"
import type { JsonObject } from "../base/Json.ts"
import { fileUri } from "../protocol/FileUri.ts"
import type { ServerRequestHandler } from "./Connection.ts"

/** The answer to `roots/list`. */
export const rootsOf = (workspace: string): JsonObject => ({
  roots: [{ uri: fileUri(workspace), name: path.basename(workspace) || "workspace" }]
})

/** Answers `roots/list`, or refuses and calls `onSecret`. */
export const handler = (
  workspace: string,
  mayLeave: (payload: JsonObject) => boolean,
  onSecret: () => void
): ServerRequestHandler => {
  const roots = rootsOf(workspace)
  return () =>
    Effect.suspend(() => {
      if (mayLeave(roots)) return Effect.succeed(roots)
      onSecret()
      return Effect.fail({ code: -32000, message: "The workspace root may not be disclosed to this server." })
    })
}

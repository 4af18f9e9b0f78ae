/** Whether sigil has a workspace to work in and a state directory it can write. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type { ConfigSnapshot } from "../config/Configuration.ts"
import type { Paths } from "../config/Locations.ts"
import { ensurePrivateDirectory } from "../platform/AtomicFile.ts"
import { type Finding, fine } from "./Check.ts"

/** Really writes a small file: permissions alone say nothing of a full or read-only disk. */
const probe = (directory: string): void => {
  const file = path.join(directory, ".probe")
  try {
    fs.writeFileSync(file, Buffer.alloc(4_096), { mode: 0o600, flag: "w" })
  } finally {
    fs.rmSync(file, { force: true })
  }
}

/** Findings about directories. */
export const checkWorkspace = (snapshot: ConfigSnapshot, paths: Paths): Effect.Effect<ReadonlyArray<Finding>> =>
  Effect.gen(function* () {
    const state = paths.workspaceDirectory(snapshot.workspace)
    const writable = yield* ensurePrivateDirectory(state).pipe(
      Effect.andThen(
        Effect.try({
          try: () => probe(state),
          catch: (error) => (error instanceof Error ? error.message : "it cannot be written")
        })
      ),
      Effect.match({
        onFailure: (error): Finding => ({
          code: "workspace:state",
          subject: state,
          status: "error",
          message: `The state directory cannot be written: ${typeof error === "string" ? error : error.text}`,
          fix: "Make it writable, or set SIGIL_STATE_HOME. Without it no call is made.",
          where: { file: state }
        }),
        onSuccess: () => fine("workspace:state", state, "writable")
      })
    )
    return [
      fine("workspace:root", snapshot.workspace, "servers run here"),
      fine("workspace:project", snapshot.projectIdentity, "approvals belong to this project"),
      writable
    ]
  })

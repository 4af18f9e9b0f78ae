/**
 * The sandbox that `[execution]` asks for, for one server: its layout, and what the system says to it.
 *
 * Asked by the network gate, which needs the proof, and by the gate after it that makes the launch plan; both get the
 * same answer. Where no sandbox is asked for nothing is run.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as path from "node:path"
import { type ConfigSnapshot, writtenWorkspace } from "../../config/Configuration.ts"
import { networkOf } from "../../config/ExecutionSettings.ts"
import type { Paths } from "../../config/Locations.ts"
import type { HostEnvironment } from "../../platform/HostEnvironment.ts"
import type { Receipt, Sandboxes } from "../../platform/Sandbox.ts"

/** Answers for the working directory of a server; `undefined` where the settings ask for no sandbox. */
export type Confine = (snapshot: ConfigSnapshot, cwd: string) => Effect.Effect<Receipt | undefined>

/** The back ends that are known by name only. */
const notBuilt: { readonly [backend: string]: Extract<Receipt, { readonly _tag: "Unavailable" }> } = {
  docker: {
    _tag: "Unavailable",
    reason: "backend_cannot_host_stdio",
    text: "The back end docker cannot host an MCP server on standard streams.",
    fix: 'Set backend = "linux_bubblewrap" in [execution] of sigil.toml.'
  },
  macos_seatbelt: {
    _tag: "Unavailable",
    reason: "backend_not_built",
    text: "The back end macos_seatbelt is not part of this version of sigil.",
    fix: 'Set backend = "linux_bubblewrap" in [execution] of sigil.toml and run sigil on Linux.'
  }
}

/** Sockets that stand for the user: whoever reaches them acts as the user. */
const socketsOf = (host: Context.Tag.Service<typeof HostEnvironment>): ReadonlyArray<string> =>
  ["SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS"].flatMap((name) => {
    const [, found] = /^(?:unix:(?:path=|\/\/)?)?(\/[^:;,]*)/.exec(host.get(name) ?? "") ?? []
    return found === undefined ? [] : [found]
  })

/** Asks `sandboxes` with the settings of a run. */
export const makeConfine =
  (
    host: Context.Tag.Service<typeof HostEnvironment>,
    paths: Paths,
    sandboxes: Context.Tag.Service<typeof Sandboxes>
  ): Confine =>
  ({ settings: { execution, networkMode, workspaceRoot }, workspace }, cwd) =>
    Effect.suspend((): Effect.Effect<Receipt | undefined> => {
      if (execution.strategy === "local") return Effect.succeed(undefined)
      const missing = notBuilt[execution.backend]
      if (missing !== undefined) return Effect.succeed(missing)
      return sandboxes.receipt({
        workspace,
        workspaceWritten: writtenWorkspace(workspaceRoot, paths),
        workspaceAccess: execution.workspace,
        cwd,
        network: networkOf(execution, networkMode),
        homeDirectory: paths.homeDirectory,
        readablePaths: execution.readablePaths,
        writablePaths: execution.writablePaths,
        temporary: ["TMPDIR", "TMP", "TEMP"].flatMap((name) => {
          const value = host.get(name)
          return value !== undefined && path.isAbsolute(value) ? [value] : []
        }),
        privateDirectories: [...new Set([paths.home, paths.stateHome, paths.cacheHome])],
        privateFiles: [paths.sigilToml],
        sockets: socketsOf(host)
      })
    })

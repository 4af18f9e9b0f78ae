/** What exactly would be started: the program, where, and inside which isolation. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as path from "node:path"
import type { ConfigSnapshot } from "../../config/Configuration.ts"
import { inProcessCommand, type ServerDeclaration, type StdioEndpoint } from "../../config/ServerDeclaration.ts"
import { resolve } from "../../platform/Executable.ts"
import type { HostEnvironment } from "../../platform/HostEnvironment.ts"
import { describe, type Launcher, type PidNamespace } from "../../platform/PidNamespace.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known, located, stdioOnly } from "./Gate.ts"

/** Finds the program and makes the launch plan; no other code may make one. */
export const executable =
  (host: Context.Tag.Service<typeof HostEnvironment>, pidNamespace: Context.Tag.Service<typeof PidNamespace>): Gate =>
  (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "executable")
      const expanded = yield* known(state.expanded, "executable")
      const environment = yield* known(state.environment, "executable")
      const endpoint = yield* stdioOnly(declaration, expanded)
      const cwd = workingDirectory(declaration, endpoint, state.facts.snapshot)
      if (declaration.inProcess === true) {
        if (declaration.isolation === "pidns") {
          return yield* isolationUnavailable(declaration, "in_process", "It lives in this process.")
        }
        const label = inProcessCommand(declaration.name)
        state.plan = { _tag: "stdio", file: label, command: label, args: [], cwd, env: {}, graceMs: 0 }
        return "it lives in this process"
      }
      const file = yield* resolve({
        command: endpoint.command,
        cwd,
        searchPath: environment.variables["PATH"] ?? "",
        platform: host.platform,
        ...(environment.variables["PATHEXT"] === undefined ? {} : { pathExtensions: environment.variables["PATHEXT"] })
      }).pipe(
        Effect.mapError(
          (error) =>
            new AdmissionError({
              code: error.code,
              reason: error.reason,
              text: `The server '${declaration.name}' cannot be started: ${error.text}`,
              fix:
                error.fix ?? `Install '${endpoint.command}', or declare '${declaration.name}' with an absolute path.`,
              where: located(declaration, "executable", "command")
            })
        )
      )
      const launcher = declaration.isolation === "pidns" ? yield* launcherFor(declaration, pidNamespace) : undefined
      state.plan = {
        _tag: "stdio",
        file,
        command: endpoint.command,
        args: endpoint.args,
        cwd,
        env: environment.variables,
        graceMs: declaration.shutdownGraceMs,
        ...(launcher === undefined ? {} : { launcher })
      }
      return launcher === undefined ? file : `${file}, ${describe(launcher)}`
    })

const isolationUnavailable = (declaration: ServerDeclaration, reason: string, why: string, fix?: string) =>
  new AdmissionError({
    code: "SIGIL_ISOLATION_UNAVAILABLE",
    reason,
    text: `The server '${declaration.name}' asks for isolation = "pidns", which it cannot have: ${why}`,
    fix: `${fix === undefined ? "Set" : `${fix} Or set`} isolation = "none" for '${declaration.name}'.`,
    where: located(declaration, "executable", "isolation")
  })

/** How a server that wants a PID namespace is started; never without one. */
const launcherFor = (
  declaration: ServerDeclaration,
  pidNamespace: Context.Tag.Service<typeof PidNamespace>
): Effect.Effect<Launcher, AdmissionError> =>
  Effect.flatMap(pidNamespace.receipt, (receipt) =>
    receipt._tag === "Available"
      ? Effect.succeed(receipt.launcher)
      : isolationUnavailable(declaration, receipt.reason, receipt.text, receipt.fix)
  )

/**
 * A written `cwd` counts from the declaring file; otherwise a server runs in the workspace (R section 3.8). A project
 * entry always runs beside its own file: an approval is shared by all directories of a repository, so where sigil was
 * started must not decide which script a relative command names.
 */
const workingDirectory = (declaration: ServerDeclaration, endpoint: StdioEndpoint, snapshot: ConfigSnapshot): string =>
  endpoint.cwd === undefined && declaration.scope !== "project"
    ? snapshot.workspace
    : path.resolve(
        path.isAbsolute(declaration.source.file) ? path.dirname(declaration.source.file) : snapshot.workspace,
        endpoint.cwd ?? "."
      )

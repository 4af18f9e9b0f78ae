/** What exactly would be started or called: the program, where, and inside which isolation; or the address. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { commandStays, directoryStays } from "../../config/PluginPaths.ts"
import { realPath } from "../../config/ProjectIdentity.ts"
import { isInside } from "../../platform/Containment.ts"
import { inProcessCommand, type ServerDeclaration } from "../../config/ServerDeclaration.ts"
import { resolve } from "../../platform/Executable.ts"
import type { HostEnvironment } from "../../platform/HostEnvironment.ts"
import { describe, type Launcher, type PidNamespace } from "../../platform/PidNamespace.ts"
import * as Sandbox from "../../platform/Sandbox.ts"
import * as ProcessCoverage from "../ProcessCoverage.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known, located, workingDirectory } from "./Gate.ts"
import { remotePlan } from "./RemotePlan.ts"

/** Finds the program, or checks the address, and makes the plan; no other code may make one. */
export const executable =
  (host: Context.Tag.Service<typeof HostEnvironment>, pidNamespace: Context.Tag.Service<typeof PidNamespace>): Gate =>
  (state) =>
    Effect.gen(function* () {
      const declaration = yield* known(state.declaration, "executable")
      const expanded = yield* known(state.expanded, "executable")
      const environment = yield* known(state.environment, "executable")
      const { endpoint } = expanded
      if (endpoint._tag === "remote") return yield* remotePlan(state, declaration, endpoint, host)
      const cwd = workingDirectory(declaration, endpoint, state.facts.snapshot)
      if (declaration.inProcess === true) {
        if (declaration.isolation === "pidns") {
          return yield* isolationUnavailable(declaration, "in_process", "It lives in this process.")
        }
        const label = inProcessCommand(declaration.name)
        state.plan = { _tag: "stdio", file: label, command: label, args: [], cwd, env: {}, graceMs: 0 }
        return "it lives in this process"
      }
      yield* fromPlugin(declaration, endpoint.command, cwd)
      const written = declaration.endpoint._tag === "stdio" ? declaration.endpoint.command : endpoint.command
      const file = yield* resolve({
        command: endpoint.command,
        ...(written === endpoint.command ? {} : { written }),
        cwd: declaration.plugin?.root ?? cwd,
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
              fix: error.fix ?? `Install '${written}', or declare '${declaration.name}' with an absolute path.`,
              where: located(declaration, "executable", "command")
            })
        )
      )
      yield* insidePlugin(declaration, file)
      const facts = {
        mode: state.facts.snapshot.settings.networkMode,
        approved: state.facts.networkApproved
      }
      // A path is put in order when it is found, so a secret inside may read differently there.
      const holds =
        written !== endpoint.command && environment.secrets.some((value) => endpoint.command.includes(value))
      const said = holds ? written : file
      const plan = {
        _tag: "stdio" as const,
        file,
        command: endpoint.command,
        args: endpoint.args,
        cwd,
        env: environment.variables,
        graceMs: declaration.shutdownGraceMs
      }
      if (state.sandbox !== undefined) {
        const sandbox = yield* usable(declaration, state.sandbox, file)
        state.plan = { ...plan, launcher: Sandbox.launcherOf(sandbox, environment.variables) }
        state.coverage = ProcessCoverage.sandboxed(facts, sandbox)
        return `${said}, ${Sandbox.describe(sandbox)}`
      }
      const launcher = declaration.isolation === "pidns" ? yield* launcherFor(declaration, pidNamespace) : undefined
      state.plan = { ...plan, ...(launcher === undefined ? {} : { launcher }) }
      state.coverage = ProcessCoverage.outside(facts, launcher !== undefined)
      return launcher === undefined ? said : `${said}, ${describe(launcher)}`
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

/** The sandbox of a server, which has the PID namespace of `isolation` as well; a required one that lacks is fatal. */
const usable = (
  declaration: ServerDeclaration,
  receipt: Sandbox.Receipt,
  file: string
): Effect.Effect<Sandbox.Sandbox, AdmissionError> => {
  const refuse = (reason: string, why: string, fix: string | undefined, field?: string) =>
    new AdmissionError({
      code: "SIGIL_ISOLATION_UNAVAILABLE",
      reason,
      text: `The settings ask for a sandbox ([execution] strategy = "sandbox"), which the server '${declaration.name}' cannot have: ${why}`,
      // A path that is not to be trusted is no reason to go without a sandbox.
      fix:
        field !== undefined && fix !== undefined
          ? fix
          : `${fix === undefined ? "Set" : `${fix} Or set`} strategy = "local" in [execution] of sigil.toml.`,
      where: { ...located(declaration, "executable"), field: field ?? "execution.strategy" }
    })
  if (receipt._tag === "Unavailable") return refuse(receipt.reason, receipt.text, receipt.fix, receipt.field)
  const [lack] = Sandbox.lacks(receipt)
  if (lack !== undefined)
    return refuse("backend_receipt_invalid", `'${receipt.file}' did not prove ${lack}.`, "Update bubblewrap.")
  const hidden = [file, realOf(file)].find((place) => !Sandbox.shows(receipt, place))
  return hidden === undefined
    ? Effect.succeed(receipt)
    : refuse(
        "sandbox_hides_command",
        `its program '${hidden}' stands in a place that the sandbox hides.`,
        "Add the directory of the program, with all that it needs, to readable_paths in [execution] of sigil.toml."
      )
}

const realOf = (file: string): string => {
  try {
    return fs.realpathSync(file)
  } catch {
    return file
  }
}

/** The same rule as at reading, now that variables have their values and links may be others. */
const fromPlugin = (
  declaration: ServerDeclaration,
  command: string,
  cwd: string
): Effect.Effect<void, AdmissionError> => {
  const { endpoint, name, plugin } = declaration
  if (plugin === undefined || endpoint._tag !== "stdio") return Effect.void
  const field = !commandStays(plugin.root, endpoint.command, command)
    ? "command"
    : directoryStays(plugin.root, cwd)
      ? undefined
      : "cwd"
  if (field === undefined) return Effect.void
  return new AdmissionError({
    code: "SIGIL_SCOPE_REFUSED",
    reason: "scope_refused",
    text: `The server '${name}' cannot be started: its ${field} leads out of the directory of its plugin, ${plugin.root}.`,
    fix: `Keep the ${field === "cwd" ? "working directory" : "program"} in the plugin's directory, or declare the server in sigil.toml.`,
    where: located(declaration, "executable", field)
  })
}

/**
 * A program that is written as a plugin's own has to be one: `${PLUGIN_ROOT}/run` may no more leave the directory
 * through a link than `./run` may.
 */
const insidePlugin = (declaration: ServerDeclaration, file: string): Effect.Effect<void, AdmissionError> => {
  const { name, plugin } = declaration
  if (plugin === undefined || !isInside(file, plugin.root) || isInside(realPath(file), plugin.root)) return Effect.void
  return new AdmissionError({
    code: "SIGIL_COMMAND_NOT_FOUND",
    reason: "mcp_command_symlink_escape",
    text: `The server '${name}' cannot be started: '${file}' leaves the plugin's directory through a symbolic link.`,
    fix: "Give the absolute path of the program.",
    where: located(declaration, "executable", "command")
  })
}

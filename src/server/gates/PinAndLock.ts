/**
 * Whether what would be started is what was pinned: the part that can be known before anything runs (R section 3.6).
 *
 * The fingerprint is made of what the entry says, never of a variable's value. With grants it also covers the program's
 * content, because then the program gets to see something of the user's.
 */
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import {
  type Launch,
  launchFingerprint,
  pluginLaunchFingerprint,
  remoteLaunchFingerprint
} from "../../config/Fingerprint.ts"
import type { JsonObject } from "../../base/Json.ts"
import type { RemoteEndpoint, ServerDeclaration, StdioEndpoint } from "../../config/ServerDeclaration.ts"
import * as Pins from "../../policy/Pins.ts"
import type { Plan, StdioPlan } from "../../transport/Transport.ts"
import { isCredentialHeader } from "../RemoteHeaders.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known, located } from "./Gate.ts"

/** SHA-256 of a file in hex. Programs are large: it is read in pieces. */
const contentOf = (file: string): Effect.Effect<string, NodeJS.ErrnoException> =>
  Effect.async((resume) => {
    const hash = createHash("sha256")
    const stream = fs.createReadStream(file, { highWaterMark: 1024 * 1024 })
    stream.on("data", (chunk) => hash.update(chunk))
    stream.on("error", (error) => resume(Effect.fail(error)))
    stream.on("end", () => resume(Effect.succeed(hash.digest("hex"))))
    return Effect.sync(() => stream.destroy())
  })

const realPath = (file: string): string => {
  try {
    return fs.realpathSync(file)
  } catch {
    // The start itself will say what is wrong with it.
    return file
  }
}

const projectionOf = (name: string, raw: JsonObject): JsonObject => {
  const { trust: _, ...entry } = raw
  return { declared_name: name, origin_kind: "plugin", entry }
}

/** The fingerprint of a remote server: what its entry says of where and how it is called, and no variable's value. */
const remoteFingerprintOf = ({ name, plugin, raw }: ServerDeclaration, endpoint: RemoteEndpoint): string =>
  plugin === undefined
    ? remoteLaunchFingerprint({
        ...endpoint,
        headers: Object.entries(endpoint.headers).map(([header, value]) => [
          header,
          isCredentialHeader(header) && !value.includes("${") ? undefined : value
        ]),
        bearerTokenEnvVar: endpoint.bearerTokenEnvVar
      })
    : pluginLaunchFingerprint(projectionOf(name, raw), undefined)

/**
 * The fingerprint of one process (R section 3.4). That of a plugin binds its entry and the program wherever they lie; the
 * entry counts without its trust, which holds the pin itself.
 */
const fingerprintOf = (
  { name, plugin, raw }: ServerDeclaration,
  endpoint: StdioEndpoint,
  plan: StdioPlan,
  grants: ReadonlyArray<string>
): Effect.Effect<string, NodeJS.ErrnoException> => {
  const path = realPath(plan.file)
  if (plugin !== undefined)
    return Effect.map(contentOf(path), (sha256) => pluginLaunchFingerprint(projectionOf(name, raw), sha256))
  const launch = (sha256: string): Launch => ({
    command: endpoint.command,
    args: endpoint.args,
    grants,
    workingDirectory: realPath(plan.cwd),
    cwdWritten: endpoint.cwd !== undefined,
    env: endpoint.env,
    executable: { path, sha256 }
  })
  return grants.length === 0
    ? Effect.succeed(launchFingerprint(launch("")))
    : Effect.map(contentOf(path), (sha256) => launchFingerprint(launch(sha256)))
}

const observe = (
  declaration: ServerDeclaration,
  endpoint: StdioEndpoint | RemoteEndpoint,
  plan: Plan,
  grants: ReadonlyArray<string>
): Effect.Effect<string, NodeJS.ErrnoException> => {
  if (endpoint._tag === "remote") return Effect.succeed(remoteFingerprintOf(declaration, endpoint))
  return plan._tag === "stdio"
    ? fingerprintOf(declaration, endpoint, plan, grants)
    : Effect.dieMessage("a process has the plan of a remote server")
}

/** The error of a pin that does not fit (spec section 12). */
export const mismatch = (
  declaration: ServerDeclaration,
  found: ReadonlyArray<Pins.Difference>,
  operation: "pin_and_lock" | "initialize"
) => ({
  code: "SIGIL_PIN_MISMATCH" as const,
  reason: operation === "initialize" ? "identity_pin" : "launch_pin",
  text: `The server '${declaration.name}' is not what was pinned: ${Pins.describe(found)}.`,
  fix:
    declaration.plugin === undefined
      ? `If you expected this, look at what changed and run 'sigil mcp pin ${declaration.name}'.`
      : "If you expected this, look at what changed and correct trust.pinned in the plugin's manifest.",
  where: { ...located(declaration, "pin_and_lock", "trust.pinned"), operation },
  details: { differences: found }
})

/** Refuses a launch that is not the pinned one; a start that is to find out what to pin passes. */
export const pinAndLock: Gate = (state) =>
  Effect.gen(function* () {
    const declaration = yield* known(state.declaration, "pin_and_lock")
    const environment = yield* known(state.environment, "pin_and_lock")
    const plan = yield* known(state.plan, "pin_and_lock")
    const { pinned } = declaration.trust
    const observing = state.facts.observePin === true
    const { endpoint } = declaration
    if (pinned === undefined && !observing) return "no pin and no lock file"
    const observed = yield* observe(declaration, endpoint, plan, environment.grants).pipe(
      Effect.mapError(
        (error) =>
          new AdmissionError({
            code: "SIGIL_PIN_MISMATCH",
            reason: "program_unreadable",
            text: `The program of server '${declaration.name}' cannot be read to compare it with its pin: ${error.code ?? error.message}.`,
            fix: "Make the program readable for sigil, or take the pin away.",
            where: located(declaration, "pin_and_lock", "command")
          })
      )
    )
    state.launchFingerprint = observed
    if (observing || pinned === undefined) return `launch is ${observed}`
    const found = Pins.differences(pinned, { transportFingerprint: observed })
    if (found.length > 0) return yield* new AdmissionError(mismatch(declaration, found, "pin_and_lock"))
    return `launch is as pinned: ${observed}`
  })

/** `sigil mcp get`: one declaration whole, without a secret. */
import * as Effect from "effect/Effect"
import type { JsonObject } from "../../base/Json.ts"
import { declarationFingerprint, environmentFingerprint } from "../../config/Fingerprint.ts"
import { grantsOf, type ServerDeclaration } from "../../config/ServerDeclaration.ts"
import type { Settings } from "../../config/Settings.ts"
import * as Declarations from "../../runtime/Declarations.ts"
import { externalLabel, wanted } from "../../server/ProcessCoverage.ts"
import type { Input } from "../commands/McpGet.ts"
import type { Handler } from "../Handler.ts"
import { Output } from "../Output.ts"
import { headerNamesOf, HIDDEN, lineOf, serverDocument, shownCommand, shownUrl, transportOf } from "../ServerRow.ts"
import { rowOf, runtimeOptions, snapshot } from "../Session.ts"
import { UsageError } from "../UsageError.ts"

const hidden = (values: { readonly [name: string]: string }): { readonly [name: string]: string } =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, /^\$\{[^}]*\}$/.test(value) ? value : HIDDEN])
  )

/** The entry as it counts, values of variables and headers hidden unless they are references. */
const declarationDocument = (declaration: ServerDeclaration): JsonObject => {
  const { endpoint, trust } = declaration
  const shared = {
    transport: transportOf(endpoint),
    enabled: declaration.enabled,
    startup: declaration.startup,
    required: declaration.required,
    include_tools: declaration.includeTools,
    exclude_tools: declaration.excludeTools,
    trust: {
      trust_class: trust.trustClass,
      approval_default: trust.approvalDefault,
      egress_logging: trust.egressLogging,
      allow_secrets: trust.allowSecrets,
      pin_version: trust.pinVersion
    }
  }
  if (endpoint._tag === "stdio") {
    const [command = "", ...args] = shownCommand(endpoint)
    return {
      ...shared,
      command,
      args,
      ...(endpoint.cwd === undefined ? {} : { cwd: endpoint.cwd }),
      env: hidden(endpoint.env),
      inherit_env: endpoint.inheritEnv,
      public_env: endpoint.publicEnv
    }
  }
  return {
    ...shared,
    url: shownUrl(endpoint),
    headers: hidden(endpoint.headers),
    env_http_headers: endpoint.envHeaders,
    ...(endpoint.bearerTokenEnvVar === undefined ? {} : { bearer_token_env_var: endpoint.bearerTokenEnvVar }),
    client_capabilities: endpoint.clientCapabilities
  }
}

/** What is to confine the process; whether it can is said by the state. */
const coverageOf = (declaration: ServerDeclaration, { execution, networkMode }: Settings): string =>
  declaration.endpoint._tag === "remote"
    ? externalLabel
    : wanted(execution, networkMode, declaration.isolation === "pidns")

const effectiveDocument = (declaration: ServerDeclaration, coverage: string) => ({
  startup_timeout_secs: declaration.startupTimeoutMs / 1_000,
  tool_timeout_secs: declaration.toolTimeoutMs / 1_000,
  on_timeout: declaration.onTimeout,
  restart: declaration.restart,
  timeout_mode: declaration.timeoutMode,
  stdout_noise: declaration.stdoutNoise,
  shutdown_grace_ms: declaration.shutdownGraceMs,
  protocol: declaration.protocol,
  process_coverage: coverage
})

const print = (declaration: ServerDeclaration, coverage: string, server: ReturnType<typeof serverDocument>) =>
  Effect.gen(function* () {
    const output = yield* Output
    const { endpoint, trust } = declaration
    const stdio = endpoint._tag === "stdio" ? endpoint : undefined
    const grants = grantsOf(endpoint)
    const headerNames = endpoint._tag === "remote" ? headerNamesOf(endpoint) : []
    if (output.json) {
      return yield* output.document("get", {
        schema: "sigil.mcp.get/1",
        server,
        declaration: declarationDocument(declaration),
        effective: effectiveDocument(declaration, coverage),
        grants,
        header_names: headerNames,
        fingerprints: {
          approval: declarationFingerprint(declaration),
          environment: environmentFingerprint(grants)
        },
        pin: trust.pinVersion ? (trust.pinned === undefined ? "missing" : "pinned") : "off"
      })
    }
    const facts: ReadonlyArray<readonly [string, string]> = [
      ["Name", declaration.name],
      ["State", server.reason === undefined ? server.state : `${server.state}: ${server.reason.message}`],
      ["Scope", declaration.scope],
      ["Source", `${declaration.source.file}:${declaration.source.line}`],
      ["Transport", transportOf(endpoint)],
      [stdio === undefined ? "URL" : "Command", lineOf({ _tag: "Valid", declaration })],
      ...(stdio === undefined
        ? ([
            ["Headers", headerNames.length === 0 ? "none" : headerNames.join(", ")],
            ["Granted", grants.length === 0 ? "none" : grants.join(", ")]
          ] as const)
        : ([
            ["Directory", stdio.cwd ?? declaration.plugin?.root ?? "the workspace"],
            ["Environment", "isolated"],
            ["Granted", grants.length === 0 ? "none" : grants.join(", ")],
            ["Sets", Object.keys(stdio.env).length === 0 ? "none" : Object.keys(stdio.env).join(", ")]
          ] as const)),
      ["Startup", `${declaration.startup}${declaration.required ? ", required" : ""}`],
      ["Start budget", `${declaration.startupTimeoutMs / 1_000} s`],
      ["Call deadline", `${declaration.toolTimeoutMs / 1_000} s, then ${declaration.onTimeout} the connection`],
      ["Trust", trust.trustClass],
      ["Approval", trust.approvalDefault],
      ["Boundary", coverage],
      ["Secrets", trust.allowSecrets ? "allowed" : "blocked"],
      ["Pin", trust.pinVersion ? "required" : "off"]
    ]
    const width = Math.max(...facts.map(([label]) => label.length))
    yield* output.text(facts.map(([label, value]) => `${label.padEnd(width)}  ${value}`))
    for (const warning of declaration.warnings) yield* output.note(`warning: ${warning}`)
  })

/** The handler. */
export const handler: Handler<Input> = ({ args }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const { entry, state } = yield* rowOf(args.name)
      if (entry._tag === "Broken") return yield* entry.broken.error
      // A server that the user has not accepted is not shown as if it were one (spec section 1).
      if (state.reason !== undefined && (state.state === "pending" || state.state === "rejected")) {
        return yield* new UsageError({
          code: "SIGIL_UNKNOWN_SERVER",
          reason: state.state,
          text: `The server '${args.name}' is ${state.state}, so it does not count: ${state.reason.message}`,
          fix: `See what it would run with 'sigil mcp pending ${args.name}'.`,
          where: { server: args.name, ...entry.declaration.source }
        })
      }
      const { settings } = yield* snapshot
      yield* print(entry.declaration, coverageOf(entry.declaration, settings), serverDocument(entry, state))
      return 0
    }).pipe(Effect.provide(Declarations.layer(run)))
  })

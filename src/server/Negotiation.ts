/**
 * Finding out what a server speaks, and agreeing on it (K sections 9.2 to 9.7).
 *
 * The era belongs to the server: a modern one is found by `server/discover`, everything else gets `initialize`. An
 * answer that says nothing of the era (401, 403, a server fault, a dead network) fails the start instead of deciding
 * it. Some servers die of a question they do not know, and some addresses speak HTTP with two endpoints: both want
 * another connection, which the caller opens.
 */
import * as Effect from "effect/Effect"
import { cut } from "../base/Cut.ts"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { SECOND_MS } from "../base/Units.ts"
import type { ServerDeclaration } from "../config/ServerDeclaration.ts"
import { ErrorCode } from "../protocol/JsonRpc.ts"
import type { Revision } from "../protocol/Revision.ts"
import * as Revisions from "../protocol/Revisions.ts"
import * as Spans from "../telemetry/Spans.ts"
import {
  HEADER_MISMATCH,
  MetaKey,
  MISSING_CAPABILITY,
  type Standing,
  UNSUPPORTED_VERSION
} from "../protocol/Stateless.ts"
import type { Connection } from "./Connection.ts"
import type { Era } from "./EraStore.ts"
import type { RequestOptions } from "./Request.ts"
import { timedOut } from "./RequestFault.ts"
import { type ConnectionError, type RemoteError, StartError } from "./ServerError.ts"

/** Longest wait for an answer to the probe over stdio, ms; a quarter of the budget when that is less (spec section 6). */
export const PROBE_MS = 2 * SECOND_MS

/** What a server says of itself; self-reported, never a reason for a decision. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
}

/** What was agreed on. */
export interface Agreed {
  readonly revision: Revision
  readonly info: ServerInfo
  readonly capabilities: JsonObject
  readonly instructions: string | undefined
}

/** How finding out ended: with an agreement, or with the wish for another connection. */
export type Outcome =
  | { readonly _tag: "Agreed"; readonly agreed: Agreed; readonly era: Era }
  | {
      readonly _tag: "Again"
      readonly era: "handshake" | "sse"
      /** What is to be told when the address does not speak HTTP with two endpoints either. */
      readonly because?: Fault
    }

/** What negotiation knows. */
export interface Facts {
  readonly declaration: ServerDeclaration
  readonly connection: Connection
  /** The way to send a request of the start. */
  readonly ask: Connection["request"]
  readonly standing: Standing
  /** Capabilities for `initialize`. */
  readonly capabilities: JsonObject
  /** What carries the messages. */
  readonly carrier: "stdio" | "streamable_http" | "other"
  /** What is known or wanted beforehand; `undefined` to find out. */
  readonly era: Era | undefined
  /** Milliseconds of the start budget that are left. */
  readonly remaining: () => number
  readonly redact: (text: string) => string
  readonly telemetry: Spans.ConnectionFacts
  /** Hears the version that the server names. */
  readonly onVersion: (version: Json | undefined) => void
}

type Fault = ConnectionError | RemoteError | StartError

/** A word of the server, hidden before it is cut: half of a secret would not be found. */
const word = (value: Json | undefined, redact: (text: string) => string): string =>
  typeof value === "string" ? cut(redact(value), 256) : "unknown"

const infoOf = (info: Json | undefined, redact: (text: string) => string): ServerInfo =>
  isJsonObject(info)
    ? { name: word(own(info, "name"), redact), version: word(own(info, "version"), redact) }
    : { name: "unknown", version: "unknown" }

const textOf = (value: Json | undefined, redact: (text: string) => string): string | undefined =>
  typeof value === "string" ? redact(value) : undefined

const objectOf = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {})

/** Finds out and agrees. */
export const negotiate = (facts: Facts): Effect.Effect<Outcome, Fault> => {
  const { carrier, declaration } = facts
  const wanted = declaration.protocol === "auto" ? undefined : Revisions.find(declaration.protocol)
  const era = wanted === undefined ? facts.era : wanted.era
  if (era === "sse") return handshake(facts, wanted)
  if (era === "handshake" || (carrier === "other" && era !== "stateless")) return handshake(facts, wanted)
  if (wanted !== undefined) {
    return Effect.flatMap(discover(facts, facts.remaining()), (answer) =>
      answer._tag === "Modern" ? Effect.succeed(answer.outcome) : Effect.fail(answer.failure)
    )
  }
  return carrier === "stdio" ? probeStdio(facts) : probeHttp(facts)
}

/** What the answer to `server/discover` says. */
type Discovered =
  | { readonly _tag: "Modern"; readonly outcome: Outcome }
  | { readonly _tag: "Other"; readonly failure: Fault }

/** Asks in the stateless revision; once more when the server corrects the version. */
const discover = (facts: Facts, deadlineMs: number): Effect.Effect<Discovered, Fault> => {
  const { connection, redact } = facts
  const options: RequestOptions = {
    deadlineMs: Math.max(1, deadlineMs),
    operation: "server/discover",
    deadlineField: "startup_timeout_secs",
    cancellable: false,
    onTimeout: "keep",
    quietLate: true
  }
  const ask = (revision: Revision, again: boolean): Effect.Effect<Discovered, Fault> => {
    connection.agree(revision)
    const asked = facts.ask("server/discover", {}, options)
    return Spans.operation(facts.telemetry, "server/discover", asked).pipe(
      Effect.matchEffect({
        onSuccess: (result): Effect.Effect<Discovered, Fault> => {
          const versions = own(result, "supportedVersions")
          const agreed = Array.isArray(versions) ? Revisions.mutual(versions) : undefined
          if (!Array.isArray(versions)) return Effect.succeed({ _tag: "Other", failure: noDiscovery(facts) })
          if (agreed === undefined) {
            const failure = noMutual(facts, versions)
            const handshakes = Revisions.revisions.some(
              ({ era, version }) => era === "handshake" && versions.includes(version)
            )
            return handshakes ? Effect.succeed({ _tag: "Other", failure }) : Effect.fail(failure)
          }
          connection.agree(agreed)
          const meta = objectOf(own(result, "_meta"))
          const outcome: Outcome = {
            _tag: "Agreed",
            era: "stateless",
            agreed: {
              revision: agreed,
              info: infoOf(own(meta, MetaKey.serverInfo) ?? own(result, "serverInfo"), redact),
              capabilities: objectOf(own(result, "capabilities")),
              instructions: textOf(own(result, "instructions"), redact)
            }
          }
          return Effect.succeed({ _tag: "Modern", outcome })
        },
        onFailure: (failure): Effect.Effect<Discovered, Fault> => {
          if (failure._tag !== "RemoteError" || failure.rpcCode !== UNSUPPORTED_VERSION)
            return Effect.succeed({ _tag: "Other", failure })
          const data = failure.rpcData
          const supported = isJsonObject(data) ? own(data, "supported") : undefined
          const versions = Array.isArray(supported) ? supported : []
          const mutual = Revisions.mutual(versions)
          if (mutual !== undefined && !again) return ask(mutual, true)
          return Effect.fail(noMutual(facts, versions))
        }
      })
    )
  }
  return ask(Revisions.stateless, false)
}

/**
 * Over stdio anything but a modern answer means a handshake; a server that died of the question is started once more.
 */
const probeStdio = (facts: Facts): Effect.Effect<Outcome, Fault> =>
  Effect.flatMap(
    discover(facts, Math.min(PROBE_MS, facts.declaration.startupTimeoutMs / 4, facts.remaining())),
    (answer): Effect.Effect<Outcome, Fault> => {
      if (answer._tag === "Modern") return Effect.succeed(answer.outcome)
      const { failure } = answer
      if (facts.connection.terminal() !== undefined) return onceMore(facts, failure)
      const shaken = handshake(facts, undefined)
      return failure.code === "SIGIL_CALL_TIMEOUT" ? Effect.catchAll(shaken, (fault) => woken(facts, fault)) : shaken
    }
  )

/** Another process for a server that may have died of the question; otherwise its end is the failure. */
const onceMore = (facts: Facts, failure: Fault): Effect.Effect<Outcome, Fault> => {
  const reason = facts.connection.terminal()?.end.reason
  return reason !== undefined && mourned.has(reason)
    ? Effect.succeed({ _tag: "Again", era: "handshake" })
    : Effect.fail(failure)
}

/**
 * A server that kept silent may only have been slow to start. It meets the question after all then: it dies of it
 * while the handshake waits, or, being modern, refuses the handshake and is asked again, now that it listens.
 */
const woken = (facts: Facts, failure: Fault): Effect.Effect<Outcome, Fault> => {
  if (facts.connection.terminal() !== undefined) return onceMore(facts, failure)
  if (failure._tag !== "RemoteError") return Effect.fail(failure)
  return Effect.flatMap(discover(facts, facts.remaining()), (answer) =>
    answer._tag === "Modern" ? Effect.succeed(answer.outcome) : Effect.fail(failure)
  )
}

/** Ends that a server may have brought upon itself by a question it did not know. */
const mourned = new Set([
  "connection_closed",
  "stream_closed",
  "missing_newline",
  "write_failed",
  "invalid_json",
  "invalid_jsonrpc_envelope"
])

/**
 * Over HTTP the status says whether the answer is about the era at all. A server that keeps silent has half of the budget.
 */
const probeHttp = (facts: Facts): Effect.Effect<Outcome, Fault> =>
  Effect.flatMap(discover(facts, facts.remaining() / 2), (answer): Effect.Effect<Outcome, Fault> => {
    if (answer._tag === "Modern") return Effect.succeed(answer.outcome)
    const { failure } = answer
    if (facts.connection.terminal() !== undefined) return Effect.fail(failure)
    if (failure._tag === "RemoteError") {
      // A modern server that refuses something else than the version: it has to be told, not asked otherwise.
      return isModern(failure) ? Effect.fail(failure) : initializeHttp(facts)
    }
    if (failure._tag === "StartError") return initializeHttp(facts)
    const status = failure.details?.["http_status"]
    const locked = status === 401 || status === 403 || status === 429
    const refused = typeof status === "number" && status >= 400 && status < 500 && !locked
    // A redirect, a body that cannot be read or a server fault say nothing of the era.
    if (!refused && failure.code !== "SIGIL_CALL_TIMEOUT" && failure.reason !== "unexpected_content_type")
      return Effect.fail(failure)
    // A server without `initialize` is a modern one after all, and what went wrong is what it did to the question.
    return Effect.catchTag(initializeHttp(facts), "RemoteError", (error) =>
      Effect.fail(error.rpcCode === ErrorCode.methodNotFound ? failure : error)
    )
  })

/**
 * `initialize` over one endpoint; an address that knows no such thing may have two (2024-11-05). Whether its refusal
 * comes with a JSON-RPC error does not matter, unless that is one of a newer server.
 */
const initializeHttp = (facts: Facts): Effect.Effect<Outcome, Fault> =>
  Effect.catchAll(handshake(facts, undefined), (failure) => {
    const status = failure.details?.["http_status"]
    const refused = status === 400 || status === 404 || status === 405
    // A server that knows JSON-RPC and not this method has one endpoint and needs no handshake.
    const lacking = failure._tag === "RemoteError" && failure.rpcCode === ErrorCode.methodNotFound
    return facts.connection.terminal() === undefined && refused && !lacking && !isModern(failure)
      ? Effect.succeed<Outcome>({ _tag: "Again", era: "sse", because: failure })
      : Effect.fail(failure)
  })

/** Whether only a server of the stateless revision answers like this. */
export const isModern = (failure: Fault): boolean =>
  failure._tag === "RemoteError" && [HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION].includes(failure.rpcCode)

/** `initialize`, the version check, `notifications/initialized`. */
const handshake = (facts: Facts, wanted: Revision | undefined): Effect.Effect<Outcome, Fault> =>
  Effect.gen(function* () {
    const { capabilities, connection, declaration, redact, remaining, standing } = facts
    const offered = wanted ?? Revisions.newest
    connection.agree(Revisions.unagreed)
    const asked = facts.ask(
      "initialize",
      { protocolVersion: offered.version, capabilities, clientInfo: standing.clientInfo },
      {
        deadlineMs: Math.max(1, remaining()),
        operation: "initialize",
        deadlineField: "startup_timeout_secs",
        cancellable: false
      }
    )
    // Told in the middle of the span, so that it can say which version was agreed on.
    const result = yield* Spans.operation(
      facts.telemetry,
      "initialize",
      Effect.tap(asked, (said) => Effect.sync(() => facts.onVersion(own(said, "protocolVersion"))))
    )
    const answered = own(result, "protocolVersion")
    const revision = typeof answered === "string" ? Revisions.find(answered) : undefined
    const refused = wanted !== undefined && answered !== wanted.version
    if (revision === undefined || revision.era !== "handshake" || refused) {
      const shown = typeof answered === "string" ? `'${cut(redact(answered), 64)}'` : "no version"
      return yield* new StartError({
        code: "SIGIL_PROTOCOL_FAULT",
        reason: "unsupported_protocol_version",
        text: `The server '${declaration.name}' answered protocol version ${shown}; ${
          refused ? `its entry demands ${declaration.protocol}` : `sigil speaks ${Revisions.versionsText}`
        }.`,
        where: { server: declaration.name, operation: "initialize", field: "protocolVersion" }
      })
    }
    connection.agree(revision)
    connection.notify("notifications/initialized")
    yield* acknowledged(facts)
    return {
      _tag: "Agreed",
      era: facts.era === "sse" ? "sse" : "handshake",
      agreed: {
        revision,
        info: infoOf(own(result, "serverInfo"), redact),
        capabilities: objectOf(own(result, "capabilities")),
        instructions: textOf(own(result, "instructions"), redact)
      }
    } satisfies Outcome
  })

/** What follows must find a server that knows that the handshake is over; one that never says so fails the start. */
const acknowledged = ({ connection, declaration, remaining }: Facts): Effect.Effect<void, ConnectionError> =>
  Effect.suspend(() => {
    const operation = "notifications/initialized"
    const ms = Math.max(1, remaining())
    return Effect.timeoutFail(connection.flushed, {
      duration: ms,
      onTimeout: () =>
        timedOut(declaration.name, { deadlineMs: ms, operation, deadlineField: "startup_timeout_secs" }, ms, false)
    })
  })

const noDiscovery = ({ declaration }: Facts): StartError =>
  new StartError({
    code: "SIGIL_PROTOCOL_FAULT",
    reason: "invalid_discovery",
    text: `The server '${declaration.name}' answered 'server/discover' without saying which versions it speaks.`,
    where: { server: declaration.name, operation: "server/discover", field: "supportedVersions" }
  })

const noMutual = ({ declaration, redact }: Facts, versions: ReadonlyArray<unknown>): StartError => {
  const shown = versions
    .filter((version) => typeof version === "string")
    .slice(0, 8)
    .map((version) => cut(redact(version), 32))
  const handshake = Revisions.revisions.find(({ era, version }) => era === "handshake" && versions.includes(version))
  return new StartError({
    code: "SIGIL_PROTOCOL_FAULT",
    reason: "unsupported_protocol_version",
    ...(handshake === undefined
      ? {}
      : {
          fix: `Set protocol = "${handshake.version}" in the entry of '${declaration.name}', so that it is asked for a handshake.`
        }),
    text:
      handshake !== undefined
        ? `The server '${declaration.name}' refuses revision ${Revisions.stateless.version} and names ${shown.join(", ")}, which begin with a handshake.`
        : `The server '${declaration.name}' speaks ${shown.length === 0 ? "no version that it names" : shown.join(", ")}; sigil speaks ${Revisions.versionsText}.`,
    where: { server: declaration.name, operation: "server/discover", field: "supportedVersions" }
  })
}

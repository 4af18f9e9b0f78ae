/**
 * What has to be on the disk, and seen, before a message may leave (R sections 8.10 and 12.6).
 *
 * Each message has a transport authorisation and a disclosure record of its own, written together and durable; the
 * disclosure is shown once per server, route and kind of data. All of it holds origins and fingerprints, never a path,
 * a header value or a body. What does not change between messages is computed once: two records go with every message.
 */
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import type { AuditLog } from "../audit/AuditLog.ts"
import type * as Context from "effect/Context"
import { disclosurePresented, transportAuthorization } from "../audit/AuditEntries.ts"
import { payloadText } from "../audit/AuditRecord.ts"
import type { JsonObject } from "../base/Json.ts"
import type { Random } from "../platform/Random.ts"
import type { Destination } from "./Destination.ts"
import { NetError } from "./NetError.ts"
import { type DataKind, type Disclosure, disclosureText, type Presenter } from "./Presenter.ts"
import type { Route } from "./Proxy.ts"

/** What the records of all clients of a process share. */
export interface Recorder {
  readonly audit: Context.Tag.Service<AuditLog>
  readonly presenter: Context.Tag.Service<Presenter>
  readonly random: Context.Tag.Service<Random>
  /** Id of this run, for records of a profile that brings none. */
  readonly run: string
  /** What was shown already. */
  readonly shown: Set<string>
  /** One presentation at a time, so that none is shown twice. */
  readonly turn: Effect.Semaphore
}

/** What the records of one client say. */
export interface Subject {
  readonly server: string
  readonly surface: string
  readonly run: string | undefined
  readonly destination: Destination
  /** The destination's origin as it may be shown and recorded. */
  readonly shown: string
  readonly route: Route
  /** Everything else that decides where messages go and with which header names; only its fingerprint is recorded. */
  readonly configuration: unknown
}

/** Authorisation, disclosure and record id. */
type Marks = readonly [authorization: string, disclosure: string, record: string]
/** The text of a payload in pieces; a number is the place of that id. */
type Template = ReadonlyArray<string | number>

const fill = (template: Template, ids: Marks): string => {
  let text = ""
  for (const part of template) text += typeof part === "string" ? part : (ids[part] ?? "")
  return text
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Records and shows; returns when a message of this kind may be sent, and fails when it must not. */
export type Authorise = (data: DataKind, call: string | undefined) => Effect.Effect<void, NetError>

/** Prepares the authorisation of one client's messages. */
export const makeAuthorise = (recorder: Recorder, subject: Subject): Authorise => {
  const { audit, presenter, random, shown, turn } = recorder
  const { server, destination, route, shown: origin } = subject
  const proxy = route._tag === "direct" ? undefined : route.proxy.origin
  const sink = sha256(presenter.sink)
  const shared = {
    route_fingerprint: sha256(JSON.stringify([route._tag, destination.origin, proxy ?? null])),
    profile_config_proxy_fingerprint: sha256(JSON.stringify([server, subject.configuration, proxy ?? null])),
    route: route._tag,
    safe_logical_destination: origin,
    safe_transport_destination: proxy ?? origin
  } as const
  // Stand for the ids of one message: random, so that nothing else in a payload reads like them.
  const marks: Marks = [random.uuid(), random.uuid(), random.uuid()]
  const templateOf = (payload: JsonObject): Template => {
    const parts = payloadText(payload).split(new RegExp(`(${marks.join("|")})`))
    return parts.map((part) => {
      const mark = marks.indexOf(part)
      return mark < 0 ? part : mark
    })
  }
  const prepare = (data: DataKind) => {
    const disclosure: Disclosure = {
      server,
      surface: subject.surface,
      destination: origin,
      route: route._tag,
      proxy,
      data
    }
    const key = JSON.stringify([server, shared.route_fingerprint, data])
    const show = turn.withPermits(1)(
      Effect.suspend(() =>
        shown.has(key)
          ? Effect.void
          : Effect.tap(presenter.present(disclosure), () => {
              shown.add(key)
            })
      )
    )
    const fixed = { disclosure_id: marks[1], record_id: marks[2], ...shared }
    const authorised = transportAuthorization({
      server,
      record: {
        root_run_id: subject.run ?? recorder.run,
        authorization_id: marks[0],
        binding_origin: origin,
        ...fixed
      }
    })
    const disclosed = disclosurePresented({
      server,
      record: {
        kind: data,
        correlation_id: marks[0],
        disclosure_content_sha256: sha256(disclosureText(disclosure)),
        sink_fingerprint: sink,
        ...fixed
      }
    })
    return { key, show, authorised: templateOf(authorised.payload), disclosed: templateOf(disclosed.payload) }
  }
  const kinds = new Map<DataKind, ReturnType<typeof prepare>>()

  return (data, call) => {
    let kind = kinds.get(data)
    if (kind === undefined) kinds.set(data, (kind = prepare(data)))
    const { authorised, disclosed, key, show } = kind
    const disclosure = random.uuid()
    const authorization = random.uuid()
    const recorded = audit
      .appendAll([
        {
          kind: "mcp_transport_authorization",
          server,
          call,
          payload: {},
          payloadText: fill(authorised, [authorization, disclosure, random.uuid()])
        },
        {
          kind: "egress_disclosure_presented",
          server,
          call,
          payload: {},
          payloadText: fill(disclosed, [authorization, disclosure, random.uuid()])
        }
      ])
      .pipe(
        Effect.mapError(
          ({ code, reason, text, fix, where, details }) =>
            new NetError({ code, reason, text, fix, where, details, delivered: "no" })
        )
      )
    return shown.has(key) ? recorded : Effect.zipRight(recorded, show)
  }
}

/**
 * What has to be on the disk, and seen, before a message may leave (R sections 8.10 and 12.6).
 *
 * Each message has a transport authorisation and a disclosure record of its own, written together and durable; the
 * disclosure is shown once per server, route and kind of data. All of it holds origins and fingerprints, never a path,
 * a header value or a body. What does not change between messages is computed once.
 */
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import type { AuditLog } from "../audit/AuditLog.ts"
import type * as Context from "effect/Context"
import { disclosurePresented, transportAuthorization } from "../audit/AuditEntries.ts"
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
  readonly route: Route
  /** Everything else that decides where messages go and with which header names; only its fingerprint is recorded. */
  readonly configuration: unknown
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Records and shows; returns when a message of this kind may be sent, and fails when it must not. */
export type Authorise = (data: DataKind, call: string | undefined) => Effect.Effect<void, NetError>

/** Prepares the authorisation of one client's messages. */
export const makeAuthorise = (recorder: Recorder, subject: Subject): Authorise => {
  const { audit, presenter, random, shown, turn } = recorder
  const { server, destination, route } = subject
  const proxy = route._tag === "direct" ? undefined : route.proxy.origin
  const sink = sha256(presenter.sink)
  const shared = {
    route_fingerprint: sha256(JSON.stringify([route._tag, destination.origin, proxy ?? null])),
    profile_config_proxy_fingerprint: sha256(JSON.stringify([server, subject.configuration, proxy ?? null])),
    route: route._tag,
    safe_logical_destination: destination.origin,
    safe_transport_destination: proxy ?? destination.origin
  } as const
  const prepare = (data: DataKind) => {
    const disclosure: Disclosure = {
      server,
      surface: subject.surface,
      destination: destination.origin,
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
    return { key, show, content: sha256(disclosureText(disclosure)) }
  }
  const kinds = new Map<DataKind, ReturnType<typeof prepare>>()

  return (data, call) => {
    let kind = kinds.get(data)
    if (kind === undefined) kinds.set(data, (kind = prepare(data)))
    const { key, show, content } = kind
    const disclosure = random.uuid()
    const authorization = random.uuid()
    const recorded = audit
      .appendAll([
        transportAuthorization({
          server,
          call,
          record: {
            record_id: random.uuid(),
            root_run_id: subject.run ?? recorder.run,
            authorization_id: authorization,
            disclosure_id: disclosure,
            binding_origin: destination.origin,
            ...shared
          }
        }),
        disclosurePresented({
          server,
          call,
          record: {
            record_id: random.uuid(),
            kind: data,
            correlation_id: authorization,
            disclosure_id: disclosure,
            ...shared,
            disclosure_content_sha256: content,
            sink_fingerprint: sink
          }
        })
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

/**
 * The stored answers about project servers: `mcp-approvals.json` (spec section 2, S section 2.3).
 *
 * A file that is missing or damaged means that nothing was decided, so everything is pending. Writes go through
 * the file lock, so two terminals never lose each other's answer.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../base/Json.ts"
import { Locations } from "../config/Locations.ts"
import { readText, update } from "../platform/AtomicFile.ts"
import type { FileError } from "../platform/FileError.ts"
import { type Approvals, emptyApprovals, record } from "./ProjectApproval.ts"

/** What is answered about. */
export interface Answered {
  readonly identity: string
  readonly name: string
  readonly fingerprint: string
  /** `placeInProject` of the declaring file. */
  readonly place: string
  /** The entry with literal values hidden; kept to show a later difference. */
  readonly entry?: JsonObject
}

/** Stored answers. */
export class ApprovalStore extends Context.Tag("sigil/policy/ApprovalStore")<
  ApprovalStore,
  {
    /** All answers; empty when the file is missing or damaged. */
    readonly read: Effect.Effect<Approvals, FileError>
    /** Stores answers in one write. */
    readonly decide: (
      subjects: ReadonlyArray<Answered>,
      decision: "approved" | "rejected"
    ) => Effect.Effect<void, FileError>
    /** Sets the "approve all" flag of a project; with `on` false it is taken back. */
    readonly approveAll: (identity: string, on?: boolean) => Effect.Effect<void, FileError>
  }
>() {}

const Keys = Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] })
const Stored = Schema.parseJson(
  Schema.Struct({
    approved: Keys,
    rejected: Keys,
    approveAllProjects: Keys,
    fingerprints: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.String }), {
      default: () => ({})
    }),
    places: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.String }), {
      default: () => ({})
    }),
    entries: Schema.optionalWith(
      Schema.Record({ key: Schema.String, value: Schema.Record({ key: Schema.String, value: Schema.Unknown }) }),
      { default: () => ({}) }
    )
  })
)
const decode = Schema.decodeUnknownOption(Stored)

const parse = (text: string | undefined): Approvals =>
  text === undefined
    ? emptyApprovals
    : // The values of `entries` came from JSON, so they are JSON objects.
      (Option.getOrElse(decode(text), () => emptyApprovals) as Approvals)

const print = (approvals: Approvals): string => `${JSON.stringify(approvals, undefined, 2)}\n`

const fold = (approvals: Approvals, subjects: ReadonlyArray<Answered>, decision: "approved" | "rejected"): Approvals =>
  subjects.reduce((stored, subject) => record(stored, subject, decision, subject.entry), approvals)

const withAll = (approvals: Approvals, identity: string, on: boolean): Approvals => ({
  ...approvals,
  approveAllProjects: [...approvals.approveAllProjects.filter((other) => other !== identity), ...(on ? [identity] : [])]
})

/** The store in the state directory. */
export const layer: Layer.Layer<ApprovalStore, never, Locations> = Layer.effect(
  ApprovalStore,
  Effect.map(Locations, ({ approvals: file }) => {
    const change = (edit: (stored: Approvals) => Approvals): Effect.Effect<void, FileError> =>
      Effect.asVoid(update(file, (text) => Effect.succeed(print(edit(parse(text))))))
    return {
      read: Effect.map(readText(file), parse),
      decide: (subjects, decision) => change((stored) => fold(stored, subjects, decision)),
      approveAll: (identity, on = true) => change((stored) => withAll(stored, identity, on))
    }
  })
)

/** A store in memory. */
export const layerMemory = (initial: Approvals = emptyApprovals): Layer.Layer<ApprovalStore> =>
  Layer.sync(ApprovalStore, () => {
    let stored = initial
    return {
      read: Effect.sync(() => stored),
      decide: (subjects, decision) =>
        Effect.sync(() => {
          stored = fold(stored, subjects, decision)
        }),
      approveAll: (identity, on = true) =>
        Effect.sync(() => {
          stored = withAll(stored, identity, on)
        })
    }
  })

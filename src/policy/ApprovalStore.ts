/**
 * The stored answers about project servers: `mcp-approvals.json` (spec section 2, S section 2.3).
 *
 * A file that is missing means that nothing was decided. One that is damaged, or that others may have written, does not
 * count either, and is never written over: it may hold rejections. Writes go through the file lock, so two terminals
 * never lose each other's answer.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../base/Json.ts"
import { Locations } from "../config/Locations.ts"
import { readOwnText, update } from "../platform/AtomicFile.ts"
import type { FileError } from "../platform/FileError.ts"
import { fileDamaged } from "../platform/FileFault.ts"
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
    /** All answers; empty when the file is missing. Fails when it cannot be used; then nothing is approved. */
    readonly read: Effect.Effect<Approvals, FileError>
    /** Stores answers in one write. Fails, and writes nothing, when the file cannot be used. */
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

const parse = (file: string, text: string | undefined): Effect.Effect<Approvals, FileError> => {
  if (text === undefined) return Effect.succeed(emptyApprovals)
  const stored = decode(text)
  return Option.isNone(stored)
    ? fileDamaged(file, "the answers about servers")
    : // The values of `entries` came from JSON, so they are JSON objects.
      Effect.succeed(stored.value as Approvals)
}

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
      Effect.asVoid(
        update(file, (text) => Effect.map(parse(file, text), (stored) => print(edit(stored))), { own: true })
      )
    return {
      read: Effect.flatMap(readOwnText(file), (text) => parse(file, text)),
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

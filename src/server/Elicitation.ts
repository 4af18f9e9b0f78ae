/**
 * One request for input from a server, from its parameters to the answer that goes back (MCP elicitation).
 *
 * In this order: mode, form, somebody to ask, their answer, defaults and checks, the secret gate, the record. Nothing
 * leaves before it is recorded, and nothing leaves that does not fit the form or may not leave at all. One form is
 * open at a time; the others wait their turn. A form is open for ten minutes at most, then it counts as cancelled.
 * Whoever reads the server's messages sends the answer, or what the fault says.
 */
import { createHash } from "node:crypto"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { elicitationResolved } from "../audit/AuditEntries.ts"
import type { AuditError } from "../audit/AuditError.ts"
import type { AuditEntry } from "../audit/AuditRecord.ts"
import { clip, escapeLine } from "../base/Display.ts"
import * as CredentialScan from "../policy/CredentialScan.ts"
import { stringify } from "../protocol/Codec.ts"
import type { Form } from "../protocol/Form.ts"
import type { AnswerFault } from "../protocol/FormValue.ts"
import { cleanMessage, MAX_MESSAGE_BYTES, readUrl } from "./ElicitationText.ts"
import type { Elicitor, FormAnswer } from "./Elicitor.ts"
import { ConnectionError } from "./ServerError.ts"

/** How long a form or an address waits for a person (spec section 6). */
export const OPEN_FOR = "10 minutes"
/** Characters of a message in the record (R section 12.5). */
const PREVIEW = 160

/** What the server hears when nobody answered. */
export const CANCEL: JsonObject = { action: "cancel" }

/** The request is refused: the server hears this error, the call goes on. */
export class Rejected extends Data.TaggedError("Rejected")<{
  /** JSON-RPC: -32602 bad form or mode, -32601 nobody answers here, -32000 the one who answers broke. */
  readonly code: -32602 | -32601 | -32000
  /** For the server; holds nothing it did not send. */
  readonly message: string
  /** Names of the fields that nobody answers; empty unless the code is -32601 and the form is sound. */
  readonly fields: ReadonlyArray<string>
}> {}

/** Nobody had an answer that does: the call fails, the server hears `CANCEL`. */
export class Unanswered extends Data.TaggedError("Unanswered")<{
  /** Names of the fields. */
  readonly fields: ReadonlyArray<string>
  /** What is wrong, where more is known than that there is no answer. */
  readonly faults: ReadonlyArray<AnswerFault>
}> {}

/** The answer holds what may not leave for this server: the call fails, the server hears `CANCEL`. */
export class SecretBlocked extends Data.TaggedError("SecretBlocked")<{
  /** Names of the fields that hold it. */
  readonly fields: ReadonlyArray<string>
}> {}

/** The answer could not be recorded, so it is not sent: the call fails, the server hears `CANCEL`. */
export class Unrecorded extends Data.TaggedError("Unrecorded")<{ readonly error: AuditError }> {}

/** Why there is no answer. */
export type ElicitationFault = Rejected | Unanswered | SecretBlocked | Unrecorded

/** What elicitation of one server needs. */
export interface ElicitationOptions {
  /** Exact name of the server. */
  readonly server: string
  /** Whether addresses may be opened at all: `[mcp] elicitation_url`, and declared to this server. */
  readonly urlMode: boolean
  /** The secret gate for this server: whether a value may leave (spec section 9). */
  readonly mayLeave: (value: Json) => boolean
  /** Hides known secrets in what is shown. */
  readonly redact: (text: string) => string
  /** Records an entry; the answer leaves only after it. */
  readonly audit: (entry: AuditEntry) => Effect.Effect<void, AuditError>
  /** Whose turn it is: one permit, shared by everything that asks the same person. Absent: this server's own. */
  readonly turn?: Effect.Semaphore
}

/** Elicitation of one server. */
export interface Elicitation {
  /**
   * Answers `elicitation/create`, or one elicitation of `inputRequests`.
   *
   * @param params As the server sent them.
   * @param elicitor Who answers for the caller; `undefined` when nobody can.
   * @param call Id of the call it belongs to, for the record.
   * @returns The result for the wire: `{action}`, with `content` for an accepted form.
   */
  readonly answer: (
    params: JsonObject,
    elicitor: Elicitor | undefined,
    call?: string
  ) => Effect.Effect<JsonObject, ElicitationFault>
}

const sha256 = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`

const rejected = (code: Rejected["code"], message: string, fields: ReadonlyArray<string> = []): Rejected =>
  new Rejected({ code, message, fields })

const nobody = (fields: ReadonlyArray<string> = []): Rejected =>
  rejected(-32601, "Nobody can answer requests for input here.", fields)

/** The form with every text that is only shown redacted; names, options and defaults are data and stay. */
const redactForm = (form: Form, redact: (text: string) => string): Form => ({
  fields: form.fields.map((field) => ({
    ...field,
    ...(field.title === undefined ? {} : { title: redact(field.title) }),
    ...(field.description === undefined ? {} : { description: redact(field.description) }),
    ...(field.kind !== "string" || field.pattern === undefined
      ? {}
      : { pattern: { ...field.pattern, source: redact(field.pattern.source) } }),
    ...("choices" in field
      ? { choices: field.choices.map(({ title, value }) => ({ value, title: redact(title) })) }
      : {})
  }))
})

/** The fields whose value `bad` finds; all of them when only the whole is bad. */
const fieldsWith = (content: JsonObject, bad: (value: JsonObject) => boolean): ReadonlyArray<string> => {
  const names = Object.keys(content)
  const found = names.filter((name) => bad(Object.fromEntries([[name, own(content, name)]])))
  return found.length === 0 ? names : found
}

/** Texts of an answer that a person typed and that have the form of a well-known credential. */
const holdsCredential =
  (form: Form) =>
  (content: JsonObject): boolean =>
    form.fields.some((field) => {
      const value = own(content, field.name)
      return (
        field.kind === "string" && typeof value === "string" && value !== field.default && CredentialScan.finds(value)
      )
    })

/** Opens for ten minutes at most; a defect of whoever answers is the server's -32000, not the end of the call. */
const opened = <A extends { readonly action: string }>(
  ask: () => Effect.Effect<A>,
  late: A
): Effect.Effect<A, Rejected> =>
  // An elicitor is a library user's code: this is the boundary to it, also for what it does before its first effect.
  Effect.suspend(ask).pipe(
    Effect.timeoutOption(OPEN_FOR),
    Effect.map(Option.getOrElse(() => late)),
    Effect.filterOrDie(isAnswer, () => "an elicitor gave no answer"),
    Effect.catchAllDefect(() => rejected(-32000, "Whoever answers requests for input here failed."))
  )

/** Whether somebody who need not have been checked by a compiler gave an answer at all. */
const isAnswer = (given: unknown): boolean =>
  typeof given === "object" &&
  given !== null &&
  "action" in given &&
  (given.action !== "accept" || !("content" in given) || isJsonObject(given.content)) &&
  (given.action !== "unanswered" || ("fields" in given && Array.isArray(given.fields))) &&
  ["accept", "decline", "cancel", "unanswered"].includes(String(given.action))

/** Elicitation of one server; see `ElicitationOptions`. */
export const make = (options: ElicitationOptions): Elicitation => {
  const { audit, mayLeave, redact, server, urlMode } = options
  const turn = options.turn ?? Effect.unsafeMakeSemaphore(1)

  const shownMessage = (params: JsonObject): Effect.Effect<string, Rejected> => {
    const message = own(params, "message") ?? ""
    if (typeof message !== "string") return rejected(-32602, "'message' is not a text.")
    return Buffer.byteLength(message) > MAX_MESSAGE_BYTES
      ? rejected(-32602, `The message is longer than ${MAX_MESSAGE_BYTES} bytes.`)
      : Effect.succeed(redact(cleanMessage(message)))
  }

  const record = (facts: {
    readonly call: string | undefined
    readonly message: string
    readonly schema: Json
    readonly form: Form
    readonly action: "accepted" | "declined" | "cancelled"
    readonly content?: JsonObject
  }): Effect.Effect<void, Unrecorded> => {
    const names = (fields: Form["fields"]): ReadonlyArray<string> => fields.map(({ name }) => redact(name))
    const preview = facts.message.length > PREVIEW ? `${facts.message.slice(0, PREVIEW)}...` : facts.message
    return audit(
      elicitationResolved({
        server,
        call: facts.call,
        messagePreview: preview,
        messageHash: sha256(facts.message),
        requestedSchemaHash: sha256(stringify(facts.schema)),
        requestedFieldNames: names(facts.form.fields),
        requiredFieldNames: names(facts.form.fields.filter(({ required }) => required)),
        action: facts.action,
        contentFieldNames: Object.keys(facts.content ?? {}).map(redact)
      })
    ).pipe(Effect.mapError((error) => new Unrecorded({ error })))
  }

  /** The content as it may leave, or why it may not. */
  const accept = (form: Form, content: JsonObject): Effect.Effect<JsonObject, Unanswered | SecretBlocked> =>
    Effect.gen(function* () {
      const { complete } = yield* Effect.promise(() => import("../protocol/FormAnswer.ts"))
      const completed = complete(form, content)
      if (Either.isLeft(completed)) {
        const faults = completed.left
        const named = (reason: AnswerFault["reason"]): ReadonlyArray<string> =>
          faults.flatMap((fault) => (fault.reason === reason && fault.field !== undefined ? [fault.field] : []))
        const secret = named("credential")
        if (secret.length > 0) return yield* new SecretBlocked({ fields: secret })
        return yield* new Unanswered({ fields: faults.flatMap(({ field }) => field ?? []), faults })
      }
      const whole = completed.right
      const bad = holdsCredential(form)
      if (bad(whole)) return yield* new SecretBlocked({ fields: fieldsWith(whole, bad) })
      if (!mayLeave(whole)) return yield* new SecretBlocked({ fields: fieldsWith(whole, (value) => !mayLeave(value)) })
      return whole
    })

  const answerForm = (
    params: JsonObject,
    elicitor: Elicitor | undefined,
    call: string | undefined
  ): Effect.Effect<JsonObject, ElicitationFault> =>
    Effect.gen(function* () {
      // Loaded at the first form: most servers never ask.
      const { parseForm } = yield* Effect.promise(() => import("../protocol/FormSchema.ts"))
      const schema = own(params, "requestedSchema")
      const parsed = parseForm(schema)
      if (elicitor === undefined)
        return yield* nobody(Either.isRight(parsed) ? parsed.right.fields.map(({ name }) => name) : [])
      if (Either.isLeft(parsed)) return yield* rejected(-32602, `The form is refused. ${parsed.left.text}`)
      const form = redactForm(parsed.right, redact)
      const message = yield* shownMessage(params)
      const facts = { call, message, schema: schema ?? null, form }
      const late: FormAnswer = { action: "cancel" }
      const given = yield* turn.withPermits(1)(opened(() => elicitor.form({ server, message, form }), late))
      switch (given.action) {
        case "unanswered":
          yield* record({ ...facts, action: "cancelled" })
          return yield* new Unanswered({ fields: given.fields, faults: [] })
        case "decline":
        case "cancel":
          yield* record({ ...facts, action: given.action === "decline" ? "declined" : "cancelled" })
          return { action: given.action }
        case "accept": {
          const content = yield* accept(form, given.content).pipe(
            Effect.tapError(() => record({ ...facts, action: "cancelled" }))
          )
          yield* record({ ...facts, action: "accepted", content })
          return { action: "accept", content }
        }
      }
    })

  const answerUrl = (
    params: JsonObject,
    elicitor: Elicitor | undefined,
    call: string | undefined
  ): Effect.Effect<JsonObject, ElicitationFault> =>
    Effect.gen(function* () {
      if (elicitor === undefined) return yield* nobody()
      const ask = elicitor.url
      if (!urlMode || ask === undefined) return yield* rejected(-32602, "The mode 'url' was not declared.")
      const read = readUrl(own(params, "url"))
      if (read._tag === "Refused") return yield* rejected(-32602, read.text)
      // A secret may not be shown, and an address with a part hidden cannot be opened.
      if (redact(read.url) !== read.url) return yield* rejected(-32602, "The address holds a known secret.")
      const message = yield* shownMessage(params)
      const { host, url, warnings } = read
      const { action } = yield* turn.withPermits(1)(
        opened(() => ask({ server, message, url, host, warnings }), { action: "cancel" as const })
      )
      yield* record({
        call,
        message,
        schema: { mode: "url", url },
        form: { fields: [] },
        action: action === "accept" ? "accepted" : action === "decline" ? "declined" : "cancelled"
      })
      return { action }
    })

  return {
    answer: (params, elicitor, call) => {
      const mode = own(params, "mode") ?? "form"
      if (mode === "form") return answerForm(params, elicitor, call)
      return mode === "url"
        ? answerUrl(params, elicitor, call)
        : rejected(-32602, `The mode ${modeText(mode)} is not known.`)
    }
  }
}

const modeText = (mode: Json): string => (typeof mode === "string" ? `'${clip(escapeLine(mode), 32)}'` : "of that type")

const namesText = (fields: ReadonlyArray<string>): string =>
  fields.map((field) => `'${clip(escapeLine(field), 64)}'`).join(", ")

const unansweredText = ({ faults, fields }: Unanswered): string => {
  const [first] = faults
  const wrong = faults.filter(({ reason }) => reason !== "missing")
  if (first !== undefined && wrong.length > 0)
    return `the answers do not fit: ${wrong
      .map(({ field, text }) => (field === undefined ? text : `${namesText([field])}: ${text}`))
      .join("; ")}.`
  return fields.length === 0 ? "nobody answered it." : `there is no answer for ${namesText(fields)}.`
}

/**
 * The failure of the call whose server asked.
 *
 * @param operation What was under way, e.g. `tools/call`.
 */
export const callFailure = (
  server: string,
  operation: string,
  fault: Exclude<ElicitationFault, Unrecorded>
): ConnectionError => {
  const where = { server, operation }
  if (fault._tag === "SecretBlocked")
    return new ConnectionError({
      code: "SIGIL_SECRET_BLOCKED",
      reason: "secret_in_form",
      text: `The answer for ${namesText(fault.fields)} holds or looks like a secret, so it was not sent to the server '${server}'.`,
      fix: "Do not put credentials into a form. A known secret of yours may be sent with allow_secrets = true for this server.",
      where,
      details: { fields: fault.fields }
    })
  const text =
    fault._tag === "Unanswered"
      ? unansweredText(fault)
      : fault.fields.length === 0
        ? "nobody can answer it here."
        : `nobody can give ${namesText(fault.fields)} here.`
  return new ConnectionError({
    code: "SIGIL_INPUT_REQUIRED",
    reason:
      fault._tag === "Unanswered" && fault.faults.some(({ reason }) => reason !== "missing")
        ? "answer_misfit"
        : "input_required",
    text: `The server '${server}' asked for input during '${operation}', and ${text}`,
    where,
    details: { fields: fault.fields }
  })
}

/** A request for input from its parameters to the answer, or the reason why there is none. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { AuditError } from "../../src/audit/AuditError.ts"
import type { AuditEntry } from "../../src/audit/AuditRecord.ts"
import type { Json, JsonObject } from "../../src/base/Json.ts"
import { stringify } from "../../src/protocol/Codec.ts"
import * as Elicitation from "../../src/server/Elicitation.ts"
import type { Elicitor, FormAnswer, FormRequest, UrlAnswer, UrlRequest } from "../../src/server/Elicitor.ts"

const SECRET = "known-value-4711"

const params = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  message: "Who are you?",
  requestedSchema: { type: "object", properties },
  ...more
})
const named = params({ name: { type: "string" } })

/** Elicitation of a server `shop` with everything that it recorded. */
const shop = (more: Partial<Elicitation.ElicitationOptions> = {}) => {
  const records: Array<AuditEntry> = []
  const elicitation = Elicitation.make({
    server: "shop",
    urlMode: true,
    mayLeave: (value) => !stringify(value).includes(SECRET),
    redact: (text) => text.replaceAll(SECRET, "[hidden]"),
    audit: (entry) => Effect.sync(() => void records.push(entry)),
    ...more
  })
  return { ...elicitation, records }
}

/** Answers every form the same way, and keeps what it was shown. */
const answering = (answer: FormAnswer) => {
  const shown: Array<FormRequest> = []
  const elicitor: Elicitor = { form: (request) => Effect.sync(() => (shown.push(request), answer)) }
  return { elicitor, shown }
}
const accepting = (content: JsonObject) => answering({ action: "accept", content })

/** The fault as plain data. */
const faultOf = (effect: Effect.Effect<JsonObject, Elicitation.ElicitationFault>) =>
  Effect.map(Effect.flip(effect), (fault) => ({ ...fault }))

describe("a form", () => {
  it.effect("is answered with its defaults filled in, and only after the record", () =>
    Effect.gen(function* () {
      const { answer, records } = shop()
      const form = params({ name: { type: "string", default: "John Doe" }, age: { type: "integer" } }, { mode: "form" })
      const result = yield* answer(form, accepting({ age: 3, other: true }).elicitor, "call-1")
      assert.deepEqual(result, { action: "accept", content: { name: "John Doe", age: 3 } })
      assert.lengthOf(records, 1)
      assert.deepInclude(records[0], { kind: "session_entry_recorded", server: "shop", call: "call-1" })
      assert.deepInclude(records[0]?.payload, {
        action: "accepted",
        content_field_names: ["name", "age"],
        content_redacted: true,
        message_preview: "Who are you?",
        requested_field_names: ["name", "age"],
        required_field_names: []
      })
      assert.match(String(records[0]?.payload["requested_schema_hash"]), /^sha256:[0-9a-f]{64}$/)
      assert.notInclude(stringify(records[0]?.payload ?? null), "John")
    })
  )

  it.effect("can be declined and cancelled; both are recorded and carry no content", () =>
    Effect.gen(function* () {
      const { answer, records } = shop()
      for (const action of ["decline", "cancel"] as const)
        assert.deepEqual(yield* answer(named, answering({ action }).elicitor), { action })
      assert.deepEqual(
        records.map(({ payload }) => [payload["action"], payload["content_field_names"]]),
        [
          ["declined", []],
          ["cancelled", []]
        ]
      )
    })
  )

  it.effect("is open for ten minutes, then it is a cancel", () =>
    Effect.gen(function* () {
      const { answer, records } = shop()
      const asked = yield* Deferred.make<void>()
      const elicitor: Elicitor = { form: () => Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never) }
      const fiber = yield* Effect.fork(answer(named, elicitor))
      yield* Deferred.await(asked)
      yield* TestClock.adjust("9 minutes")
      assert.lengthOf(records, 0)
      yield* TestClock.adjust("1 minute")
      assert.deepEqual(yield* Fiber.join(fiber), { action: "cancel" })
      assert.equal(records[0]?.payload["action"], "cancelled")
    })
  )

  it.effect("waits until the one before it is closed, also that of another server", () =>
    Effect.gen(function* () {
      const turn = yield* Effect.makeSemaphore(1)
      const gate = yield* Deferred.make<FormAnswer>()
      const open: Array<string> = []
      const first = yield* Deferred.make<void>()
      const elicitor: Elicitor = {
        form: ({ server }) =>
          Effect.zipRight(
            Effect.zipRight(
              Effect.sync(() => open.push(server)),
              Deferred.succeed(first, undefined)
            ),
            Deferred.await(gate)
          )
      }
      const one = yield* Effect.fork(shop({ turn, server: "one" }).answer(named, elicitor))
      yield* Deferred.await(first)
      const two = yield* Effect.fork(shop({ turn, server: "two" }).answer(named, elicitor))
      yield* TestClock.adjust("1 minute")
      assert.deepEqual(open, ["one"])
      yield* Deferred.succeed(gate, { action: "decline" })
      assert.deepEqual([yield* Fiber.join(one), yield* Fiber.join(two)], [{ action: "decline" }, { action: "decline" }])
      assert.deepEqual(open, ["one", "two"])
    })
  )

  it.effect("frees the turn when its call is interrupted", () =>
    Effect.gen(function* () {
      const { answer } = shop()
      const asked = yield* Deferred.make<void>()
      const fiber = yield* Effect.fork(
        answer(named, { form: () => Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never) })
      )
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(fiber)
      assert.deepEqual(yield* answer(named, accepting({}).elicitor), { action: "accept", content: {} })
    })
  )

  it.effect("is shown without escape codes, addresses and secrets, and with them hidden in titles", () =>
    Effect.gen(function* () {
      const { answer, records } = shop()
      const { elicitor, shown } = accepting({})
      const message = `\u001b]0;title\u0007Go to https://evil.example/x \u001b[31mnow\u001b[0m, \u202eabc ${SECRET}`
      const properties = {
        f: { type: "string", title: `T ${SECRET}`, description: `D ${SECRET}` },
        g: { type: "string", enum: [SECRET] },
        h: { type: "string", pattern: SECRET }
      }
      yield* answer(params(properties, { message }), elicitor)
      assert.equal(shown[0]?.message, "Go to [url omitted] now, abc [hidden]")
      assert.deepInclude(shown[0]?.form.fields[0], { title: "T [hidden]", description: "D [hidden]" })
      assert.deepInclude(shown[0]?.form.fields[1], { choices: [{ value: SECRET, title: "[hidden]" }] })
      const shownPattern = shown[0]?.form.fields[2]
      assert.isTrue(shownPattern?.kind === "string" && shownPattern.pattern?.source === "[hidden]")
      assert.notInclude(stringify(records.map(({ payload }) => payload)), SECRET)
      yield* answer(params({}, { message: "\u001b[2J\u0000" }), elicitor)
      assert.equal(shown[1]?.message, "The server asks for input.")
    })
  )
})

describe("there is no answer", () => {
  it.effect("to a bad form, a bad message or an unknown mode: -32602, and nobody is asked", () =>
    Effect.gen(function* () {
      const { answer, records } = shop()
      const { elicitor, shown } = accepting({})
      const bad: ReadonlyArray<JsonObject> = [
        params({ password: { type: "string" } }),
        params({ f: { type: "object" } }),
        { message: "no schema" },
        params({}, { message: "é".repeat(2_049) }),
        params({}, { message: 1 }),
        params({}, { mode: "voice" })
      ]
      for (const one of bad)
        assert.deepInclude(yield* faultOf(answer(one, elicitor)), { _tag: "Rejected", code: -32602 })
      assert.deepEqual([shown, records], [[], []])
      assert.deepEqual(yield* answer(params({}, { message: "é".repeat(2_048) }), elicitor), {
        action: "accept",
        content: {}
      })
    })
  )

  it.effect("where nobody is: -32601 with the names of the fields", () =>
    Effect.gen(function* () {
      const { answer } = shop()
      assert.deepInclude(yield* faultOf(answer(named, undefined)), { _tag: "Rejected", code: -32601, fields: ["name"] })
      assert.deepInclude(yield* faultOf(answer({ mode: "url" }, undefined)), { code: -32601, fields: [] })
      assert.deepInclude(yield* faultOf(answer({}, undefined)), { code: -32601, fields: [] })
    })
  )

  it.effect("when whoever answers breaks: -32000", () =>
    Effect.gen(function* () {
      const { answer } = shop()
      const fault = yield* faultOf(answer(named, { form: () => Effect.die(`broken ${SECRET}`) }))
      assert.deepInclude(fault, { _tag: "Rejected", code: -32000 })
      assert.notInclude(stringify(fault), SECRET)
      // Programs need not be checked by a compiler.
      const careless: ReadonlyArray<() => unknown> = [
        () => {
          throw new Error("broken before its first effect")
        },
        () => Effect.void,
        () => Effect.succeed({ action: "perhaps" }),
        () => Effect.succeed({ action: "accept", content: "Ada" })
      ]
      for (const form of careless) {
        const given = yield* faultOf(answer(named, { form: form as Elicitor["form"] }))
        assert.deepInclude(given, { _tag: "Rejected", code: -32000 })
      }
    })
  )

  it.effect("when fields stay open or the answer does not fit: the call fails and names them", () =>
    Effect.gen(function* () {
      const { answer, records } = shop()
      const open = answering({ action: "unanswered", fields: ["name"] })
      const unanswered = yield* Effect.flip(answer(named, open.elicitor))
      assert.deepInclude({ ...unanswered }, { _tag: "Unanswered", fields: ["name"], faults: [] })
      const wrong = yield* Effect.flip(
        answer(params({ age: { type: "integer" } }), accepting({ age: "three" }).elicitor)
      )
      if (wrong._tag !== "Unanswered" || unanswered._tag !== "Unanswered") assert.fail("unanswered")
      assert.deepEqual(wrong.fields, ["age"])
      assert.deepEqual(
        records.map(({ payload }) => payload["action"]),
        ["cancelled", "cancelled"]
      )
      const failures = [unanswered, wrong].map((fault) => Elicitation.callFailure("shop", "tools/call", fault))
      assert.deepEqual(
        failures.map(({ code, reason }) => [code, reason]),
        [
          ["SIGIL_INPUT_REQUIRED", "input_required"],
          ["SIGIL_INPUT_REQUIRED", "answer_misfit"]
        ]
      )
      assert.include(failures[0]?.text, "there is no answer for 'name'")
      assert.include(failures[1]?.text, "'age': expected a whole number")
      assert.notInclude(failures[1]?.text, "three")
    })
  )

  it.effect("when it holds a known secret or looks like a credential: the gate names the fields", () =>
    Effect.gen(function* () {
      const { answer, records } = shop()
      const form = params({ a: { type: "string" }, b: { type: "string" } })
      for (const b of [`my ${SECRET}`, "aB3".repeat(11), `ghp_${"a1".repeat(18)}`]) {
        const fault = yield* Effect.flip(answer(form, accepting({ a: "fine", b }).elicitor))
        if (fault._tag !== "SecretBlocked") assert.fail(fault._tag)
        assert.deepEqual(fault.fields, ["b"])
        assert.deepInclude(Elicitation.callFailure("shop", "tools/call", fault), { code: "SIGIL_SECRET_BLOCKED" })
      }
      assert.lengthOf(records, 3)
      assert.deepEqual(
        records.map(({ payload }) => [payload["action"], payload["content_field_names"]]),
        records.map(() => ["cancelled", []])
      )
    })
  )

  it.effect("when it cannot be recorded", () =>
    Effect.gen(function* () {
      const error = new AuditError({ code: "SIGIL_AUDIT_UNWRITABLE", reason: "no_space", text: "full" })
      const { answer } = shop({ audit: () => error })
      const fault = yield* Effect.flip(answer(named, accepting({ name: "Ann" }).elicitor))
      assert.deepInclude({ ...fault }, { _tag: "Unrecorded", error })
    })
  )
})

describe("an address to open", () => {
  const opening = (action: UrlAnswer["action"]) => {
    const shown: Array<UrlRequest> = []
    const elicitor: Elicitor = {
      form: () => Effect.succeed({ action: "cancel" }),
      url: (request) => Effect.sync(() => (shown.push(request), { action }))
    }
    return { elicitor, shown }
  }
  const at = (url: Json): JsonObject => ({
    mode: "url",
    message: "Sign in at https://other.example",
    url,
    elicitationId: "1"
  })

  it.effect("is shown whole, with its host, and accepted without content", () =>
    Effect.gen(function* () {
      const { answer, records } = shop()
      for (const action of ["accept", "decline", "cancel"] as const) {
        const { elicitor, shown } = opening(action)
        assert.deepEqual(yield* answer(at("https://example.com/a?b=c#d"), elicitor), { action })
        assert.deepEqual(shown, [
          {
            server: "shop",
            message: "Sign in at [url omitted]",
            url: "https://example.com/a?b=c#d",
            host: "example.com",
            warnings: []
          }
        ])
      }
      assert.deepEqual(
        records.map(({ payload }) => payload["action"]),
        ["accepted", "declined", "cancelled"]
      )
    })
  )

  it.effect("has warnings for Punycode, bare addresses and ports", () =>
    Effect.gen(function* () {
      const { elicitor, shown } = opening("accept")
      for (const url of ["https://аpple.com/", "https://192.0.2.1/", "https://example.com:8443/"])
        yield* shop().answer(at(url), elicitor)
      assert.equal(shown[0]?.host, "xn--pple-43d.com")
      assert.include(shown[0]?.warnings.join(), "Punycode")
      assert.include(shown[1]?.warnings.join(), "IP address")
      assert.include(shown[2]?.warnings.join(), "8443")
    })
  )

  it.effect("is refused unless it is https, without a user name and without a secret", () =>
    Effect.gen(function* () {
      const { elicitor, shown } = opening("accept")
      const bad: ReadonlyArray<Json> = [
        "http://example.com/",
        "http://127.0.0.1/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://bank.example@evil.example/",
        `https://example.com/?k=${SECRET}`,
        `https://example.com/${"x".repeat(4_096)}`,
        "/relative",
        7
      ]
      for (const url of bad)
        assert.deepInclude(
          yield* faultOf(shop().answer(at(url), elicitor)),
          { _tag: "Rejected", code: -32602 },
          String(url)
        )
      assert.deepEqual(shown, [])
    })
  )

  it.effect("is refused where the mode is not declared or nobody can open any", () =>
    Effect.gen(function* () {
      const { elicitor } = opening("accept")
      const url = at("https://example.com/")
      const off = yield* Effect.either(shop({ urlMode: false }).answer(url, elicitor))
      const unable = yield* Effect.either(shop().answer(url, accepting({}).elicitor))
      for (const one of [off, unable])
        assert.deepInclude(Either.isLeft(one) ? { ...one.left } : {}, { _tag: "Rejected", code: -32602 })
    })
  )
})

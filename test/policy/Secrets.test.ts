import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { LosslessNumber } from "lossless-json"
import type { Json } from "../../src/base/Json.ts"
import { isSecretKey } from "../../src/policy/SecretKeys.ts"
import { PLACEHOLDER } from "../../src/policy/SecretSearch.ts"
import { layer, Secrets } from "../../src/policy/Secrets.ts"

const withSecrets = <A>(values: ReadonlyArray<string>, use: (secrets: Secrets["Type"]) => A) =>
  Effect.gen(function* () {
    const secrets = yield* Secrets
    yield* secrets.register(values)
    return use(secrets)
  }).pipe(Effect.provide(layer))

const SECRET = "s3cret-value"

describe("Secrets", () => {
  it.effect("hides known values in strings and keys, at any depth", () =>
    withSecrets([SECRET], (secrets) => {
      assert.equal(secrets.redactText(`a ${SECRET} b`), `a ${PLACEHOLDER} b`)
      assert.deepEqual(secrets.redactJson({ a: [{ [`k-${SECRET}`]: `x${SECRET}` }], n: 1 }, "schema"), {
        a: [{ [`k-${PLACEHOLDER}`]: `x${PLACEHOLDER}` }],
        n: 1
      })
    })
  )

  it.effect("knows a value that is escaped throughout, in and out", () => {
    const secret = "pä/s's&<k>\"3=y"
    const bytes = [...Buffer.from(secret)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("")
    const units = Array.from({ length: secret.length }, (_, at) => secret.charCodeAt(at).toString(16).padStart(4, "0"))
    const points = [...secret].map((one) => one.codePointAt(0) ?? 0)
    const forms = [
      bytes,
      bytes.toUpperCase(),
      units.map((hex) => `\\u${hex}`).join(""),
      units.map((hex) => `\\u${hex.toUpperCase()}`).join(""),
      points.map((point) => `&#${point};`).join(""),
      points.map((point) => `&#x${point.toString(16)};`).join(""),
      points.map((point) => `&#x${point.toString(16).toUpperCase()};`).join(""),
      "pä&#47;s&#39;s&#38;&#60;k&#62;&#34;3=y",
      "pä&#x2F;s&#x27;s&amp;&lt;k&gt;&quot;3=y",
      "pä&#x2f;s&#x27;s&amp;&lt;k&gt;&quot;3=y",
      "pä&#x2F;s&#39;s&amp;&lt;k&gt;&quot;3&#x3D;y",
      "p&#228;/s's&amp;&lt;k&gt;&quot;3=y"
    ]
    return withSecrets([secret], (secrets) => {
      for (const form of forms) {
        for (const said of [form, JSON.stringify(form).slice(1, -1)]) {
          assert.equal(secrets.redactText(`x ${said} y`), `x ${PLACEHOLDER} y`, said)
          assert.deepEqual(secrets.containsSecret({ a: `x ${said} y` }), { path: "/a" }, said)
        }
      }
    })
  })

  it.effect("returns what holds nothing by identity, also beside what does", () =>
    withSecrets([SECRET], (secrets) => {
      const clean: Json = { a: [1, "x", { b: null }], n: new LosslessNumber("12345678901234567890") }
      assert.strictEqual(secrets.redactJson(clean, "result"), clean)
      const mixed = secrets.redactJson({ clean, bad: SECRET }, "result") as { readonly clean: Json }
      assert.strictEqual(mixed.clean, clean)
    })
  )

  it.effect("hides by key in results only, and only strings", () =>
    withSecrets([], (secrets) => {
      const value = {
        password: "x",
        API_KEY: "x",
        "access-token": "x",
        max_tokens: "5",
        pageToken: "x",
        token: "x",
        secret: "",
        passwd: 5,
        authorization: ["x"],
        privateKey: null
      }
      assert.deepEqual(secrets.redactJson(value, "result"), {
        ...value,
        password: PLACEHOLDER,
        API_KEY: PLACEHOLDER,
        "access-token": PLACEHOLDER
      })
      assert.strictEqual(secrets.redactJson(value, "schema"), value)
      assert.strictEqual(secrets.redactJson(value, "protocol"), value)
    })
  )

  it("knows exactly the nine names, separators and case aside", () => {
    for (const name of [
      "password",
      "PASSWD",
      "secret",
      "client_secret",
      "api-key",
      "Access.Token",
      "refreshToken",
      "Authorization",
      "private key",
      "_api__key_"
    ]) {
      assert.isTrue(isSecretKey(name), name)
    }
    for (const name of [
      "",
      "passwords",
      "mypassword",
      "token",
      "key",
      "progressToken",
      "secrets",
      "secret_id",
      "auth",
      "авторизация"
    ]) {
      assert.isFalse(isSecretKey(name), name)
    }
  })

  it.effect("finds secrets on their way out and says where, without repeating them", () =>
    withSecrets([SECRET], (secrets) => {
      assert.isUndefined(secrets.containsSecret({ a: "b", max_tokens: 5, pageToken: "x" }))
      assert.deepEqual(secrets.containsSecret({ a: ["x", `y${SECRET}`] }), { path: "/a/1" })
      assert.deepEqual(secrets.containsSecret({ "a/b": { "~": SECRET } }), { path: "/a~1b/~0" })
      assert.deepEqual(secrets.containsSecret({ a: { password: "typed" } }), { path: "/a/password" })
      assert.deepEqual(secrets.containsSecret({ a: { [SECRET]: 1 } }), { path: `/a/${PLACEHOLDER}` })
      assert.deepEqual(secrets.containsSecret({ a: Buffer.from(SECRET).toString("base64") }), { path: "/a" })
      assert.deepEqual(secrets.containsSecret(SECRET), { path: "" })
    })
  )

  it.effect("loses no member when hidden keys become the same, and keeps odd keys plain", () =>
    withSecrets([SECRET, "other-secret"], (secrets) => {
      const value = { [SECRET]: 1, "other-secret": 2, [PLACEHOLDER]: 3 }
      assert.deepEqual(secrets.redactJson(value, "result"), { "[hidden]": 1, "[hidden] 2": 2, "[hidden] 3": 3 })
      const odd = secrets.redactJson(JSON.parse(`{"__proto__":{"x":"${SECRET}"},"a":1}`) as Json, "result") as object
      assert.isTrue(Object.hasOwn(odd, "__proto__"))
      assert.equal(JSON.stringify(odd), `{"__proto__":{"x":"${PLACEHOLDER}"},"a":1}`)
    })
  )

  it.effect("notices its own placeholder on the way back, once it has put one into a result", () =>
    withSecrets([SECRET], (secrets) => {
      const args = { file: { content: `key=${PLACEHOLDER}` } }
      assert.isUndefined(secrets.containsPlaceholder(args))
      secrets.redactJson({ a: SECRET }, "schema")
      assert.isUndefined(secrets.containsPlaceholder(args))
      secrets.redactJson({ a: SECRET }, "result")
      assert.deepEqual(secrets.containsPlaceholder(args), { path: "/file/content" })
      assert.isUndefined(secrets.containsPlaceholder({ file: "clean" }))
    })
  )

  it.effect("hides whole what is nested too deep to be looked at", () =>
    withSecrets([SECRET], (secrets) => {
      let value: Json = SECRET
      for (let level = 0; level < 5_000; level += 1) value = [value]
      assert.notInclude(JSON.stringify(secrets.redactJson(value, "result")), SECRET)
      assert.isDefined(secrets.containsSecret(value))
    })
  )

  it.effect("leaves no known value in any JSON, and is done after once", () =>
    withSecrets([SECRET, 'quo"ted', "äöüäöü"], (secrets) => {
      const word = fc.oneof(fc.string(), fc.constantFrom(SECRET, `x${SECRET}y`, 'quo"ted', "äöüäöü"))
      const { tree } = fc.letrec<{ tree: Json }>((tie) => ({
        tree: fc.oneof(
          { maxDepth: 4 },
          word,
          fc.integer(),
          fc.constant(null),
          fc.array(tie("tree"), { maxLength: 4 }),
          fc.dictionary(word, tie("tree"), { maxKeys: 4 })
        )
      }))
      fc.assert(
        fc.property(tree, (value) => {
          const hidden = secrets.redactJson(value, "result")
          const text = JSON.stringify(hidden)
          for (const secret of [SECRET, JSON.stringify('quo"ted').slice(1, -1), "äöüäöü"])
            assert.notInclude(text, secret)
          assert.strictEqual(secrets.redactJson(hidden, "result"), hidden)
        })
      )
    })
  )
})

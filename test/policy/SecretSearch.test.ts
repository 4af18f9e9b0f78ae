import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Json, JsonObject } from "../../src/base/Json.ts"
import { hideAcross } from "../../src/policy/ResultTexts.ts"
import * as SecretBytes from "../../src/policy/SecretBytes.ts"
import * as Egress from "../../src/policy/SecretEgress.ts"
import { formsOf } from "../../src/policy/SecretForms.ts"
import { keyedSpans } from "../../src/policy/SecretKeys.ts"
import { make as makeMatcher } from "../../src/policy/SecretMatcher.ts"
import { make, PLACEHOLDER } from "../../src/policy/SecretSearch.ts"
import { make as makeSecrets } from "../../src/policy/Secrets.ts"
import { make as makeStream } from "../../src/policy/SecretStream.ts"
import * as Spans from "../../src/policy/TextSpans.ts"

const matcherOf = (...values: ReadonlyArray<string>) => {
  const matcher = makeMatcher()
  for (const value of values) matcher.add(value)
  return matcher
}
const searchOf = (...values: ReadonlyArray<string>) => make(matcherOf(...values))
const TOKEN = `ghp_${"aB3".repeat(12)}`

/** The text in pieces at the given places. */
const cutAt = (text: string, places: ReadonlyArray<number>): ReadonlyArray<string> => {
  const cuts = [...new Set(places.map((place) => place % (text.length + 1)))].toSorted((a, b) => a - b)
  return [...cuts, text.length].map((to, index) => text.slice(index === 0 ? 0 : cuts[index - 1], to))
}

const letter = fc.constantFrom("a", "b", "c", "é", "/", '"', "&", " ")
const value = fc.string({ unit: letter, minLength: 6, maxLength: 24 })
/** Values, and a text that holds some of their forms. */
const texts = fc
  .tuple(
    fc.array(value, { minLength: 1, maxLength: 4 }),
    fc.array(fc.tuple(fc.nat(), fc.nat(), fc.string({ unit: letter, maxLength: 8 })), { maxLength: 6 })
  )
  .map(([values, parts]) => {
    const written = parts.map(([which, form, before]) => {
      const forms = formsOf(values[which % values.length] ?? "")
      return before + (forms[form % Math.max(1, forms.length)]?.text ?? "")
    })
    return { values, text: written.join("") }
  })
const isLeft = (text: string, values: ReadonlyArray<string>): boolean =>
  values.some((one) => formsOf(one).some((form) => text.includes(form.text)))

describe("TextSpans", () => {
  const list = fc.array(fc.tuple(fc.nat(40), fc.integer({ min: 1, max: 9 })), { maxLength: 6 }).map((all) => {
    const spans: Array<number> = []
    for (const [start, length] of all.toSorted(([a], [b]) => a - b)) Spans.join(spans, start, start + length)
    return spans
  })
  const marks = (spans: ReadonlyArray<number>): ReadonlyArray<boolean> =>
    Array.from({ length: 60 }, (_, at) =>
      spans.some((start, index) => index % 2 === 0 && at >= start && at < (spans[index + 1] ?? 0))
    )

  it("unites and cuts as marks on each character would", () => {
    fc.assert(
      fc.property(list, list, fc.nat(40), fc.nat(20), (left, right, from, length) => {
        const both = Spans.union(left, right) ?? []
        const [inLeft, inRight] = [marks(left), marks(right)]
        assert.deepEqual(
          marks(both),
          inLeft.map((one, at) => one || inRight[at] === true)
        )
        for (let index = 1; index < both.length; index += 1) assert.isAtLeast(both[index] ?? 0, both[index - 1] ?? 0)
        assert.deepEqual(
          marks(Spans.within(left, from, from + length)).slice(0, length),
          Array.from({ length }, (_, at) => inLeft[from + at] === true)
        )
      })
    )
  })
})

describe("SecretSearch", () => {
  it("leaves no form of any value, is done after once, and grows no text without bound", () => {
    fc.assert(
      fc.property(texts, ({ values, text }) => {
        const { hide, finds } = searchOf(...values)
        const hidden = hide(text)
        assert.isFalse(isLeft(hidden, values), hidden)
        assert.equal(hide(hidden), hidden)
        assert.equal(finds(text), hidden !== text)
        assert.isAtMost(hidden.length, (text.length * PLACEHOLDER.length) / 3 + PLACEHOLDER.length)
      }),
      { numRuns: 500 }
    )
  })

  it("hides the characters of base64 that a value shares with its neighbours", () => {
    const secret = "s3cret-value-x"
    for (const before of ["", "u", "us", "use"]) {
      for (const after of ["", "!", "!!"]) {
        const text = Buffer.from(before + secret + after).toString("base64")
        const hidden = searchOf(secret).hide(`<${text}>`)
        // What is left around it holds no bit of the value: other values of the length give the same rest.
        const other = Buffer.from(before + "X".repeat(secret.length) + after).toString("base64")
        const [left = "", right = ""] = hidden.slice(1, -1).split(PLACEHOLDER)
        assert.isTrue(other.startsWith(left) && other.endsWith(right.replace(/^=+$/, "")), `${text} ${hidden}`)
      }
    }
  })

  it("finds a value in base64 that is broken into lines, as text and as JSON text", () => {
    const secret = "s3cret-value-of-some-length"
    for (let offset = 0; offset < 100; offset += 1) {
      const encoded = Buffer.from(`${"x".repeat(offset)}${secret}${"y".repeat(80)}`).toString("base64")
      for (const width of [60, 64, 76]) {
        for (const lineEnd of ["\n", "\r\n"]) {
          const broken = encoded.replace(new RegExp(`.{${width}}`, "g"), `$&${lineEnd}`)
          for (const text of [broken, `data: ${broken} end`, JSON.stringify({ a: broken })]) {
            const hidden = searchOf(secret).hide(text)
            const left = hidden.replace(/\\r|\\n|[^A-Za-z0-9+/[\]]/g, "")
            assert.include(hidden, PLACEHOLDER)
            assert.isFalse(
              formsOf(secret).some((form) => left.includes(form.text)),
              text
            )
          }
        }
      }
    }
    const words = `${"word".repeat(10)}\n${"list".repeat(10)}\n`
    assert.strictEqual(searchOf(secret).hide(words), words)
  })

  it("knows each end that may be the beginning of a value", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom("a", "b"), minLength: 6, maxLength: 300 }), {
          minLength: 1,
          maxLength: 3
        }),
        fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 40 }),
        fc.nat(),
        (values, before, share) => {
          const first = values[0] ?? ""
          const text = before + first.slice(0, share % first.length)
          const forms = values.flatMap(formsOf).map((form) => form.text)
          const naive = (least: (form: string) => number): number => {
            for (let at = 0; at < text.length; at += 1) {
              const end = text.slice(at)
              if (forms.some((form) => form.length > end.length && end.length >= least(form) && form.startsWith(end)))
                return at
            }
            return text.length
          }
          const matcher = matcherOf(...values)
          assert.equal(
            matcher.openFrom(text, "any"),
            naive(() => 1)
          )
          assert.equal(
            matcher.openFrom(text, "telling"),
            naive((form) => Math.min(6, Math.ceil(form.length / 2)))
          )
        }
      ),
      { numRuns: 300 }
    )
  })
})

describe("SecretStream", () => {
  it("shows no value, however it is cut", () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(), { maxLength: 5 }), ({ values, text }, places) => {
        const push = makeStream(searchOf(...values))
        const shown = cutAt(text, places).map(push)
        assert.isFalse(isLeft(shown.join(""), values), JSON.stringify(shown))
        assert.isFalse(isLeft(shown.join("\n"), values), JSON.stringify(shown))
      }),
      { numRuns: 1_000 }
    )
  })

  it("shows at most the first characters of a value or a token that comes in pieces", () => {
    const secret = "first-part-and-second-part"
    for (const [one, most] of [
      [secret, 5],
      [TOKEN, 11]
    ] as const) {
      for (let size = 1; size < one.length; size += 1) {
        const push = makeStream(searchOf(secret))
        const pieces = one.match(new RegExp(`.{1,${size}}`, "g")) ?? []
        const shown = pieces.map(push).join("").replaceAll(PLACEHOLDER, "")
        assert.isAtMost(shown.length, most, `${size}: ${shown}`)
        assert.equal(push(" done"), " done")
      }
    }
  })

  it("hides a value of several lines that comes line by line, and a key block", () => {
    const secret = "line-one\nline-two\nline-three"
    const push = makeStream(searchOf(secret))
    assert.deepEqual(["say", ...secret.split("\n"), "done"].map(push), [
      "say",
      PLACEHOLDER,
      PLACEHOLDER,
      PLACEHOLDER,
      "done"
    ])
    const block = [
      "-----BEGIN PRIVATE KEY-----",
      "MIIEvQIBADANBgkqhkiG9w0BAQ",
      "EFAASCBKcwggSjAgEAAoIBAQC7",
      "-----END PRIVATE KEY-----"
    ]
    const other = makeStream(searchOf())
    assert.deepEqual([...block, "done"].map(other), [PLACEHOLDER, PLACEHOLDER, PLACEHOLDER, PLACEHOLDER, "done"])
  })

  it("lets texts pass that hold nothing", () => {
    const push = makeStream(searchOf("first-secret"))
    for (const text of ["", "connected", "listening on 127.0.0.1:80", "f", "first", "irst-secret", "ok"]) {
      assert.strictEqual(push(text), text)
    }
  })
})

describe("texts of one answer", () => {
  it("hold no value across them, with nothing or a line between them", () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(), { minLength: 1, maxLength: 5 }), ({ values, text }, places) => {
        const pieces = cutAt(text, places)
        const hidden = hideAcross(pieces, searchOf(...values))
        assert.equal(hidden.length, pieces.length)
        assert.isFalse(isLeft(hidden.join(""), values), JSON.stringify(hidden))
        assert.isFalse(isLeft(hidden.join("\n"), values), JSON.stringify(hidden))
      }),
      { numRuns: 500 }
    )
  })

  it("show the placeholder once where several make a value", () => {
    assert.deepEqual(hideAcross(["a first-", "sec", "ret b", "c"], searchOf("first-secret")), [
      "a [hidden]",
      "",
      " b",
      "c"
    ])
    const clean = ["a", "b"]
    assert.deepEqual(hideAcross(clean, searchOf("first-secret")), clean)
  })
})

describe("bytes", () => {
  it("lose a value of theirs: text by the placeholder, anything else by its length", () => {
    const search = searchOf("s3cret-wörd")
    const text = Buffer.from("key=s3cret-wörd\n")
    assert.equal(Buffer.from(SecretBytes.hide(text.toString("base64"), search), "base64").toString(), "key=[hidden]\n")
    const binary = Buffer.concat([Buffer.from([0, 255]), Buffer.from("s3cret-wörd"), Buffer.from([254])])
    const hidden = Buffer.from(SecretBytes.hide(binary.toString("base64"), search), "base64")
    assert.equal(hidden.length, binary.length)
    assert.equal(hidden.toString("latin1"), `\u0000\u00ff${"*".repeat(12)}\u00fe`)
    for (const clean of ["", "AAAA", "no base64!"]) assert.strictEqual(SecretBytes.hide(clean, search), clean)
    assert.notInclude(SecretBytes.hide("xxs3cret-valuexx", searchOf("s3cret-value")), "s3cret-value")
    assert.equal(SecretBytes.hide("no base64: s3cret-wörd", search), "no base64: [hidden]")
    assert.isTrue(SecretBytes.finds(binary.toString("base64"), search))
    assert.isFalse(SecretBytes.finds("AAAA", search))
  })
})

describe("keys in JSON text", () => {
  const values = (text: string): ReadonlyArray<string> => {
    const spans = keyedSpans(text) ?? []
    return spans.flatMap((from, index) => (index % 2 === 0 ? [text.slice(from, spans[index + 1])] : []))
  }
  it("count as keys of JSON do, and nowhere else", () => {
    assert.deepEqual(values('{"password": "a\\"b", "n": {"api_key":"k"}, "max_tokens":"5","pageToken":"x"}'), [
      'a\\"b',
      "k"
    ])
    assert.deepEqual(values('\n [{"Client-Secret" : "x"}]'), ["x"])
    for (const text of [
      'say "password": "x"',
      '{"password": 5}',
      '{"password":{"type":"string"}}',
      '{"password":""}',
      '{"token":"x"}'
    ])
      assert.deepEqual(values(text), [], text)
  })
})

describe("Secrets of a run", () => {
  const tree = fc.letrec<{ tree: Json }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom("s3cret-value", "x s3cret-value y", "plain", TOKEN),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie("tree"), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom("a", "password", "content", "text", "s3cret-value", "b"), tie("tree"), {
        maxKeys: 4
      })
    )
  })).tree
  const shapeOf = (json: Json): unknown => {
    if (Array.isArray(json)) return (json as ReadonlyArray<Json>).map(shapeOf)
    if (typeof json !== "object" || json === null) return typeof json === "string" ? "text" : json
    return Object.values(json as JsonObject).map((inner) => shapeOf(inner ?? null))
  }

  it("keeps the shape of any JSON, numbers and truth values, and leaves no secret", () => {
    fc.assert(
      fc.property(tree, (json) => {
        const secrets = makeSecrets(matcherOf("s3cret-value"))
        const hidden = secrets.redactJson(json, "result")
        assert.deepEqual(shapeOf(hidden), shapeOf(json))
        const text = JSON.stringify(hidden)
        assert.isFalse(text.includes("s3cret-value") || text.includes(TOKEN), text)
        assert.strictEqual(secrets.redactJson(hidden, "result"), hidden)
      })
    )
  })

  it("refuses its placeholder on the way out only once a result held one, in any spelling", () => {
    const secrets = makeSecrets(matcherOf("s3cret-value"))
    const args = { uri: "file:///a?x=%5bhidden%5D" }
    secrets.redactJson({ a: "s3cret-value" }, "arguments")
    secrets.redactJson({ a: "s3cret-value" }, "schema")
    secrets.redactText("s3cret-value")
    secrets.redactJson({ content: [{ type: "text", text: "clean, with a [hidden] of its own" }] }, "result")
    assert.isUndefined(Egress.keeps(secrets, false, args))
    secrets.redactJson({ content: [{ type: "text", text: "s3cret-value" }] }, "result")
    assert.deepEqual(Egress.keeps(secrets, false, args), { why: "placeholder", path: "/uri" })
    assert.deepEqual(Egress.keeps(secrets, true, { a: ["[hidden]"] }), { why: "placeholder", path: "/a/0" })
    assert.deepEqual(Egress.keeps(secrets, false, { a: "s3cret-value" }), { why: "secret", path: "/a" })
    assert.deepEqual(Egress.keeps(secrets, false, { a: TOKEN }), { why: "secret", path: "/a" })
    assert.isUndefined(Egress.keeps(secrets, true, { a: "s3cret-value" }))
    assert.isUndefined(Egress.keeps(secrets, false, { max_tokens: 5, pageToken: "x", token: "y", hidden: "hidden" }))
  })
})

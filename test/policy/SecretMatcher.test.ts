import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { formsOf } from "../../src/policy/SecretForms.ts"
import { make } from "../../src/policy/SecretMatcher.ts"
import { PLACEHOLDER } from "../../src/policy/SecretSearch.ts"
import * as Spans from "../../src/policy/TextSpans.ts"

const replaceIn = (made: ReturnType<typeof make>, text: string): string =>
  Spans.replace(text, made.spans(text), PLACEHOLDER)
const matcher = (...values: ReadonlyArray<string>) => {
  const made = make()
  for (const value of values) made.add(value)
  return made
}
const hide = (text: string, ...values: ReadonlyArray<string>): string => replaceIn(matcher(...values), text)

/** What the matcher must do, without any cleverness: mark every occurrence of every form, replace each marked run. */
const naive = (text: string, values: ReadonlyArray<string>): string => {
  if (values.some((value) => value.length < 6 && value === text && value !== "")) return PLACEHOLDER
  const spans: Array<[number, number]> = []
  for (const form of values.filter((value) => value.length >= 6).flatMap(formsOf)) {
    for (let at = text.indexOf(form.text); at >= 0; at = text.indexOf(form.text, at + 1)) {
      const end = at + form.text.length
      // In base64 the neighbours hold bits of the value.
      const from = form.before && /[\w+/-]/.test(text[at - 1] ?? "") ? at - 1 : at
      spans.push([from, form.after && /[\w+/-]/.test(text[end] ?? "") ? end + 1 : end])
    }
  }
  spans.sort(([a], [b]) => a - b)
  let out = ""
  let at = 0
  for (let index = 0; index < spans.length;) {
    const [start, first] = spans[index] ?? [0, 0]
    let end = first
    for (index += 1; index < spans.length && (spans[index]?.[0] ?? 0) < end; index += 1)
      end = Math.max(end, spans[index]?.[1] ?? 0)
    out += text.slice(at, start) + PLACEHOLDER
    at = end
  }
  return out + text.slice(at)
}

describe("SecretMatcher", () => {
  it("hides a value in the forms it travels in", () => {
    const secret = 'p&ss "wörd"/+?~'
    const bytes = Buffer.from(secret)
    const forms = [
      secret,
      JSON.stringify(secret).slice(1, -1),
      JSON.stringify(secret).slice(1, -1).replace("ö", "\\u00f6"),
      JSON.stringify(secret).slice(1, -1).replaceAll("/", "\\/"),
      encodeURIComponent(secret),
      encodeURIComponent(secret).replace(/%../g, (one) => one.toLowerCase()),
      new URLSearchParams({ a: secret }).toString().slice(2)
    ]
    for (const form of forms) assert.equal(hide(`x${form}y`, secret), `x${PLACEHOLDER}y`, form)
    for (const before of ["", "u", "us", "user:"]) {
      for (const after of ["", "z", "zz"]) {
        for (const encoding of ["base64", "base64url"] as const) {
          const text = Buffer.concat([Buffer.from(before), bytes, Buffer.from(after)]).toString(encoding)
          assert.include(hide(text, secret), PLACEHOLDER, text)
        }
      }
    }
  })

  it("gives back the very same string when there is nothing to hide", () => {
    const text = "nothing to see here"
    assert.strictEqual(hide(text, "secret-value"), text)
    assert.strictEqual(hide(text), text)
  })

  it("hides the longest, and the tails of those that overlap", () => {
    assert.equal(hide("a secret-one-two b", "secret-one", "secret-one-two"), "a [hidden] b")
    assert.equal(hide("abcdefghijkl!", "abcdefgh", "efghijkl"), "[hidden]!")
    assert.equal(hide("secretsecret", "secret"), "[hidden][hidden]")
    assert.equal(hide("zzzzzzzzzzzz", "zzzzzz"), "[hidden]")
  })

  it("joins several occurrences that a later one overlaps", () => {
    const values = ["abcdefgh", "klmnop", "fghijklmnopqrst"]
    assert.equal(hide("abcdefghijklmnopqrst", ...values), PLACEHOLDER)
  })

  it("hides the longest of values that begin alike, whichever was added first", () => {
    const values = Array.from({ length: 40 }, (_, index) => `abcdef${"a".repeat(index)}`)
    for (const order of [values, values.toReversed()]) {
      const made = matcher(...order)
      for (const value of values) assert.equal(replaceIn(made, `x${value}x`), `x${PLACEHOLDER}x`)
    }
  })

  it("hides short values only where they are the whole string", () => {
    assert.equal(hide("abc", "abc"), PLACEHOLDER)
    assert.equal(hide("xabcx abc", "abc"), "xabcx abc")
    assert.equal(hide("", ""), "")
    assert.isTrue(matcher("abc").finds("abc"))
    assert.isFalse(matcher("abc").finds("abcd"))
  })

  it("takes new values at any time and counts each once", () => {
    const growing = make()
    const text = "first-secret second-secret"
    assert.equal(replaceIn(growing, text), text)
    growing.add("second-secret")
    assert.equal(replaceIn(growing, text), "first-secret [hidden]")
    growing.add("first-secret")
    growing.add("first-secret")
    assert.equal(replaceIn(growing, text), "[hidden] [hidden]")
    assert.equal(growing.size(), 2)
  })

  it("finds values at the edges and in text outside ASCII", () => {
    assert.equal(hide("秘密秘密秘密", "秘密秘密秘密"), PLACEHOLDER)
    assert.equal(hide("🔑🔑🔑🔑x", "🔑🔑🔑🔑"), `${PLACEHOLDER}x`)
    assert.equal(hide("secret-value", "secret-value"), PLACEHOLDER)
    assert.equal(hide("x\ud800secret-\ud800", "secret-\ud800"), `x\ud800${PLACEHOLDER}`)
  })

  it("keeps its word when comparing would cost too much and sums take over", () => {
    const long = `${"a".repeat(2_000)}b`
    const text = `${"a".repeat(60_000)}b${"a".repeat(60_000)}`
    assert.equal(hide(text, long), `${"a".repeat(58_000)}${PLACEHOLDER}${"a".repeat(60_000)}`)
    const periodic = "ab".repeat(500)
    assert.equal(hide(`${"ab".repeat(50_000)}x${periodic.slice(1)}`, periodic), `${PLACEHOLDER}x${periodic.slice(1)}`)
    const near = Array.from({ length: 60 }, (_, index) => `token-${"q".repeat(40)}-${String(index).padStart(4, "0")}`)
    const nearly = near
      .map((one) => `${one.slice(0, -4)}zzzz`)
      .join("")
      .repeat(100)
    assert.equal(hide(nearly + near[7], ...near), nearly + PLACEHOLDER)
  })

  it("does what the naive search does", () => {
    const piece = fc.string({ unit: fc.constantFrom("a", "b", "é", "/", '"'), minLength: 1, maxLength: 9 })
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 5 }),
        fc.array(piece, { maxLength: 12 }),
        fc.infiniteStream(fc.nat(20)),
        (values, pieces, picks) => {
          const forms = values.flatMap(formsOf).map((form) => form.text)
          const text = pieces
            .map((one) => {
              const pick = picks.next().value ?? 0
              return pick % 2 === 0 && forms.length > 0 ? (forms[pick % forms.length] ?? one) : one
            })
            .join("")
          const made = matcher(...values)
          const wanted = naive(text, values)
          assert.equal(replaceIn(made, text), wanted)
          assert.equal(made.finds(text), wanted !== text)
        }
      ),
      { numRuns: 2_000 }
    )
  })

  it("does what the naive search does on long repetitive texts", () => {
    const unit = fc.constantFrom("a", "b")
    const value = fc
      .tuple(fc.string({ unit, minLength: 1, maxLength: 3 }), fc.integer({ min: 1, max: 60 }))
      .map(([one, times]) => one.repeat(times))
    const text = fc
      .array(fc.tuple(fc.string({ unit, minLength: 1, maxLength: 3 }), fc.integer({ min: 1, max: 4_000 })), {
        maxLength: 4
      })
      .map((all) => all.map(([one, times]) => one.repeat(times)).join(""))
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), text, (values, given) => {
        assert.equal(replaceIn(matcher(...values), given), naive(given, values))
      }),
      { numRuns: 100 }
    )
  })
})

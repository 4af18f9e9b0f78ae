import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { ArtifactHandle } from "../../src/base/Ids.ts"
import type { Json, JsonObject } from "../../src/base/Json.ts"
import { own } from "../../src/base/Json.ts"
import { parse } from "../../src/protocol/Codec.ts"
import {
  defaultLimits,
  type Keep,
  type Limits,
  limitsFrom,
  noLimits,
  onlyBinary,
  show
} from "../../src/tools/Result.ts"
import * as Tokens from "../../src/tools/Tokens.ts"

const keeper = () => {
  const kept: Array<{ readonly bytes: Uint8Array; readonly extension: string }> = []
  const keep: Keep = (bytes, extension) =>
    Effect.sync(() => {
      kept.push({ bytes, extension })
      return { handle: ArtifactHandle(`h${kept.length}`), path: `/a/h${kept.length}`, bytes: bytes.byteLength }
    })
  return { kept, keep }
}

const shown = (result: JsonObject, limits: Limits = defaultLimits, escape = true) => {
  const { kept, keep } = keeper()
  return { ...Effect.runSync(show(result, { limits, escape, keep })), kept }
}
const text = (value: string): JsonObject => ({ type: "text", text: value })
const png = Buffer.from("fake image").toString("base64")

describe("Result", () => {
  it("joins texts and keeps what a block carries beside them", () => {
    const block = { ...text("one"), annotations: { audience: ["user"] }, "x-new": 1 }
    const found = shown({ content: [block, text("two")] })
    assert.equal(found.text, "one\ntwo")
    assert.deepEqual(found.content, [block, text("two")])
    assert.isFalse(found.truncated)
    assert.equal(found.returnedBytes, found.totalBytes)
    assert.deepEqual(found.kept, [])
  })

  it("accepts what old servers send", () => {
    assert.equal(shown({ content: "plain" }).text, "plain")
    assert.equal(shown({}).text, "")
    assert.equal(shown({ content: [null, 3, text("x")] } as JsonObject).text, "x")
  })

  it("tells what of an answer is not as it should be", () => {
    const warned = (result: JsonObject) => shown(result).warnings
    assert.deepEqual(warned({ content: [text("x"), { type: "image", mimeType: "image/png", data: "aGk=" }] }), [])
    assert.deepEqual(warned({ structuredContent: {} }), [])
    assert.match(warned({}).join(), /no content/)
    assert.match(warned({ content: 1 }).join(), /not a list/)
    assert.match(warned({ content: [null, 1, text("x")] }).join(), /^2 entries/)
    assert.match(warned({ content: [{ type: "text", text: 5 }] }).join(), /block 1 is a text without a text/)
    assert.match(warned({ content: [{ type: "audio", mimeType: "a/b", data: "!!not base64" }] }).join(), /base64/)
  })

  it("never loses isError and never makes it up", () => {
    assert.isTrue(shown({ content: [text("x".repeat(100_000))], isError: true }).isError)
    assert.isTrue(shown({ isError: true }).isError)
    // A mark of a wrong type is not lost either; what says "no" stays no.
    for (const mark of ["true", 1, {}]) assert.isTrue(shown({ content: [text("x")], isError: mark }).isError)
    for (const mark of [false, null]) assert.isFalse(shown({ content: [text("isError")], isError: mark }).isError)
    assert.isFalse(shown({ content: [text("isError")] }).isError)
  })

  it("shows media as one line, keeps the bytes and shows no base64", () => {
    const found = shown({
      content: [
        { type: "image", data: png, mimeType: "image/png" },
        { type: "audio", data: png, mimeType: "audio/wav" }
      ]
    })
    assert.equal(found.text, "[image image/png, 10 bytes, artifact h1]\n[audio audio/wav, 10 bytes, artifact h2]")
    assert.deepEqual(found.content[0], {
      type: "image",
      mime_type: "image/png",
      bytes: 10,
      artifact: { handle: "h1", path: "/a/h1", bytes: 10 }
    })
    assert.deepEqual(
      found.kept.map(({ extension }) => extension),
      ["png", "wav"]
    )
    assert.equal(Buffer.from(found.kept[0]?.bytes ?? []).toString(), "fake image")
    assert.notInclude(JSON.stringify(found.content), png)
  })

  it("keeps embedded resources: the text of one, the bytes of the other", () => {
    const found = shown({
      content: [
        { type: "resource", resource: { uri: "file:///a", mimeType: "text/plain", text: "inside" } },
        { type: "resource", resource: { uri: "file:///b", mimeType: "application/pdf", blob: png } }
      ]
    })
    assert.equal(found.text, "inside\n[resource file:///b application/pdf, 10 bytes, artifact h1]")
    assert.deepEqual(own(found.content[1] ?? {}, "resource"), {
      uri: "file:///b",
      mime_type: "application/pdf",
      bytes: 10,
      artifact: { handle: "h1", path: "/a/h1", bytes: 10 }
    })
  })

  it("keeps links and unknown blocks, those without their base64", () => {
    const link = { type: "resource_link", uri: "file:///a", name: "A", description: "the file" }
    const odd = { type: "hologram", data: "A".repeat(10_000), hint: 1 }
    const found = shown({ content: [link, odd] })
    assert.equal(
      found.text,
      '[resource link A file:///a: the file]\n{"type":"hologram","data":"[10000 characters]","hint":1}'
    )
    assert.deepEqual(found.content[0], link)
  })

  it("shows structured content once when the text says the same, and both when they differ", () => {
    const structured = { b: [1, { c: null }], a: "x" }
    const same = shown({ content: [text('{ "a": "x", "b": [1, {"c": null}] }')], structuredContent: structured })
    assert.isUndefined(same.structuredContent)
    assert.notInclude(same.text, "\n")
    const other = shown({ content: [text("a summary")], structuredContent: structured })
    assert.deepEqual(other.structuredContent, structured)
    assert.equal(other.text, `a summary\n${JSON.stringify(structured, undefined, 2)}`)
    assert.deepEqual(shown({ structuredContent: [1] }).structuredContent, [1])
  })

  it("keeps the digits of large numbers", () => {
    const result = parse('{"content":[],"structuredContent":{"id":12345678901234567890}}')
    assert.include(shown(result as JsonObject).text, "12345678901234567890")
  })

  it("makes control characters, escape sequences and bidi visible", () => {
    const found = shown({ content: [text("\u001b[31mred\u001b]0;t\u0007 \u202eabc\u0000\u009b1m\nnext\tcell")] })
    assert.equal(found.text, "\\u001b[31mred\\u001b]0;t\\u0007 \\u202eabc\\u0000\\u009b1m\nnext\tcell")
    const raw = shown({ content: [text("\u001b[31m")] }, defaultLimits, false)
    assert.equal(raw.text, "\u001b[31m")
  })

  it("does not let a server write lines of sigil's form", () => {
    const found = shown({
      content: [
        { type: "image", data: png, mimeType: "image/png]\n[sigil: 1 of 1 bytes" },
        { type: "resource_link", uri: "x\ny", name: "n\nm" }
      ]
    })
    assert.equal(found.text.split("\n").length, 2)
  })

  it("bounds what nobody sees, too", () => {
    const large = { ...text("x"), _meta: { junk: "j".repeat(100_000) } }
    const link = { type: "resource_link", uri: "u", name: "n".repeat(100_000), icons: [{ src: "s".repeat(100_000) }] }
    const resource = {
      type: "resource",
      resource: { uri: "u", text: "t", "x-junk": "j".repeat(100_000) },
      _meta: { junk: "j".repeat(100_000) }
    }
    const image = { type: "image", data: png, mimeType: "image/png", _meta: { junk: "j".repeat(100_000) } }
    const found = shown({ content: [large, link, resource, image] })
    assert.isBelow(JSON.stringify(found.content).length, 8_000)
    assert.deepEqual(found.content[0], text("x"))
  })
})

describe("Result bounds", () => {
  it("cuts bytes between characters and says what is missing in a block of its own", () => {
    const found = shown({ content: [text("é".repeat(100))] }, { ...defaultLimits, bytes: 25 })
    assert.isTrue(found.truncated)
    assert.deepEqual(found.content[0], text("é".repeat(12)))
    assert.deepEqual(found.content[1], text("[sigil: 24 of 200 bytes are shown; artifact h1 has the whole]"))
    assert.equal(found.content.length, 2)
    assert.equal(found.returnedBytes, 24)
    assert.equal(found.totalBytes, 200)
    assert.equal(Buffer.from(found.kept[0]?.bytes ?? []).toString(), "é".repeat(100))
    assert.deepEqual(found.artifact?.handle, ArtifactHandle("h1"))
  })

  it("cuts at lines and at tokens, whichever comes first", () => {
    const lines = Array.from({ length: 3_000 }, (_, index) => String(index)).join("\n")
    const byLines = shown({ content: [text(lines)] })
    assert.equal(String(own(byLines.content[0] ?? {}, "text")).split("\n").length, 2_000)
    const byTokens = shown({ content: [text("密".repeat(9_000))] }, { ...defaultLimits, tokens: 100 })
    assert.isAtMost(Tokens.estimate(String(own(byTokens.content[0] ?? {}, "text"))), 100)
    assert.isAbove(byTokens.returnedBytes, 300)
  })

  it("counts all blocks together and leaves out those behind the cut", () => {
    const found = shown(
      { content: [text("a".repeat(20)), text("b".repeat(20)), text("c")] },
      { ...defaultLimits, bytes: 30 }
    )
    assert.deepEqual(found.content.slice(0, -1), [text("a".repeat(20)), text("b".repeat(9))])
    assert.isFalse(found.text.includes("c\n"))
  })

  it("leaves structured content out when it is cut", () => {
    const found = shown(
      { content: [text("x")], structuredContent: { a: "y".repeat(100) } },
      { ...defaultLimits, bytes: 50 }
    )
    assert.isUndefined(found.structuredContent)
    assert.isTrue(found.truncated)
  })

  it("shows everything without limits", () => {
    const found = shown({ content: [text("x\n".repeat(50_000))] }, noLimits)
    assert.isFalse(found.truncated)
    assert.equal(found.returnedBytes, 100_000)
  })

  it("says so when the rest could not be kept", () => {
    const found = Effect.runSync(
      show(
        { content: [text("x".repeat(100))] },
        { limits: { ...defaultLimits, bytes: 10 }, escape: true, keep: () => Effect.succeed(undefined) }
      )
    )
    assert.isUndefined(found.artifact)
    assert.include(found.text, "could not be kept")
  })

  it("never shows more than the limits, and always a prefix", () => {
    const blocks = fc.array(
      fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("a\nb\n", "密\u001b")).map(text),
      { maxLength: 6 }
    )
    fc.assert(
      fc.property(blocks, fc.nat(60), fc.integer({ min: 1, max: 6 }), fc.nat(20), (content, bytes, lines, tokens) => {
        const limits = { bytes, lines, tokens }
        const whole = shown({ content }, noLimits).text
        const found = shown({ content }, limits)
        const kept = found.truncated ? found.text.slice(0, found.text.lastIndexOf("\n[sigil: ")) : found.text
        assert.isTrue(whole.startsWith(kept), JSON.stringify({ whole, kept }))
        assert.equal(found.truncated, kept !== whole)
        assert.isAtMost(Buffer.byteLength(kept), bytes)
        assert.isAtMost(kept === "" ? 0 : kept.split("\n").length, lines)
      })
    )
  })
})

describe("limitsFrom", () => {
  const from = (variables: { readonly [name: string]: string }) => limitsFrom((name) => variables[name]).tokens

  it("takes the first variable that is set and ignores what is no positive number", () => {
    assert.equal(from({}), 25_000)
    assert.equal(from({ MAX_MCP_OUTPUT_TOKENS: "10" }), 10)
    assert.equal(from({ SIGIL_MAX_MCP_OUTPUT_TOKENS: "20", MAX_MCP_OUTPUT_TOKENS: "10" }), 20)
    for (const odd of ["", "x", "0", "-1", "NaN", "Infinity"])
      assert.equal(from({ SIGIL_MAX_MCP_OUTPUT_TOKENS: odd }), 25_000, odd)
  })
})

describe("onlyBinary", () => {
  it("gives the bytes of the only binary block", () => {
    const image: Json = { type: "image", data: png, mimeType: "image/png" }
    assert.equal(onlyBinary({ content: [text("x"), image] })?.toString(), "fake image")
    assert.equal(
      onlyBinary({ content: [{ type: "resource", resource: { uri: "u", blob: png } }] })?.toString(),
      "fake image"
    )
    assert.isUndefined(onlyBinary({ content: [image, image] }))
    assert.isUndefined(onlyBinary({ content: [text("x")] }))
  })
})

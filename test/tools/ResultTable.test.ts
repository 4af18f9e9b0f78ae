/** The result contract over every kind of content, whole and cut: what a model sees, the document, the artifact. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ArtifactHandle } from "../../src/base/Ids.ts"
import { type JsonObject, own } from "../../src/base/Json.ts"
import { defaultLimits, type Keep, show } from "../../src/tools/Result.ts"

const long = Array.from({ length: 3_000 }, (_, line) => `line ${line}`).join("\n")
const blob = Buffer.from("binary\0content")
const base64 = blob.toString("base64")

/** One row: the wire result around a text, and what is expected of it. */
interface Row {
  readonly kind: string
  readonly result: (text: string) => JsonObject
  /** What the model sees of it when it is small; `TEXT` stands for the text. */
  readonly seen: string
  /** Types of the document's blocks when it is small. */
  readonly types: ReadonlyArray<string>
  /** Whether structured_content stands in the document when it is small. */
  readonly structured: boolean
  /** Bytes of binary artifacts. */
  readonly binary: number
  /** Whether the row has a text that can be cut. */
  readonly cuttable: boolean
}

const rows: ReadonlyArray<Row> = [
  {
    kind: "text",
    result: (text) => ({ content: [{ type: "text", text }] }),
    seen: "TEXT",
    types: ["text"],
    structured: false,
    binary: 0,
    cuttable: true
  },
  {
    kind: "structured equal to the text",
    result: (text) => ({
      content: [{ type: "text", text: JSON.stringify({ a: text }) }],
      structuredContent: { a: text }
    }),
    seen: '{"a":"TEXT"}',
    types: ["text"],
    structured: false,
    binary: 0,
    cuttable: false
  },
  {
    kind: "structured richer than the text",
    result: (text) => ({ content: [{ type: "text", text }], structuredContent: { a: 1 } }),
    seen: 'TEXT\n{\n  "a": 1\n}',
    types: ["text"],
    structured: true,
    binary: 0,
    cuttable: true
  },
  {
    kind: "structured only",
    result: (text) => ({ structuredContent: { lines: text.split("\n") } }),
    seen: '{\n  "lines": [\n    "TEXT"\n  ]\n}',
    types: [],
    structured: true,
    binary: 0,
    cuttable: true
  },
  {
    kind: "an array of texts",
    result: (text) => ({
      content: [
        { type: "text", text: "first" },
        { type: "text", text }
      ]
    }),
    seen: "first\nTEXT",
    types: ["text", "text"],
    structured: false,
    binary: 0,
    cuttable: true
  },
  {
    kind: "image",
    result: (text) => ({
      content: [
        { type: "image", data: base64, mimeType: "image/png" },
        { type: "text", text }
      ]
    }),
    seen: "[image image/png, 14 bytes, artifact 1]\nTEXT",
    types: ["image", "text"],
    structured: false,
    binary: 14,
    cuttable: true
  },
  {
    kind: "audio",
    result: (text) => ({
      content: [
        { type: "audio", data: base64, mimeType: "audio/wav" },
        { type: "text", text }
      ]
    }),
    seen: "[audio audio/wav, 14 bytes, artifact 1]\nTEXT",
    types: ["audio", "text"],
    structured: false,
    binary: 14,
    cuttable: true
  },
  {
    kind: "resource link",
    result: (text) => ({
      content: [
        { type: "resource_link", uri: "file:///a", name: "a" },
        { type: "text", text }
      ]
    }),
    seen: "[resource link a file:///a]\nTEXT",
    types: ["resource_link", "text"],
    structured: false,
    binary: 0,
    cuttable: true
  },
  {
    kind: "embedded text",
    result: (text) => ({ content: [{ type: "resource", resource: { uri: "file:///a", text } }] }),
    seen: "TEXT",
    types: ["resource"],
    structured: false,
    binary: 0,
    cuttable: true
  },
  {
    kind: "embedded blob",
    result: (text) => ({
      content: [
        { type: "resource", resource: { uri: "file:///a", blob: base64, mimeType: "application/pdf" } },
        { type: "text", text }
      ]
    }),
    seen: "[resource file:///a application/pdf, 14 bytes, artifact 1]\nTEXT",
    types: ["resource", "text"],
    structured: false,
    binary: 14,
    cuttable: true
  },
  {
    kind: "an unknown block",
    result: (text) => ({
      content: [
        { type: "hologram", depth: 3 },
        { type: "text", text }
      ]
    }),
    seen: '{"type":"hologram","depth":3}\nTEXT',
    types: ["hologram", "text"],
    structured: false,
    binary: 0,
    cuttable: true
  },
  {
    kind: "nothing",
    result: () => ({ content: [] }),
    seen: "",
    types: [],
    structured: false,
    binary: 0,
    cuttable: false
  },
  {
    kind: "isError",
    result: (text) => ({ content: [{ type: "text", text }], isError: true }),
    seen: "TEXT",
    types: ["text"],
    structured: false,
    binary: 0,
    cuttable: true
  }
]

const present = (result: JsonObject) => {
  const kept: Array<Buffer> = []
  const keep: Keep = (bytes) =>
    Effect.sync(() => {
      kept.push(Buffer.from(bytes))
      const handle = ArtifactHandle(String(kept.length))
      return { handle, path: `/kept/${handle}`, bytes: bytes.byteLength }
    })
  return Effect.map(show(result, { limits: defaultLimits, escape: false, keep }), (shown) => ({ shown, kept }))
}

describe("the result contract", () => {
  for (const row of rows) {
    it.effect(`${row.kind}, small: everything is there once, nothing is kept but binary content`, () =>
      Effect.gen(function* () {
        const result = row.result("small")
        const { shown, kept } = yield* present(result)
        // The shape of artifact lines may carry a mark of sigil; the words between the brackets are the contract.
        assert.equal(shown.text.replace(/\[sigil: /g, "["), row.seen.replaceAll("TEXT", "small"))
        assert.deepEqual(
          shown.content.map((block) => own(block, "type")),
          [...row.types]
        )
        assert.equal(shown.structuredContent !== undefined, row.structured)
        assert.isFalse(shown.truncated)
        assert.equal(shown.isError, row.kind === "isError")
        assert.equal(shown.returnedBytes, shown.totalBytes)
        assert.deepEqual(
          kept.map((bytes) => bytes.length),
          row.binary > 0 ? [row.binary] : []
        )
        assert.notInclude(JSON.stringify(shown), base64)
      })
    )

    if (!row.cuttable) continue
    it.effect(`${row.kind}, cut: a last block of numbers, the whole in an artifact, isError kept`, () =>
      Effect.gen(function* () {
        const { shown, kept } = yield* present(row.result(long))
        assert.isTrue(shown.truncated)
        assert.isAtMost(shown.returnedBytes, defaultLimits.bytes)
        assert.isAtMost(shown.text.split("\n").length, defaultLimits.lines + 1)
        assert.equal(shown.isError, row.kind === "isError")
        assert.isUndefined(row.kind === "structured only" ? shown.structuredContent : undefined)
        const last = String(own(shown.content.at(-1) ?? {}, "text"))
        assert.match(last, /^\[sigil: \d+ of \d+ bytes are shown; artifact \d+ has the whole\]$/)
        const artifact = kept.at(-1)?.toString("utf8") ?? ""
        assert.include(artifact, "line 2999")
        assert.equal(Buffer.byteLength(artifact), shown.totalBytes)
        // What is shown is the beginning of the whole, without any marker inside.
        assert.isTrue(artifact.startsWith(shown.text.slice(0, shown.text.lastIndexOf("\n[sigil:"))))
        assert.notInclude(JSON.stringify(shown), base64)
      })
    )
  }
})

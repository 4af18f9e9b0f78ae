import * as fc from "fast-check"
import { canonicalize } from "json-canonicalize"
import { assert, describe, it } from "vitest"
import { argumentShape, MAX_ALL_KEYS_BYTES, MAX_KEY_BYTES, MAX_KEYS } from "../../src/audit/ArgumentShape.ts"
import * as Entries from "../../src/audit/AuditEntries.ts"
import {
  canonicalText,
  emptyChain,
  type Link,
  make,
  makeLine,
  MAX_PAYLOAD_BYTES,
  payloadText,
  verifyLine
} from "../../src/audit/AuditRecord.ts"
import { parse } from "../../src/protocol/Codec.ts"
import { boundedNames, identityProjection, metadataText, safeLabel } from "../../src/audit/SafeProjection.ts"
import { summaryOf } from "../../src/audit/Summary.ts"

/** JSON objects with keys that programs stumble over. */
const key = fc.oneof(
  fc.string({ unit: "binary", maxLength: 5 }),
  fc.constantFrom("__proto__", "toJSON", "constructor", "10", "9", "é", "")
)
const payload = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constant(null),
    fc.boolean(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.string({ unit: "binary" }),
    fc.array(tie("value"), { maxLength: 4 }),
    tie("object")
  ),
  object: fc.dictionary(key, tie("value"), { maxKeys: 5 })
})).object as fc.Arbitrary<{ readonly [key: string]: null }>

const parts = fc.record(
  { time: fc.string(), kind: fc.string(), run: fc.string(), call: fc.string(), server: fc.string(), payload },
  { requiredKeys: ["time", "kind", "run", "payload"] }
)
const lineOf = (made: typeof parts extends fc.Arbitrary<infer P> ? P : never, before: Link) =>
  makeLine({ ...made, payload: payloadText(made.payload) }, before)

describe("a record", () => {
  it("verifies as it was made, whatever is in it", () => {
    fc.assert(
      fc.property(fc.array(parts, { minLength: 1, maxLength: 5 }), (all) => {
        let chain = emptyChain
        for (const one of all) {
          const { line, after } = lineOf(one, chain)
          assert.deepEqual(verifyLine(Buffer.from(line), chain).faults, [])
          assert.notInclude(line, "\n")
          assert.equal(after.count, chain.count + 1)
          chain = after
        }
      })
    )
  })

  it("does not verify when any byte of its line is another one, or is gone, or is new", () => {
    fc.assert(
      fc.property(
        parts,
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        fc.constantFrom("change", "remove", "insert"),
        (one, at, by, how) => {
          const bytes = [...Buffer.from(lineOf(one, emptyChain).line)]
          const place = at % bytes.length
          const other = ((bytes[place] ?? 0) + by) % 256
          if (how === "change") bytes[place] = other
          else if (how === "remove") bytes.splice(place, 1)
          else bytes.splice(place, 0, other)
          assert.isNotEmpty(verifyLine(Buffer.from(bytes), emptyChain).faults)
        }
      ),
      { numRuns: 500 }
    )
  })

  it("does not verify in another form of the same JSON", () => {
    const record = make({ time: "t", kind: "k", run: "r", payload: { a: 1, b: "é" } }, emptyChain)
    const line = canonicalize(record)
    assert.deepEqual(verifyLine(Buffer.from(line), emptyChain).faults, [])
    const forms = [
      JSON.stringify(record, undefined, 1).replaceAll("\n", ""),
      `${line} `,
      line.replace("{", '{"kind":"other",'),
      line.replace('"a":1', '"a":1.0'),
      line.replace("é", "\\u00e9"),
      `\uFEFF${line}`
    ]
    for (const form of forms) assert.isNotEmpty(verifyLine(Buffer.from(form), emptyChain).faults, form)
  })

  it("has the canonical form of RFC 8785, also where an object stands twice", () => {
    fc.assert(
      fc.property(payload, (value) => {
        assert.equal(canonicalText(value), canonicalize(JSON.parse(JSON.stringify(value))))
      })
    )
    const shared = { z: 1, a: 2 }
    assert.equal(canonicalText({ x: shared, xy: shared }), '{"x":{"a":2,"z":1},"xy":{"a":2,"z":1}}')
    assert.equal(canonicalText({ b: undefined, a: [] }), '{"a":[]}')
    assert.equal(canonicalText({ a: Number.NaN }), '{"a":null}', "as JSON has it")
    const cycle: { [key: string]: unknown } = {}
    cycle["self"] = cycle
    assert.throws(() => canonicalText(cycle as { readonly [key: string]: null }))
  })

  it("replaces a payload that is too large by its size", () => {
    const text = payloadText({ a: "x".repeat(MAX_PAYLOAD_BYTES) })
    assert.deepEqual(JSON.parse(text), { payload_omitted: true, payload_total_bytes: MAX_PAYLOAD_BYTES + 8 })
    assert.include(payloadText({ a: "x".repeat(MAX_PAYLOAD_BYTES - 8) }), "xxx")
  })
})

describe("argumentShape", () => {
  it("names keys and types, never a value", () => {
    const text = '{"path":"/secret","n":1,"deep":{"k":"v"},"list":[1],"no":null,"yes":true,"big":12345678901234567890}'
    assert.deepEqual(argumentShape(parse(text)), {
      type: "object",
      byte_count: text.length,
      top_level_key_count: 7,
      top_level_keys: ["path", "n", "deep", "list", "no", "yes", "big"],
      field_types: {
        path: "string",
        n: "number",
        deep: "object",
        list: "array",
        no: "null",
        yes: "boolean",
        big: "number"
      },
      omitted_top_level_keys: 0,
      truncated: false
    })
    assert.deepEqual(argumentShape([1, "ab"]), { type: "array", byte_count: 8, item_count: 2 })
    assert.deepEqual(argumentShape("é"), { type: "string", byte_count: 4 })
    assert.deepEqual(argumentShape(null), { type: "null", byte_count: 4 })
    fc.assert(
      fc.property(fc.dictionary(fc.string({ maxLength: 4 }), fc.constant("VALUE-OF-SOMEBODY")), (value) => {
        assert.notInclude(JSON.stringify(argumentShape(value)), "VALUE-OF-SOMEBODY")
      })
    )
  })

  it("keeps its bounds and counts what it leaves out", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 400 }), { maxLength: 100 }), (lengths) => {
        const value = Object.fromEntries(lengths.map((length, index) => [`${index}${"é".repeat(length / 2)}`, 1]))
        const shape = argumentShape(value)
        const keys = shape["top_level_keys"] as ReadonlyArray<string>
        const bytes = keys.map((one) => Buffer.byteLength(one))
        assert.isAtMost(keys.length, MAX_KEYS)
        assert.isTrue(bytes.every((count) => count <= MAX_KEY_BYTES))
        assert.isAtMost(
          bytes.reduce((sum, count) => sum + count, 0),
          MAX_ALL_KEYS_BYTES
        )
        assert.equal(shape["top_level_key_count"], lengths.length)
        assert.equal(shape["omitted_top_level_keys"], lengths.length - keys.length)
        assert.equal(shape["truncated"], keys.length < lengths.length)
        assert.sameMembers(Object.keys(shape["field_types"] as object), [...keys])
      })
    )
    const many = argumentShape(Object.fromEntries(Array.from({ length: 70 }, (_, index) => [`k${index}`, 1])))
    assert.deepEqual([many["omitted_top_level_keys"], many["truncated"]], [6, true])
  })

  it("hides secrets in keys, and takes keys of prototypes for keys", () => {
    const shape = argumentShape(JSON.parse('{"hunter2":1,"__proto__":{}}'), (text) =>
      text.replace("hunter2", "[hidden]")
    )
    assert.deepEqual(shape["top_level_keys"], ["[hidden]", "__proto__"])
    assert.notInclude(JSON.stringify(shape), "hunter2")
    assert.isTrue(Object.hasOwn(shape["field_types"] as object, "__proto__"))
  })
})

describe("safe projections", () => {
  it("replaces labels that look like paths or credentials", () => {
    for (const label of [
      "/etc",
      "a\\b",
      "~x",
      "..",
      "C:x",
      "my-secret",
      "sk-abc",
      "x ghp_1",
      "a".repeat(48),
      "b ".repeat(200)
    ]) {
      assert.equal(safeLabel(label), "[hidden]", label)
    }
    for (const label of ["fs", "plugin:p:fs", "my server", "task-runner"]) assert.equal(safeLabel(label), label)
  })

  it("bounds texts and names", () => {
    assert.deepEqual(metadataText("name", "é".repeat(256)), { name: "é".repeat(256) })
    assert.deepEqual(metadataText("name", "é".repeat(257)), { name: "", name_omitted: true, name_total_bytes: 514 })
    const names = Array.from({ length: 40 }, (_, index) => `N${index}`)
    assert.deepEqual(boundedNames(names), { names: names.slice(0, 32), omitted: 8 })
    assert.deepEqual(boundedNames(["a".repeat(129), "b"]), { names: ["b"], omitted: 1 })
    assert.equal(boundedNames(Array.from({ length: 32 }, () => "x".repeat(128))).omitted, 0)
    assert.deepEqual(identityProjection({ protocolVersion: "1", name: "n", version: "v" }), {
      protocol_version: "1",
      name: "n",
      version: "v",
      environment_grant_names: []
    })
  })
})

describe("entries", () => {
  const about = { call: "c1", server: "fs" }
  const all = [
    Entries.admissionRefused({
      server: "fs",
      gate: "approval",
      code: "SIGIL_PENDING_APPROVAL",
      reason: "pending",
      message: "m"
    }),
    Entries.processLifecycle({
      server: "fs",
      phase: "post_spawn",
      status: "registered",
      safeMetadata: { a: "b" },
      generation: "g",
      declaration: { x: 1 }
    }),
    Entries.approvalResolved({
      ...about,
      action: "resolved",
      toolName: "t",
      operation: "tools/call",
      subjects: ["s"],
      local: "allow",
      network: "allow",
      source: "ask",
      decision: "ask",
      access: "read",
      networkEffect: "unknown",
      risk: "low",
      userDecision: "approved",
      reason: "r",
      allowSource: "rule",
      grantCall: "c0"
    }),
    Entries.egressDecision({
      ...about,
      toolName: "t",
      operation: "tools/call",
      subjects: ["s"],
      trustClass: "third_party",
      providerTool: "mcp__fs__t",
      target: { remote_tool: "t" },
      allowSecrets: false,
      secretDetected: false,
      sent: true,
      arguments: argumentShape({ b: 1, a: 2 }),
      serverIdentity: identityProjection({ protocolVersion: "1", name: "n", version: "v" }),
      redacted: true
    }),
    Entries.toolStarted({ ...about, toolName: "t", operation: "tools/call", generation: "g" }),
    Entries.toolFinished({
      ...about,
      toolName: "t",
      operation: "tools/call",
      status: "failed",
      code: "SIGIL_CALL_TIMEOUT",
      reason: "r",
      durationMs: 3,
      resultBytes: 1,
      truncated: false,
      artifact: "h"
    }),
    Entries.projectDecision({ action: "approve", server: "fs", project: "/p", fingerprint: "f" }),
    Entries.pinRecorded({ server: "fs", action: "pin", fingerprints: { launch: "l" } }),
    Entries.workspaceMutation({ server: "fs", created: ["a"], changed: [], removed: [] })
  ]

  it("come with their keys in order, so that the log need not sort them", () => {
    for (const { kind, payload } of all) assert.equal(JSON.stringify(payload), canonicalize(payload), kind)
  })

  it("carry the fields of R section 12", () => {
    const egress = all[3]
    assert.deepEqual(egress?.payload, {
      call_id: "c1",
      destination: "mcp:fs",
      operation: "tools/call",
      payload: {
        allow_secrets: false,
        arguments: argumentShape({ b: 1, a: 2 }),
        provider_tool: "mcp__fs__t",
        remote_tool: "t",
        secret_detected: false,
        server: "fs",
        server_identity: { protocol_version: "1", name: "n", version: "v", environment_grant_names: [] },
        trust_class: "third_party"
      },
      redacted: true,
      sent: true,
      subjects: ["s"],
      tool_name: "t"
    })
    assert.deepEqual([egress?.call, egress?.server], ["c1", "fs"])
    assert.isTrue(all[2]?.durable, "a person's answer is on the disk")
  })

  it("have a line that names what matters", () => {
    const line = (index: number): string => {
      const one = all[index] ?? all[0]
      return one === undefined
        ? ""
        : summaryOf(make({ time: "t", kind: one.kind, run: "r", payload: one.payload }, emptyChain))
    }
    assert.equal(line(0), "approval SIGIL_PENDING_APPROVAL reason=pending message=m")
    assert.equal(line(3), "t tools/call destination=mcp:fs sent=true redacted=true")
    assert.equal(line(5), "failed SIGIL_CALL_TIMEOUT t tools/call reason=r duration_ms=3")
  })
})

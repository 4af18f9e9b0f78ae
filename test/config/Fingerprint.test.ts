import { createHash } from "node:crypto"
import { assert, describe, it } from "vitest"
import { approvalFingerprint, type Launch, launchFingerprint } from "../../src/config/Fingerprint.ts"
import { jsonEntry, valid } from "./Support.ts"

const of = (body: string): string => approvalFingerprint(valid(jsonEntry(body)).raw)
const sha = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`

describe("approval fingerprint", () => {
  it("is the digest of the canonical form of the keys as written", () => {
    assert.strictEqual(of('{"command":"x","args":["${A}"]}'), sha('{"args":["${A}"],"command":"x"}'))
  })
  it("does not see order, format or enabled", () => {
    const plain = of('{"command":"x","args":["1"]}')
    assert.strictEqual(of('{ "args": [ "1" ], // c\n "command": "x", }'), plain)
    assert.strictEqual(of('{"command":"x","args":["1"],"enabled":false}'), plain)
  })
  it.each([
    '{"command":"x","args":["2"]}',
    '{"command":"x","args":["1"],"unknown":1}',
    '{"command":"x","args":["1"],"disabled":true}',
    '{"command":"x","args":["1"],"type":"stdio"}',
    '{"command":"x","args":["1"],"__proto__":{}}',
    '{"command":"x","args":["1"],"trust":{"approval_default":"ask"}}',
    '{"command":"x","args":["1"],"cwd":"."}'
  ])("sees %s", (body) => {
    assert.notStrictEqual(of(body), of('{"command":"x","args":["1"]}'))
  })
  it("tells prototype names and long numbers apart", () => {
    assert.notStrictEqual(of('{"command":"x","__proto__":{"a":1}}'), of('{"command":"x","__proto__":{"a":2}}'))
    assert.notStrictEqual(
      of('{"command":"x","n":12345678901234567890}'),
      of('{"command":"x","n":12345678901234567891}')
    )
  })
})

describe("launch fingerprint", () => {
  const launch: Launch = {
    command: "x",
    args: ["1"],
    grants: [],
    workingDirectory: "/w",
    cwdWritten: false,
    env: {},
    executable: { path: "/bin/x", sha256: "00" }
  }
  it("keeps the form of older pins without grants", () => {
    assert.strictEqual(launchFingerprint(launch), sha('{"command":"x","args":["1"]}'))
    assert.strictEqual(
      launchFingerprint({ ...launch, executable: { path: "/y", sha256: "11" } }),
      launchFingerprint(launch)
    )
  })
  it("binds a written cwd and env, and with grants everything", () => {
    const granted = { ...launch, grants: ["B", "A"] }
    const all = [
      launch,
      { ...launch, cwdWritten: true },
      { ...launch, env: { A: "1" } },
      granted,
      { ...granted, grants: ["A"] },
      { ...granted, workingDirectory: "/v" },
      { ...granted, executable: { path: "/bin/x", sha256: "11" } },
      { ...granted, executable: { path: "/bin/y", sha256: "00" } },
      { ...granted, env: { A: "1" } }
    ].map(launchFingerprint)
    assert.strictEqual(new Set(all).size, all.length)
    assert.strictEqual(launchFingerprint(granted), launchFingerprint({ ...granted, grants: ["A", "B"] }))
  })
})

/** Pins: every difference is told, and nothing else. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Pins from "../../src/policy/Pins.ts"

const value = fc.constantFrom("a", "b", "1.0.0")
const pinned = fc.record({
  transportFingerprint: value,
  protocolVersion: value,
  serverName: value,
  serverVersion: value
})
const observed = fc.record(
  { transportFingerprint: value, protocolVersion: value, serverName: value, serverVersion: value },
  { requiredKeys: [] }
)
const names = {
  transportFingerprint: "transport_fingerprint",
  protocolVersion: "protocol_version",
  serverName: "server_name",
  serverVersion: "server_version"
} as const

describe("pins", () => {
  it("tell exactly the observed values that differ, in the order of the fields", () => {
    fc.assert(
      fc.property(pinned, observed, (pin, seen) => {
        const expected = (Object.keys(names) as ReadonlyArray<keyof typeof names>)
          .filter((key) => Object.hasOwn(seen, key) && seen[key] !== pin[key])
          .map((key) => names[key])
        assert.deepEqual(
          Pins.differences(pin, seen).map(({ field }) => field),
          expected
        )
      })
    )
  })

  it("show both sides of each difference in one text", () => {
    const text = Pins.describe([
      { field: "server_name", pinned: "a", observed: "b" },
      { field: "server_version", pinned: "1", observed: "2" }
    ])
    assert.equal(text, "server_name is 'b', pinned is 'a'; server_version is '2', pinned is '1'")
  })
})

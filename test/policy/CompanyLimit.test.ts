import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { CompanyPolicy } from "../../src/config/CompanyPolicy.ts"
import { type Scope, scopes } from "../../src/config/ServerDeclaration.ts"
import { announcement, decide, offBy } from "../../src/policy/CompanyLimit.ts"
import { declared } from "../support/FakeRuntime.ts"

const says = (allowed: boolean | undefined, index: number, reason?: string): CompanyPolicy => ({
  file: `f${index}`,
  managed: index === 0,
  ...(allowed === undefined
    ? {}
    : {
        mcpLimit: {
          field: "policyLimits.mcp",
          at: { line: 1, column: 1 },
          allowed,
          ...(reason === undefined ? {} : { reason })
        }
      })
})

describe("CompanyLimit", () => {
  it("off in any file is off for all but what an IDE declares at run time", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(true, false, undefined), { maxLength: 3 }),
        fc.constantFrom<Scope>(...scopes),
        fc.boolean(),
        (words, scope, ide) => {
          const company = words.map((allowed, index) => says(allowed, index))
          const off = decide(company, { scope, ...(ide ? { origin: "ide" } : {}) })
          assert.equal(off !== undefined, words.includes(false) && !(ide && scope === "dynamic"))
          if (off !== undefined) assert.equal(off.policy.file, `f${words.indexOf(false)}`)
        }
      )
    )
  })

  it("is announced in one line, whatever the reason holds", () => {
    const company = [says(false, 0, "no\nservers\u001b[31m here")]
    const servers = [declared("a"), declared("b", { scope: "dynamic", origin: "ide" }), declared("c")]
    assert.equal(
      announcement(company, servers),
      "MCP is off, 2 servers are ignored: policyLimits.mcp in f0: no\\nservers\\u001b[31m here"
    )
    assert.isUndefined(announcement([says(true, 0), says(undefined, 1)], servers))
    assert.isUndefined(offBy([]))
  })
})

import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { expand, variablesOf } from "../../src/config/Expansion.ts"
import type { ServerDeclaration } from "../../src/config/ServerDeclaration.ts"
import { jsonEntry, left, right, valid } from "./Support.ts"

const lookupIn =
  (variables: { readonly [name: string]: string }) =>
  (name: string): string | undefined =>
    Object.hasOwn(variables, name) ? variables[name] : undefined

const declared = (body: object): ServerDeclaration => valid(jsonEntry(JSON.stringify(body)))
const args = (texts: ReadonlyArray<string>, variables: { readonly [name: string]: string }) => {
  const { endpoint } = right(expand(declared({ command: "x", args: texts }), lookupIn(variables)))
  if (endpoint._tag !== "stdio") assert.fail()
  return endpoint.args
}

describe("expansion", () => {
  it.each([
    ["${A}", "1"],
    ["a${A}b${A}", "a1b1"],
    ["${EMPTY}", ""],
    ["${EMPTY:-x}", ""],
    ["${NONE:-x}", "x"],
    ["${NONE:-}", ""],
    ["${NONE:-a:-b}", "a:-b"],
    ["${NONE:-${A}", "${A"],
    ["$A ${} ${A", "$A ${} ${A"],
    ["${TEMPLATE}", "${A}"]
  ])("%s becomes %j", (text, expected) => {
    assert.deepEqual(args([text], { A: "1", EMPTY: "", TEMPLATE: "${A}" }), [expected])
  })

  it("leaves a variable that is not set as it is written where the user wants that, and says so", () => {
    const declaration = declared({ command: "x", args: ["${A}", "${B:-d}", "${C}"], env: { K: "${A}" } })
    const { endpoint, unset, variableValues } = right(expand(declaration, lookupIn({ C: "1" }), "literal"))
    assert.deepEqual(endpoint._tag === "stdio" ? endpoint.args : [], ["${A}", "d", "1"])
    assert.deepEqual(unset, ["A"])
    assert.deepEqual(variableValues, [{ name: "C", value: "1" }])
    assert.isUndefined(right(expand(declared({ command: "x" }), lookupIn({}), "literal")).unset)
  })

  it("fills command, args, env values, url and header values, and nothing else", () => {
    const stdio = right(
      expand(declared({ command: "${A}", args: ["${A}"], env: { K: "${A}" }, cwd: "${A}" }), lookupIn({ A: "1" }))
    ).endpoint
    if (stdio._tag !== "stdio") assert.fail()
    assert.deepEqual([stdio.command, stdio.args, stdio.env["K"], stdio.cwd], ["1", ["1"], "1", "${A}"])
    const remote = right(
      expand(declared({ url: "https://${A}/", headers: { "X-A": "${A}" } }), lookupIn({ A: "h" }))
    ).endpoint
    if (remote._tag !== "remote") assert.fail()
    assert.deepEqual([remote.url, remote.headers["X-A"]], ["https://h/", "h"])
  })

  it("reports all missing names together, each with its fields, and no value", () => {
    const error = left(
      expand(
        declared({ command: "${A}", args: ["${B} ${C:-x} ${B}", "${A}"], env: { K: "${SET}" } }),
        lookupIn({ SET: "hidden" })
      )
    )
    assert.strictEqual(error.code, "SIGIL_MISSING_VARIABLE")
    assert.strictEqual(error.reason, "missing_variable")
    assert.deepEqual(error.details?.["missing"], ["A", "B"])
    assert.include(error.text, "A (command, args[1]), B (args[0])")
    assert.notInclude(error.text, "hidden")
    assert.strictEqual(error.where?.server, "s")
  })

  it("returns what came from variables, each name once, defaults not", () => {
    const { variableValues } = right(
      expand(declared({ command: "x", args: ["${A}", "${A}${B:-d}", "${C}"] }), lookupIn({ A: "1", C: "" }))
    )
    assert.deepEqual(variableValues, [
      { name: "A", value: "1" },
      { name: "C", value: "" }
    ])
  })

  it("refuses an expanded value that cannot be used, without showing it", () => {
    for (const [body, value] of [
      [{ command: "x", args: ["${A}"] }, "s3cret\0"],
      [{ command: "${A}" }, " "],
      [{ url: "${A}" }, "s3cret"],
      [{ url: "https://h/", headers: { "X-A": "${A}" } }, "s3cret\r\nX-B: 1"]
    ] as const) {
      const error = left(expand(declared(body), lookupIn({ A: value })))
      assert.strictEqual(error.code, "SIGIL_CONFIG_INVALID")
      assert.notInclude(error.text, "s3cret")
    }
  })

  it("does not change the declaration", () => {
    const declaration = declared({ command: "${A}", env: { K: "${A}" } })
    const before = JSON.stringify(declaration)
    right(expand(declaration, lookupIn({ A: "1" })))
    assert.strictEqual(JSON.stringify(declaration), before)
  })

  it("lists the variables an entry reads", () => {
    assert.deepEqual(variablesOf(declared({ command: "${A}", args: ["-", "${B:-x}"], env: { K: "${A}" } })), [
      { name: "A", field: "command", hasDefault: false },
      { name: "B", field: "args[1]", hasDefault: true },
      { name: "A", field: "env.K", hasDefault: false }
    ])
    assert.deepEqual(
      variablesOf(
        declared({ url: "https://h/", bearerTokenEnvVar: "T", envHeaders: {}, envHttpHeaders: { "X-A": "H" } })
      ),
      [
        { name: "H", field: "env_http_headers.X-A", hasDefault: false },
        { name: "T", field: "bearer_token_env_var", hasDefault: false }
      ]
    )
  })

  const plain = fc
    .string({ unit: fc.constantFrom("a", "$", "{", "-", ":", " ", "é") })
    .filter((text) => !text.includes("${"))
  const name = fc.constantFrom("A", "B", "C", "__proto__", "constructor")

  it("text without templates is kept, and templates become exactly their values", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(plain, name, fc.option(plain.filter((text) => !text.includes("}")))), { maxLength: 5 }),
        fc.dictionary(
          name,
          fc.string().filter((text) => !text.includes("\0"))
        ),
        (pieces, variables) => {
          // A `$` before a template would join it, so pieces do not end with one.
          const safe = pieces.map(([text, ...rest]) => [text.replace(/\$+$/, ""), ...rest] as const)
          const text = safe
            .map(
              ([before, variable, fallback]) => `${before}\${${variable}${fallback === null ? "" : `:-${fallback}`}}`
            )
            .join("")
          const lookup = lookupIn(variables)
          const missing = safe.filter(([, variable, fallback]) => lookup(variable) === undefined && fallback === null)
          const result = expand(declared({ command: "x", args: [text] }), lookup)
          if (missing.length > 0) {
            assert.deepEqual(left(result).details?.["missing"], [...new Set(missing.map(([, variable]) => variable))])
            return
          }
          const { endpoint } = right(result)
          if (endpoint._tag !== "stdio") assert.fail()
          assert.strictEqual(
            endpoint.args[0],
            safe.map(([before, variable, fallback]) => before + (lookup(variable) ?? fallback)).join("")
          )
        }
      ),
      { numRuns: 300 }
    )
  })
})

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import * as Argv from "../../src/cli/Argv.ts"
import { commands, groups } from "../../src/cli/Commands.ts"
import type { ParsedInput } from "../../src/cli/CommandSpec.ts"
import * as Parse from "../../src/cli/Parse.ts"
import type { UsageError } from "../../src/cli/UsageError.ts"

const parse = (...argv: ReadonlyArray<string>): Effect.Effect<ParsedInput, UsageError> => {
  const { request } = Argv.parse(argv, { commands, groups })
  return request._tag === "Run" ? Parse.parse(request.command, request.given) : Effect.dieMessage(request._tag)
}

const refused = (...argv: ReadonlyArray<string>) => Effect.flip(parse(...argv))

describe("Parse", () => {
  it.effect("gives every argument and option a value", () =>
    Effect.gen(function* () {
      const input = yield* parse("mcp", "list")
      assert.deepEqual(input, {
        args: {},
        options: { all: false, status: false, timeout: 10 },
        tail: [],
        dashes: false
      })
      assert.deepEqual((yield* parse("mcp", "approve", "--all")).args, { name: undefined })
      assert.deepEqual((yield* parse("mcp", "call", "s/t")).args, { target: "s/t", words: [] })
    })
  )

  it.effect("types numbers, choices and flags", () =>
    Effect.gen(function* () {
      const { options } = yield* parse("mcp", "add", "--timeout", "2.5", "--scope", "local", "--force", "n", "c")
      assert.equal(options["timeout"], 2.5)
      assert.equal(options["scope"], "local")
      assert.equal(options["force"], true)
      assert.equal(options["startup"], undefined)
    })
  )

  it("keeps texts byte for byte", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.string()), fc.string(), fc.array(fc.string()), (values, command, tail) =>
        Effect.runPromise(
          Effect.gen(function* () {
            const words = values.flatMap((value) => ["--env", value])
            const input = yield* parse("mcp", "add", ...words, "name", "--", command, ...tail)
            assert.deepEqual(input.options["env"], values)
            assert.deepEqual(input.args, { name: "name", command })
            assert.deepEqual(input.tail, tail)
          })
        )
      )
    ))

  for (const text of ["3s", "", " ", "NaN", "Infinity", "--json"]) {
    it.effect(`refuses '${text}' as a number`, () =>
      Effect.gen(function* () {
        const error = yield* refused("mcp", "list", "--timeout", text)
        assert.equal(error.code, "SIGIL_USAGE")
        assert.include(error.text, "--timeout")
      })
    )
  }

  it.effect("suggests a near choice", () =>
    Effect.gen(function* () {
      const error = yield* refused("mcp", "tools", "--for", "antropic")
      assert.deepEqual(error.candidates, ["anthropic"])
    })
  )

  it.effect("says which argument is missing, and which is too many", () =>
    Effect.gen(function* () {
      assert.match((yield* refused("mcp", "add")).text, /^NAME is missing/)
      assert.match((yield* refused("mcp", "add", "fs")).text, /^COMMAND\|URL is missing/)
      assert.match((yield* refused("mcp", "call")).text, /^SERVER is missing/)
      const extra = yield* refused("mcp", "get", "a", "b")
      assert.include(extra.text, "'b'")
      assert.equal(extra.reason, "extra_argument")
    })
  )

  it.effect("holds a command to its own rule", () =>
    Effect.gen(function* () {
      assert.include((yield* refused("mcp", "approve")).text, "--all")
      assert.include((yield* refused("mcp", "reject", "fs", "--all")).text, "not both")
    })
  )
})

import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { codes } from "../../src/base/Codes.ts"
import { exitCodeOf, type Failure } from "../../src/base/Failure.ts"
import { documents } from "../../src/cli/Documents.ts"
import * as FailureText from "../../src/cli/FailureText.ts"
import { render } from "../../src/cli/Markup.ts"
import { usage } from "../../src/cli/UsageError.ts"

const text = (failure: Failure, colour = false): string =>
  FailureText.linesOf(failure)
    .map((line) => render(line, colour))
    .join("\n")

const failure = (more: Partial<Failure>): Failure => ({
  _tag: "ConfigError",
  code: "SIGIL_CONFIG_INVALID",
  reason: "configuration_invalid",
  text: "command: expected a string.",
  ...more
})

describe("FailureText", () => {
  it("says what, where, which server, near names, what to do, and the code", () => {
    assert.equal(
      text(
        failure({
          where: { file: "/w/.mcp.json", line: 3, column: 7, field: "command", server: "fs", operation: "start" },
          candidates: ["one", "two", "three"],
          fix: "Write the program's name."
        })
      ),
      [
        "error: command: expected a string.",
        "  at /w/.mcp.json:3:7 (command)",
        "  server fs, during start",
        "  did you mean 'one', 'two' or 'three'?",
        "fix: Write the program's name.",
        "code: SIGIL_CONFIG_INVALID (sigil errors SIGIL_CONFIG_INVALID)"
      ].join("\n")
    )
  })

  it("leaves out what is not known and takes the fix of the catalogue", () => {
    assert.equal(
      text(failure({ where: {} })),
      [
        "error: command: expected a string.",
        "fix: Correct the field named in the message.",
        "code: SIGIL_CONFIG_INVALID (sigil errors SIGIL_CONFIG_INVALID)"
      ].join("\n")
    )
    assert.include(text(failure({ where: { file: "/f", line: 2 } })), "\n  at /f:2\n")
    assert.include(text(failure({ where: { field: "args" } })), "\n  at field args\n")
    assert.include(text(failure({ where: { tool: "t" } })), "\n  tool t\n")
  })

  it("colours its own words only, and lets no escape code through", () => {
    const shown = text(failure({ text: "bad \u001b[2J\u009b2J name", where: { server: "\u202efs" } }), true)
    assert.include(shown, "\u001b[31merror:\u001b[0m bad \\u001b[2J\\u009b2J name")
    assert.include(shown, "server \\u202efs")
  })

  it("makes a document of every code, with the exit of the catalogue", () => {
    for (const code of codes) {
      const document = JSON.parse(JSON.stringify(FailureText.documentOf(failure({ code }))))
      const decoded = Schema.decodeUnknownEither(documents.error)(document)
      if (Either.isLeft(decoded)) return assert.fail(String(decoded.left))
      assert.equal(decoded.right.error.exit, exitCodeOf(failure({ code })))
      assert.notEqual(decoded.right.error.fix, "")
    }
  })

  it("keeps all parts in the document", () => {
    const { error } = FailureText.documentOf(
      failure({ where: { file: "/f", server: "s" }, candidates: ["a"], details: { limit: 3 } })
    )
    assert.deepEqual(error, {
      code: "SIGIL_CONFIG_INVALID",
      reason: "configuration_invalid",
      message: "command: expected a string.",
      fix: "Correct the field named in the message.",
      exit: 2,
      where: { file: "/f", server: "s" },
      candidates: ["a"],
      details: { limit: 3 }
    })
  })

  it("names the help of the command in a usage error", () => {
    assert.include(text(usage(["mcp", "add"], "NAME is missing.")), "fix: Run 'sigil mcp add --help'.")
    assert.include(text(usage([], "No command was given.")), "fix: Run 'sigil --help'.")
  })
})

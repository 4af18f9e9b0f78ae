import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type { DocumentOf } from "../../src/cli/Documents.ts"
import { bold, red } from "../../src/cli/Markup.ts"
import * as Output from "../../src/cli/Output.ts"
import { usage } from "../../src/cli/UsageError.ts"
import * as Terminal from "../../src/platform/Terminal.ts"
import { parse } from "../../src/protocol/Codec.ts"

const printing = <A>(
  given: { readonly json?: boolean; readonly tty?: boolean; readonly colour?: boolean; readonly columns?: number },
  act: (output: Output.Output["Type"]) => Effect.Effect<A>
) =>
  Effect.gen(function* () {
    const output = yield* Output.Output
    const exit = yield* Effect.exit(act(output))
    const { stdout, stderr } = yield* Terminal.TestTerminal
    return { exit, stdout: stdout(), stderr: stderr() }
  }).pipe(Effect.provide(Layer.provideMerge(Output.layer(given.json ?? false), Terminal.layerTest(given))))

const logs = (lines: ReadonlyArray<string>): DocumentOf<"logs"> => ({
  schema: "sigil.mcp.logs/1",
  server: "fs",
  lines
})

describe("Output", () => {
  it.effect("prints text for people, and no document", () =>
    Effect.gen(function* () {
      const { stdout, stderr } = yield* printing({}, (output) =>
        Effect.all([
          output.document("logs", logs(["a"])),
          output.text(["one", ["two ", bold("three")]]),
          output.note("four")
        ])
      )
      assert.equal(stdout, "one\ntwo three\n")
      assert.equal(stderr, "four\n")
    })
  )

  it.effect("prints one document on one line with --json, and nothing else", () =>
    Effect.gen(function* () {
      const { stdout, stderr } = yield* printing({ json: true }, (output) =>
        Effect.all([
          output.text(["one"]),
          output.note("two"),
          output.table(["A"], [["b"]]),
          output.document("logs", logs(["a"]))
        ])
      )
      assert.equal(stdout, '{"schema":"sigil.mcp.logs/1","server":"fs","lines":["a"]}\n')
      assert.equal(stderr, "")
    })
  )

  it.effect("indents a document on a terminal", () =>
    Effect.gen(function* () {
      const { stdout } = yield* printing({ json: true, tty: true }, (output) => output.document("logs", logs([])))
      assert.equal(stdout.split("\n")[1], '  "schema": "sigil.mcp.logs/1",')
    })
  )

  it.effect("keeps digits and harmless bytes in a document", () =>
    Effect.gen(function* () {
      const wire = parse('{"big":12345678901234567890}')
      const { stdout } = yield* printing({ json: true }, (output) =>
        output.document("tools_for", {
          schema: "sigil.mcp.tools_for/1",
          provider: "openai",
          tools: [wire, "\u009b2J\u202e"],
          left_out: []
        })
      )
      assert.include(stdout, "12345678901234567890")
      assert.include(stdout, "\\u009b2J\\u202e")
      assert.equal(JSON.parse(stdout).tools[1], "\u009b2J\u202e")
    })
  )

  it.effect("holds a command to one document", () =>
    Effect.gen(function* () {
      const { exit } = yield* printing({ json: true }, (output) =>
        Effect.zipRight(output.document("logs", logs([])), output.document("logs", logs([])))
      )
      assert.isTrue(Exit.isFailure(exit))
    })
  )

  it.effect("colours on a terminal only, and escapes everywhere", () =>
    Effect.gen(function* () {
      const line = [red("a\u001b[2J"), "\u202eb"]
      const act = (output: Output.Output["Type"]) => output.text([line])
      assert.equal(
        (yield* printing({ tty: true, colour: true }, act)).stdout,
        "\u001b[31ma\\u001b[2J\u001b[0m\\u202eb\n"
      )
      assert.equal((yield* printing({ tty: false, colour: true }, act)).stdout, "a\\u001b[2J\\u202eb\n")
      assert.equal((yield* printing({ tty: true, colour: false }, act)).stdout, "a\\u001b[2J\\u202eb\n")
    })
  )

  it.effect("shows one live line on a terminal and takes it away before other text", () =>
    Effect.gen(function* () {
      const { stderr } = yield* printing({ tty: true, columns: 12 }, (output) =>
        Effect.all([
          output.progress("starting"),
          output.progress("starting the server"),
          output.note("done"),
          output.progress("")
        ])
      )
      const erase = "\r\u001b[2K"
      assert.equal(stderr, `${erase}starting${erase}starting t…${erase}done\n`)
      const piped = yield* printing({}, (output) => output.progress("starting"))
      assert.equal(piped.stderr, "")
    })
  )

  it.effect("takes the live line away before others write to the terminal, in one write", () =>
    Effect.gen(function* () {
      const writes: Array<string> = []
      const given = yield* Terminal.Terminal
      const { output, shared } = Output.sharing(
        {
          ...given,
          writeError: (text) =>
            Effect.zipRight(
              Effect.sync(() => writes.push(text)),
              given.writeError(text)
            )
        },
        true
      )
      const erase = "\r\u001b[2K"
      yield* output.progress("starting")
      yield* shared.writeError("[block]\n")
      yield* shared.writeError("more\n")
      assert.deepEqual(writes, [`${erase}starting`, `${erase}[block]\n`, "more\n"])
      for (const other of [shared.write("text"), shared.readLine("name: ")]) {
        yield* output.progress("starting")
        writes.length = 0
        yield* other
        assert.deepEqual(writes[0], erase)
      }
    }).pipe(Effect.provide(Terminal.layerTest({ tty: true })))
  )

  it.effect("clips tables on a terminal only", () =>
    Effect.gen(function* () {
      const act = (output: Output.Output["Type"]) => output.table(["NAME", "RUNS"], [["fs", "npx -y some-package"]])
      assert.equal((yield* printing({ tty: true, columns: 20 }, act)).stdout, "NAME  RUNS\nfs    npx -y some-p…\n")
      assert.equal((yield* printing({ columns: 20 }, act)).stdout, "NAME  RUNS\nfs    npx -y some-package\n")
    })
  )

  it.effect("puts a failure into the document place, or on stderr when that is taken", () =>
    Effect.gen(function* () {
      const failure = usage(["mcp"], "It does not fit.")
      const text = yield* printing({}, (output) => output.failure(failure))
      assert.deepEqual([text.stdout, text.exit], ["", Exit.succeed(2)])
      assert.include(text.stderr, "error: It does not fit.\n")
      const json = yield* printing({ json: true }, (output) => output.failure(failure))
      assert.equal(JSON.parse(json.stdout).error.message, "It does not fit.")
      assert.equal(json.stderr, "")
      const after = yield* printing({ json: true }, (output) =>
        Effect.zipRight(output.document("logs", logs([])), output.failure(failure))
      )
      assert.equal(JSON.parse(after.stdout).schema, "sigil.mcp.logs/1")
      assert.include(after.stderr, "error: It does not fit.\n")
    })
  )
})

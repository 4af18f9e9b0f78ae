import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Argv from "../../src/cli/Argv.ts"
import { commands, groups } from "../../src/cli/Commands.ts"
import { attach, shapeOf } from "../../src/cli/CommandSpec.ts"
import { GlobalOptions } from "../../src/cli/GlobalOptions.ts"
import type { Handler } from "../../src/cli/Handler.ts"
import { declaring, interactionOf } from "../../src/cli/Interaction.ts"
import { program } from "../../src/cli/Main.ts"
import { Output } from "../../src/cli/Output.ts"
import { usage } from "../../src/cli/UsageError.ts"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import { layer as secretsLayer, Secrets } from "../../src/policy/Secrets.ts"
import { ClientFeatures } from "../../src/server/ClientFeatures.ts"
import * as Terminal from "../../src/platform/Terminal.ts"

const layers = (given: Parameters<typeof Terminal.layerTest>[0] = {}) =>
  Layer.merge(Terminal.layerTest(given), HostEnvironment.layerTest({}))

const sigil = (line: string, table?: Argv.Table, given: Parameters<typeof Terminal.layerTest>[0] = {}) =>
  Effect.gen(function* () {
    const code = yield* program(line === "" ? [] : line.split(" "), table)
    const { stdout, stderr } = yield* Terminal.TestTerminal
    return { code, stdout: stdout(), stderr: stderr() }
  }).pipe(Effect.provide(layers(given)))

/** A table with one command, `sigil try`, that does `act`. */
const trying = (act: Handler<unknown>): Argv.Table => ({
  commands: [
    attach(
      shapeOf({
        path: ["try"],
        section: "Tools",
        summary: "Try.",
        description: [],
        examples: [],
        args: [],
        options: {}
      }),
      () => Promise.resolve({ handler: act })
    )
  ],
  groups: []
})

describe("Main", () => {
  it.effect("runs a handler with the global options and takes its exit code", () =>
    Effect.gen(function* () {
      const table = trying(() =>
        Effect.gen(function* () {
          const globals = yield* GlobalOptions
          const output = yield* Output
          yield* output.text([`${globals.cwd} ${globals.strict}`])
          return 5
        })
      )
      assert.deepEqual(yield* sigil("--cwd /w try --strict-mcp-config", table), {
        code: 5,
        stdout: "/w true\n",
        stderr: ""
      })
    })
  )

  it.effect("closes the handler's scope before it gives the code", () =>
    Effect.gen(function* () {
      const table = trying(() =>
        Effect.gen(function* () {
          const output = yield* Output
          yield* Effect.addFinalizer(() => output.note("closed"))
          return 0
        })
      )
      assert.equal((yield* sigil("try", table)).stderr, "closed\n")
    })
  )

  it.effect("gives handlers a terminal that clears the live line first", () =>
    Effect.gen(function* () {
      const table = trying(() =>
        Effect.gen(function* () {
          const terminal = yield* Terminal.Terminal
          yield* Effect.flatMap(Output, (output) => output.progress("starting"))
          yield* terminal.writeError("[disclosure]\n")
          return 0
        })
      )
      const { stderr } = yield* sigil("try", table, { tty: true })
      assert.equal(stderr, "\r\u001b[2Kstarting\r\u001b[2K[disclosure]\n")
    })
  )

  it.effect("declares that it only looks, unless a command says who answers", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const look = Effect.sync(() => undefined).pipe(
        Effect.zipRight(ClientFeatures),
        Effect.tap((features) => Effect.sync(() => seen.push(features)))
      )
      const table = trying(() =>
        Effect.gen(function* () {
          yield* look
          yield* declaring(yield* interactionOf(undefined))(look)
          return 0
        })
      )
      yield* sigil("try", table)
      assert.deepEqual(seen, [
        { forms: false, urls: false, looking: true },
        { forms: false, urls: false }
      ])
    })
  )

  it.effect("prints a failure once and takes its exit code", () =>
    Effect.gen(function* () {
      const table = trying(() => Effect.fail(usage(["try"], "No.", { code: "SIGIL_DENIED", reason: "denied" })))
      const text = yield* sigil("try", table)
      assert.deepEqual([text.code, text.stdout], [4, ""])
      assert.equal(text.stderr.split("error: No.").length, 2)
      const json = yield* sigil("try --json", table)
      assert.deepEqual([json.code, json.stderr], [4, ""])
      assert.equal(JSON.parse(json.stdout).error.code, "SIGIL_DENIED")
    })
  )

  it.effect("reports a fault of its own in one line, its stack only with --debug", () =>
    Effect.gen(function* () {
      const table = trying(() => Effect.die(new TypeError("x is not\na function")))
      const { code, stderr } = yield* sigil("try", table)
      assert.equal(code, 1)
      assert.match(stderr, /^error: A fault inside sigil: x is not\nfix: .*\ncode: SIGIL_INTERNAL/)
      assert.match((yield* sigil("try -d", table)).stderr, /a function[^]*\n\s+at /)
      assert.equal(JSON.parse((yield* sigil("try --json", table)).stdout).error.code, "SIGIL_INTERNAL")
    })
  )

  it.effect("reports no secret that a run knew, also after the run is gone", () =>
    Effect.gen(function* () {
      const secret = "s3cret-of-a-run"
      const table = trying(() =>
        Effect.zipRight(
          Effect.flatMap(Secrets, (secrets) => secrets.register([secret])).pipe(Effect.provide(secretsLayer)),
          Effect.logWarning(`it was ${secret}`).pipe(Effect.zipRight(Effect.die(new TypeError(`${secret} is not`))))
        )
      )
      for (const line of ["try", "try --debug"]) {
        const { stdout, stderr } = yield* sigil(line, table)
        assert.include(stderr, "[hidden] is not")
        assert.include(stderr, "it was [hidden]")
        assert.notInclude(stdout + stderr, secret)
      }
    })
  )

  it.effect("reports a handler that cannot be loaded as a fault of its own", () =>
    Effect.gen(function* () {
      const [command] = trying(() => Effect.succeed(0)).commands
      if (command === undefined) return assert.fail()
      const broken = { ...command, load: () => Promise.reject(new Error("no such chunk")) }
      const { code, stderr } = yield* sigil("try", { commands: [broken], groups: [] })
      assert.equal(code, 1)
      assert.include(stderr, "no such chunk")
    })
  )

  it.effect("lets an interruption through, after the finalizers", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      const table = trying(() =>
        Effect.gen(function* () {
          yield* Effect.addFinalizer(() => Deferred.succeed(closed, undefined))
          yield* Deferred.succeed(started, undefined)
          return yield* Effect.never
        })
      )
      const fiber = yield* Effect.fork(sigil("try", table))
      yield* Deferred.await(started)
      const exit = yield* Fiber.interrupt(fiber)
      assert.isTrue(yield* Deferred.isDone(closed))
      assert.isTrue(Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause))
      const own = yield* Effect.exit(
        sigil(
          "try",
          trying(() => Effect.interrupt)
        )
      )
      assert.isTrue(Exit.isFailure(own) && Cause.isInterruptedOnly(own.cause))
    })
  )

  it.effect("logs to stderr, below warnings only with --debug", () =>
    Effect.gen(function* () {
      const table = trying(() => Effect.as(Effect.zipRight(Effect.logDebug("quiet"), Effect.logWarning("loud")), 0))
      const plain = yield* sigil("try --json", table)
      assert.equal(plain.stdout, "")
      assert.match(plain.stderr, /^[^\n]*loud\n$/)
      assert.match((yield* sigil("try --debug", table)).stderr, /quiet\n[^\n]*loud\n$/)
    })
  )

  it.effect("answers help, version and bare words without a handler", () =>
    Effect.gen(function* () {
      assert.match((yield* sigil("--version --json")).stdout, /^\d+\.\d+\.\d+\n$/)
      const bare = yield* sigil("")
      assert.equal(bare.code, 2)
      assert.include(bare.stdout, "mcp add")
      const json = yield* sigil("--json")
      assert.equal(json.code, 2)
      assert.equal(JSON.parse(json.stdout).error.code, "SIGIL_USAGE")
      const help = yield* sigil("mcp add --help", undefined, { tty: true, colour: true })
      assert.include(help.stdout, "\u001b[1mUsage\u001b[0m")
      assert.notInclude((yield* sigil("mcp add --help")).stdout, "\u001b")
    })
  )

  it.effect("explains codes", () =>
    Effect.gen(function* () {
      assert.include((yield* sigil("errors SIGIL_USAGE")).stdout, "exit: 2")
      const unknown = yield* sigil("errors SIGIL_USGE --json")
      assert.equal(unknown.code, 1)
      assert.deepEqual(JSON.parse(unknown.stdout).error.candidates, ["SIGIL_USAGE"])
      assert.include((yield* sigil("errors")).stdout, "SIGIL_INTERNAL")
    })
  )
})

describe("Handlers", () => {
  for (const command of commands) {
    it(`of 'sigil ${command.shape.path.join(" ")}' can be loaded`, async () => {
      assert.isFunction(await command.load())
    })
  }

  it("are the ones of the table", () => {
    assert.isAbove(commands.length, 10)
    assert.includeDeepMembers(
      groups.map(({ path }) => path),
      [["mcp"], ["artifact"]]
    )
  })
})

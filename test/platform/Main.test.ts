import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as fs from "node:fs"
import { type Bundled, bundle } from "./support/Bundle.ts"
import { child, eventually, lines, lives, outcome } from "./support/Processes.ts"

describe.runIf(process.platform !== "win32")("runMain", () => {
  let program: Bundled
  beforeAll(async () => {
    program = await bundle("MainProgram")
  })
  afterAll(() => program.remove())

  const start = (mode: string) => child(process.execPath, [program.file, mode])
  const run = (mode: string) => Effect.flatMap(start(mode), outcome)

  it.scopedLive("the program's number is the exit code, whatever handle is left open", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* run("number"), { code: 7, signal: null, out: "", err: "" })
      assert.deepStrictEqual(yield* run("stray"), { code: 4, signal: null, out: "", err: "" })
    })
  )

  it.scopedLive("megabytes arrive whole before the exit", () =>
    Effect.gen(function* () {
      for (const mode of ["big", "bigUnawaited"]) {
        const { code, out } = yield* run(mode)
        assert.strictEqual(code, 3)
        assert.strictEqual(out.length, 8_000_003)
        assert.isTrue(out.endsWith("end"))
      }
    })
  )

  it.scopedLive("a defect is one line and code 1", () =>
    Effect.gen(function* () {
      const { code, err } = yield* run("die")
      assert.strictEqual(code, 1)
      assert.match(err, /^sigil: .*broken\n$/)
    })
  )

  it.scopedLive("a fault outside the program tears it down", () =>
    Effect.gen(function* () {
      const { code, err } = yield* run("thrown")
      assert.strictEqual(code, 1)
      assert.match(err, /from outside\n/)
      assert.match(err, /torn down\n/)
    })
  )

  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129]
  ] as const) {
    it.scopedLive(`${signal} runs the finalizers and gives ${code}`, () =>
      Effect.gen(function* () {
        const running = yield* start("waiting")
        yield* lines(running.stdout, 1)
        const end = yield* Effect.fork(outcome(running))
        yield* Effect.yieldNow()
        running.kill(signal)
        const { code: seen, err } = yield* Fiber.join(end)
        assert.deepStrictEqual([seen, err], [code, "torn down\n"])
      })
    )
  }

  it.scopedLive("a second signal leaves at once and takes the servers along", () =>
    Effect.gen(function* () {
      const running = yield* start("stubborn")
      const [pid = ""] = yield* lines(running.stdout, 1)
      running.kill("SIGINT")
      // Its finalizer says so and then gives the server ten seconds; the second signal comes within them.
      yield* lines(running.stderr, 1)
      const end = yield* Effect.fork(outcome(running))
      yield* Effect.yieldNow()
      running.kill("SIGTERM")
      const { code } = yield* Fiber.join(end)
      assert.strictEqual(code, 130)
      yield* eventually(() => !lives(Number(pid)))
    })
  )

  it.scopedLive("a reader that goes away ends the program quietly with 0", () =>
    Effect.gen(function* () {
      const running = yield* start("endless")
      yield* Effect.async<void>((resume) => {
        running.stdout.once("data", () => resume(Effect.void))
      })
      running.stdout.destroy()
      const { code, err } = yield* outcome(running)
      assert.deepStrictEqual([code, err], [0, "torn down\n"])
    })
  )

  describe("Terminal", () => {
    it.scopedLive("reads all of stdin, and refuses what is not text", () =>
      Effect.gen(function* () {
        const good = yield* start("echo")
        good.stdin.end("ü".repeat(200_000))
        assert.include((yield* outcome(good)).out, "200000:")
        const bad = yield* start("echo")
        bad.stdin.end(Buffer.from([0xff]))
        assert.deepInclude(yield* outcome(bad), { code: 1, err: "invalid_utf8\n" })
      })
    )

    it.scopedLive("a pipe is never asked", () =>
      Effect.gen(function* () {
        const running = yield* start("ask")
        running.stdin.end("yes\nyes\n")
        assert.deepInclude(yield* outcome(running), { out: "answers [null,null,null]\n", err: "" })
      })
    )

    it.runIf(fs.existsSync("/usr/bin/script"))("asks on a terminal, keeps what was typed ahead, ends with Ctrl-D", () =>
      Effect.gen(function* () {
        const running = yield* child("script", ["-qec", `'${process.execPath}' '${program.file}' ask`, "/dev/null"])
        const end = yield* Effect.fork(outcome(running))
        running.stdin.write("first\nsecond\n\u0004")
        const { out } = yield* Fiber.join(end)
        assert.include(out, 'answers ["first","second",null]')
        assert.include(out, "one? ")
      }).pipe(Effect.scoped, Effect.runPromise)
    )
  })
})

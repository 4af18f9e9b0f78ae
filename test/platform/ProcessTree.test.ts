import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { killAllNow, spawn, type SpawnError } from "../../src/platform/ProcessTree.ts"
import * as Reaper from "../../src/platform/Reaper.ts"
import { carriers, eventually, killQuietly, lines, lives, planFor } from "./support/Processes.ts"

/** Starts a tree in a mode and waits for its first line. */
const started = (mode: string, graceMs = 200) =>
  Effect.gen(function* () {
    const plan = planFor(mode, { graceMs })
    const tree = yield* spawn(plan)
    const [first = ""] = yield* lines(tree.stdout, 1)
    return { plan, tree, first }
  })

const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "sigil-tree-"))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
)

describe.runIf(process.platform === "linux")("ProcessTree", () => {
  it.scopedLive("a server that leaves on end of input needs no signal", () =>
    Effect.gen(function* () {
      const { tree } = yield* started("well", 10_000)
      const report = yield* tree.terminate
      assert.deepInclude(report, { complete: true, survivors: [], steps: ["stdin_closed"] })
      assert.deepStrictEqual(yield* Deferred.await(tree.exited), { code: 0, signal: null })
      assert.isFalse(tree.isRunning())
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("the environment is the plan's and the marker, nothing of the host", () =>
    Effect.gen(function* () {
      const plan = planFor("", { file: "/usr/bin/env", args: [], env: { ONLY: "this" } })
      const tree = yield* spawn(plan)
      const said = yield* lines(tree.stdout, 2)
      assert.sameMembers([...said], ["ONLY=this", `SIGIL_GENERATION=${plan.generation}`])
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("a child that ignores TERM is killed", () =>
    Effect.gen(function* () {
      const { tree, plan } = yield* started("deaf")
      const report = yield* tree.terminate
      assert.deepInclude(report, { complete: true, steps: ["stdin_closed", "sigterm", "sigkill"] })
      assert.deepStrictEqual(carriers(plan.generation), [])
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("a child that leaves on TERM is not killed", () =>
    Effect.gen(function* () {
      const { tree } = yield* started("polite", 2_000)
      // The stdin step takes its whole grace here; what counts is that no third step was needed.
      const report = yield* tree.terminate
      assert.deepStrictEqual(report.steps, ["stdin_closed", "sigterm"])
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("a descendant in its own session is found by the marker", () =>
    Effect.gen(function* () {
      const { tree, first } = yield* started("escaped")
      assert.isTrue(lives(Number(first)))
      const report = yield* tree.terminate
      assert.deepInclude(report, { complete: true, steps: ["stdin_closed", "sweep"] })
      assert.isFalse(lives(Number(first)))
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("a descendant in its own group without the marker is found by the session", () =>
    Effect.gen(function* () {
      const { tree, first } = yield* started("regrouped")
      const report = yield* tree.terminate
      assert.isTrue(report.complete)
      assert.include(report.steps, "sweep")
      assert.isFalse(lives(Number(first)))
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("a member of the group that outlives its leader is ended", () =>
    Effect.gen(function* () {
      const { tree, first } = yield* started("left")
      assert.deepStrictEqual(yield* Deferred.await(tree.exited), { code: 0, signal: null })
      const report = yield* tree.terminate
      assert.deepInclude(report, { complete: true, steps: ["sigterm", "sigkill"] })
      assert.isFalse(lives(Number(first)))
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("a member that follows its leader by itself gets no signal", () =>
    Effect.gen(function* () {
      const tree = yield* spawn(planFor("brief", { graceMs: 5_000 }))
      const report = yield* tree.terminate
      assert.deepInclude(report, { complete: true, steps: ["stdin_closed"] })
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("output that nobody reads does not keep a server from leaving", () =>
    Effect.gen(function* () {
      const tree = yield* spawn(planFor("flood", { graceMs: 5_000 }))
      const report = yield* tree.terminate
      assert.deepInclude(report, { complete: true, steps: ["stdin_closed"] })
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("last words are read before the pipes are destroyed", () =>
    Effect.gen(function* () {
      const { tree } = yield* started("words", 5_000)
      let said = ""
      tree.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()))
      tree.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()))
      yield* tree.terminate
      assert.include(said, "last-out\n")
      assert.include(said, "last-err\n")
      assert.isTrue(tree.stdout.destroyed && tree.stderr.destroyed && tree.stdin.destroyed)
      assert.deepStrictEqual(yield* Deferred.await(tree.exited), { code: 3, signal: null })
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("a crash is a value, and writing to the dead child harms nobody", () =>
    Effect.gen(function* () {
      const tree = yield* spawn(planFor("crash"))
      assert.deepStrictEqual(yield* Deferred.await(tree.exited), { code: null, signal: "SIGKILL" })
      tree.stdin.write("x".repeat(1_000_000))
      const report = yield* tree.terminate
      assert.deepInclude(report, { complete: true, steps: [] })
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("every caller of terminate gets the same report, and the scope's end is one of them", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const tree = yield* Scope.extend(spawn(planFor("deaf", { graceMs: 50 })), scope)
      const [one, two] = yield* Effect.all([tree.terminate, tree.terminate], { concurrency: "unbounded" })
      assert.strictEqual(one, two)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* tree.terminate, one)
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("an interruption does not shorten the end", () =>
    Effect.gen(function* () {
      const { tree, plan } = yield* started("deaf", 100)
      const fiber = yield* Effect.fork(tree.terminate)
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(carriers(plan.generation), [])
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("an interruption at any moment of a start leaves nothing", () =>
    Effect.gen(function* () {
      for (let turns = 0; turns < 12; turns += 1) {
        const plan = planFor("tree", { graceMs: 20 })
        const fiber = yield* Effect.fork(Effect.scoped(Effect.zipRight(spawn(plan), Effect.never)))
        for (let turn = 0; turn < turns; turn += 1) yield* Effect.yieldNow()
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(carriers(plan.generation), [], `after ${turns} turns`)
      }
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("killAllNow ends the groups of live trees at once", () =>
    Effect.gen(function* () {
      const { tree } = yield* started("deaf")
      killAllNow()
      assert.deepStrictEqual(yield* Deferred.await(tree.exited), { code: null, signal: "SIGKILL" })
    }).pipe(Effect.provide(Reaper.layerNone))
  )

  it.scopedLive("an escaped process of another generation is left alone", () =>
    Effect.gen(function* () {
      const one = yield* started("escaped")
      const two = yield* started("escaped")
      yield* one.tree.terminate
      assert.isTrue(lives(Number(two.first)))
      yield* Effect.sync(() => killQuietly(Number(two.first)))
      yield* eventually(() => !lives(Number(two.first)))
    }).pipe(Effect.provide(Reaper.layerNone))
  )
})

describe("SpawnError", () => {
  const failure = (plan: Parameters<typeof spawn>[0]) =>
    Effect.scoped(spawn(plan)).pipe(
      Effect.match({
        onSuccess: () => ({ code: "started", reason: "" }),
        onFailure: (error: SpawnError) => ({ code: error.code, reason: error.reason })
      }),
      Effect.provide(Reaper.layerNone)
    )

  it.scopedLive("tells apart what is missing", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const script = path.join(at, "script")
      fs.writeFileSync(script, "#!/nonexistent/interpreter -x\n", { mode: 0o755 })
      const plain = path.join(at, "plain")
      fs.writeFileSync(plain, "#!/bin/sh\n", { mode: 0o644 })
      const cases: ReadonlyArray<readonly [Partial<Parameters<typeof spawn>[0]>, string, string]> = [
        [{ file: path.join(at, "nothing") }, "SIGIL_COMMAND_NOT_FOUND", "not_found"],
        [{ cwd: path.join(at, "nothing") }, "SIGIL_SPAWN_FAILED", "cwd_missing"],
        [{ file: path.join(at, "no"), cwd: path.join(at, "no") }, "SIGIL_SPAWN_FAILED", "cwd_missing"],
        [{ cwd: plain }, "SIGIL_SPAWN_FAILED", "cwd_unusable"],
        [{ file: script }, "SIGIL_COMMAND_NOT_FOUND", "interpreter_missing"],
        [{ file: plain }, "SIGIL_COMMAND_NOT_FOUND", "not_executable"],
        [{ file: at }, "SIGIL_COMMAND_NOT_FOUND", "not_executable"],
        [{ args: ["x".repeat(3_000_000)] }, "SIGIL_SPAWN_FAILED", "arguments_too_long"],
        [{ args: ["a\0b"] }, "SIGIL_SPAWN_FAILED", "spawn_failed"]
      ]
      for (const [change, code, reason] of cases) {
        assert.deepStrictEqual(
          yield* failure(planFor("well", change)),
          { code, reason },
          JSON.stringify(change).slice(0, 80)
        )
      }
    })
  )
})

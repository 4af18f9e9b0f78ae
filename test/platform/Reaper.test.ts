import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import { GenerationId } from "../../src/base/Ids.ts"
import * as Proc from "../../src/platform/Proc.ts"
import * as Reaper from "../../src/platform/Reaper.ts"
import { type Bundled, bundle } from "./support/Bundle.ts"
import { child, eventually, killQuietly, lines, lives, outcome, treeScript } from "./support/Processes.ts"

interface Line {
  readonly leader: number
  readonly reaper: number
  readonly said: string
}

describe.runIf(process.platform === "linux")("Reaper", () => {
  let host: Bundled
  beforeAll(async () => {
    host = await bundle("KilledHost")
  })
  afterAll(() => host.remove())

  /** A host with one tree in a mode; what it printed and the pids that the tree printed. */
  const hosted = (mode: string, count: number) =>
    Effect.gen(function* () {
      const running = yield* child(process.execPath, [host.file, "/bin/sh", treeScript, mode])
      const pids: Array<number> = []
      let facts: Line | undefined
      while (pids.length < count) {
        const [line = ""] = yield* lines(running.stdout, 1)
        // The program prints this shape.
        facts = JSON.parse(line) as Line
        pids.push(...facts.said.trim().split("\n").map(Number))
      }
      assert.isDefined(facts)
      return { running, leader: facts.leader, reaper: facts.reaper, pids }
    })

  it.scopedLive("a host killed with KILL leaves nothing", () =>
    Effect.gen(function* () {
      const { running, leader, reaper, pids } = yield* hosted("tree", 3)
      assert.lengthOf(pids, 3)
      const all = [leader, reaper, ...pids]
      assert.isTrue(all.every(lives), "everything runs before")
      running.kill("SIGKILL")
      yield* eventually(() => !all.some(lives))
    })
  )

  it.scopedLive("it ignores the signals of a terminal and has a session and an environment of its own", () =>
    Effect.gen(function* () {
      const { running, leader, reaper, pids } = yield* hosted("tree", 3)
      assert.strictEqual(Proc.readStat(reaper)?.session, reaper)
      assert.isFalse(Proc.environmentHas(reaper, "SIGIL_GENERATION="))
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(reaper, signal)
      running.kill("SIGKILL")
      yield* eventually(() => ![leader, reaper, ...pids].some(lives))
    })
  )

  it.scopedLive("a host that ends well takes the reaper along and is not kept by it", () =>
    Effect.gen(function* () {
      const { running, reaper } = yield* hosted("well", 1)
      const end = yield* Effect.fork(outcome(running))
      running.stdin.write("close\n")
      const { code, err } = yield* end.await.pipe(Effect.flatten)
      assert.deepStrictEqual({ code, err }, { code: 0, err: "" })
      yield* eventually(() => !lives(reaper))
    })
  )

  it.scopedLive("a pid that belongs to somebody else by now is left alone", () =>
    Effect.gen(function* () {
      // Both lead a group of their own, as a reused pid might; only one is what was registered.
      const sleeper = yield* child("setsid", ["sleep", "300"])
      const ours = yield* child("setsid", ["sleep", "300"])
      yield* eventually(() => [sleeper, ours].every((one) => Proc.readStat(one.pid ?? 0)?.session === one.pid))
      const reaper = yield* Effect.gen(function* () {
        const reaper = yield* Reaper.Reaper
        reaper.register(
          sleeper.pid ?? 0,
          (Proc.readStat(sleeper.pid ?? 0)?.startTime ?? 0) + 1,
          GenerationId(randomUUID())
        )
        reaper.register(ours.pid ?? 0, Proc.readStat(ours.pid ?? 0)?.startTime, GenerationId(randomUUID()))
        assert.strictEqual(reaper.status(), "running")
        return reaper.pid() ?? 0
      }).pipe(Effect.provide(Reaper.layer))
      // The layer is closed: the reaper strikes and leaves.
      yield* eventually(() => !lives(reaper) && !lives(ours.pid ?? 0))
      assert.isTrue(lives(sleeper.pid ?? 0))
    })
  )

  it.scopedLive("an announced tree is found by its marker alone, a withdrawn one is not touched", () =>
    Effect.gen(function* () {
      const announced = GenerationId(randomUUID())
      const retracted = GenerationId(randomUUID())
      const withdrawn = GenerationId(randomUUID())
      const one = yield* child("sleep", ["300"], { SIGIL_GENERATION: announced })
      const two = yield* child("sleep", ["300"], { SIGIL_GENERATION: retracted })
      const three = yield* child("sleep", ["300"], { SIGIL_GENERATION: withdrawn })
      const pid = three.pid ?? 0
      yield* eventually(() => Proc.readStat(pid)?.command === "sleep")
      const reaper = yield* Effect.gen(function* () {
        const reaper = yield* Reaper.Reaper
        reaper.announce(announced)
        reaper.announce(retracted)
        reaper.announce(withdrawn)
        reaper.register(pid, Proc.readStat(pid)?.startTime, withdrawn)
        reaper.retract(retracted)
        reaper.withdraw(pid, withdrawn)
        return reaper.pid() ?? 0
      }).pipe(Effect.provide(Reaper.layer))
      yield* eventually(() => !lives(reaper) && !lives(one.pid ?? 0))
      assert.isTrue(lives(two.pid ?? 0) && lives(pid))
    })
  )

  it.scopedLive("a member with the marker proves a group whose leader is gone", () =>
    Effect.gen(function* () {
      const generation = GenerationId(randomUUID())
      // In the group of the shell that leaves: one member with the marker, one without.
      const script = "sleep 300 & echo $!; env -u SIGIL_GENERATION sleep 300 & echo $!"
      const leader = yield* child("setsid", ["sh", "-c", script], { SIGIL_GENERATION: generation })
      const printed = yield* lines(leader.stdout, 2)
      const [marked = 0, bare = 0] = printed.map(Number)
      yield* Effect.addFinalizer(() => Effect.sync(() => [marked, bare].forEach(killQuietly)))
      yield* eventually(() => !lives(leader.pid ?? 0) && Proc.readStat(bare)?.command === "sleep")
      assert.isFalse(Proc.environmentHas(bare, `SIGIL_GENERATION=${generation}`))
      yield* Effect.map(Reaper.Reaper, (reaper) => reaper.register(leader.pid ?? 0, 1, generation)).pipe(
        Effect.provide(Reaper.layer)
      )
      yield* eventually(() => !lives(marked) && !lives(bare))
    })
  )

  it.scopedLive("one that was killed is started again with all it has to guard", () =>
    Effect.gen(function* () {
      const generation = GenerationId(randomUUID())
      const guarded = yield* child("sleep", ["300"], { SIGIL_GENERATION: generation })
      yield* Effect.gen(function* () {
        const reaper = yield* Reaper.Reaper
        reaper.announce(generation)
        const first = reaper.pid() ?? 0
        killQuietly(first)
        yield* eventually(() => reaper.pid() !== undefined && reaper.pid() !== first)
        assert.strictEqual(reaper.status(), "running")
      }).pipe(Effect.provide(Reaper.layer))
      yield* eventually(() => !lives(guarded.pid ?? 0))
    })
  )

  it.scopedLive("nothing is started before the first registration", () =>
    Effect.gen(function* () {
      const reaper = yield* Reaper.Reaper
      assert.deepStrictEqual([reaper.status(), reaper.pid()], ["idle", undefined])
    }).pipe(Effect.provide(Reaper.layer))
  )
})

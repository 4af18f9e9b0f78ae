import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import * as PidNamespace from "../../src/platform/PidNamespace.ts"
import { killAllNow, spawn, type SpawnPlan } from "../../src/platform/ProcessTree.ts"
import { type Bundled, bundle } from "./support/Bundle.ts"
import { ask, real, running, uniqueSleep, vanishing, withLaunchers } from "./support/Launchers.ts"
import { carriers, child, eventually, killQuietly, lines, planFor } from "./support/Processes.ts"

/** A host whose `unshare` is the given script, which logs each of its starts. */
const withScript = (script: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "sigil-unshare-"))),
      (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
    ),
    (folder) => {
      const log = path.join(folder, "log")
      fs.writeFileSync(path.join(folder, "unshare"), `#!/bin/sh\necho "$$" >>${log}\n${script}\n`, { mode: 0o755 })
      return {
        layer: PidNamespace.layer.pipe(Layer.provide(HostEnvironment.layerTest({ variables: { PATH: folder } }))),
        starts: () => (fs.existsSync(log) ? fs.readFileSync(log, "utf8").trim().split("\n").map(Number) : [])
      }
    }
  )

/** Whether `unshare` makes a PID namespace here in any way, asked without the code under test. */
const systemCan = (): boolean =>
  [[], ["--user", "--map-current-user"]].some(
    (options) =>
      spawnSync("unshare", [...options, "--pid", "--fork", "--kill-child", "/bin/sh", "-c", "test $$ = 1"], {
        stdio: "ignore",
        timeout: 5_000
      }).status === 0
  )

describe("the question whether there are PID namespaces", () => {
  it.scopedLive("is answered as the system would", () =>
    Effect.gen(function* () {
      const receipt = yield* Effect.provide(ask, real)
      assert.equal(receipt._tag, systemCan() ? "Available" : "Unavailable")
    })
  )

  it.scopedLive("is answered with a way that works, or with a reason and a remedy", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        const tree = yield* spawn(planFor("", { launcher, args: ["-c", 'echo "$$"; exec cat'] }))
        assert.deepEqual(yield* lines(tree.stdout, 1), ["2"])
      })
    )
  )

  it.scopedLive("needs Linux", () =>
    Effect.gen(function* () {
      const host = yield* HostEnvironment.HostEnvironment
      const mac = Layer.succeed(HostEnvironment.HostEnvironment, { ...host, platform: "darwin" })
      const receipt = yield* Effect.provide(ask, PidNamespace.layer.pipe(Layer.provide(mac)))
      assert.deepInclude(receipt, { _tag: "Unavailable", reason: "not_linux" })
    }).pipe(Effect.provide(HostEnvironment.layer))
  )

  it.scopedLive("needs unshare on sigil's own PATH", () =>
    Effect.gen(function* () {
      const host = HostEnvironment.layerTest({ variables: { PATH: "/nonexistent" } })
      const receipt = yield* Effect.provide(ask, PidNamespace.layer.pipe(Layer.provide(host)))
      assert.deepInclude(receipt, { _tag: "Unavailable", reason: "unshare_missing" })
    })
  )

  it.scopedLive("is asked on demand, once, and a refusal is kept with the system's words", () =>
    Effect.gen(function* () {
      const { layer, starts } = yield* withScript("echo 'unshare failed: Operation not permitted' >&2; exit 1")
      const context = yield* Layer.build(layer)
      assert.lengthOf(starts(), 0)
      const receipt = yield* Effect.provide(ask, context)
      assert.deepInclude(receipt, { _tag: "Unavailable", reason: "refused" })
      assert.include(receipt._tag === "Unavailable" ? receipt.text : "", "Operation not permitted")
      const tried = starts().length
      assert.isAbove(tried, 0)
      assert.strictEqual(yield* Effect.provide(ask, context), receipt)
      assert.lengthOf(starts(), tried)
    })
  )

  it.scopedLive("does not believe a program that makes no namespace", () =>
    Effect.gen(function* () {
      const { layer } = yield* withScript('while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
      const receipt = yield* Effect.provide(ask, layer)
      assert.deepInclude(receipt, { _tag: "Unavailable", reason: "refused" })
    })
  )

  it.scopedLive("ends when the program does not, and leaves nothing", () =>
    Effect.gen(function* () {
      const seconds = uniqueSleep()
      const { layer, starts } = yield* withScript(`trap '' TERM; sleep ${seconds}`)
      const receipt = yield* Effect.provide(ask, layer)
      assert.deepInclude(receipt, { _tag: "Unavailable", reason: "refused" })
      assert.lengthOf(starts(), 1)
      yield* eventually(() => running(seconds).length === 0)
    })
  )
})

describe("a server in a PID namespace", () => {
  /** Starts a mode of the script and waits for its first line. */
  const started = (launcher: PidNamespace.Launcher, mode: string, given: Partial<SpawnPlan> = {}) =>
    Effect.gen(function* () {
      const plan = planFor(mode, { launcher, ...given })
      const tree = yield* spawn(plan)
      const [first = ""] = yield* lines(tree.stdout, 1)
      return { plan, tree, first }
    })

  it.scopedLive("that leaves on end of input needs no signal", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        const { tree } = yield* started(launcher, "well", { graceMs: 10_000 })
        const report = yield* tree.terminate
        assert.deepInclude(report, { complete: true, survivors: [], steps: ["stdin_closed"] })
        assert.deepStrictEqual(yield* Deferred.await(tree.exited), { code: 0, signal: null })
      })
    )
  )

  it.scopedLive("has the plan's environment and the marker, and the plan's directory", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        const env = { ONLY: "this", "no.identifier": "x", PWD: "/elsewhere" }
        const plan = planFor("", { launcher, file: "/usr/bin/env", args: [], env })
        const said = yield* lines((yield* spawn(plan)).stdout, 4)
        const expected = ["ONLY=this", "no.identifier=x", "PWD=/elsewhere", `SIGIL_GENERATION=${plan.generation}`]
        assert.sameMembers([...said], expected)
        const where = yield* spawn(planFor("", { launcher, file: "/bin/pwd", args: ["-P"], cwd: "/usr" }))
        assert.deepEqual(yield* lines(where.stdout, 1), ["/usr"])
      })
    )
  )

  it.scopedLive("keeps its exit code and its last words", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        const { tree } = yield* started(launcher, "words", { graceMs: 5_000 })
        let said = ""
        tree.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()))
        tree.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()))
        yield* tree.terminate
        assert.include(said, "last-out\n")
        assert.include(said, "last-err\n")
        assert.deepStrictEqual(yield* Deferred.await(tree.exited), { code: 3, signal: null })
      })
    )
  )

  it.scopedLive("that handles TERM gets to use its handler", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        const args = ["-c", "trap 'echo handled; exit 6' TERM; echo ready; while :; do sleep 0.05; done"]
        const { tree } = yield* started(launcher, "", { args, graceMs: 600 })
        let said = ""
        tree.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()))
        const report = yield* tree.terminate
        assert.deepInclude(report, { complete: true, steps: ["stdin_closed", "sigterm"] })
        assert.include(said, "handled")
        assert.deepStrictEqual(yield* Deferred.await(tree.exited), { code: 6, signal: null })
      })
    )
  )

  it.scopedLive("that has no handler leaves on TERM as it would elsewhere", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        const { tree } = yield* started(launcher, "", { args: ["-c", "echo ready; exec sleep 300"], graceMs: 600 })
        const report = yield* tree.terminate
        assert.deepInclude(report, { complete: true, steps: ["stdin_closed", "sigterm"] })
      })
    )
  )

  it.scopedLive("that made a session of its own gets TERM as well", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        const script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"
        const given = { file: "/usr/bin/setsid", args: ["/bin/sh", "-c", script], graceMs: 600 }
        const { tree } = yield* started(launcher, "", given)
        const report = yield* tree.terminate
        assert.deepInclude(report, { complete: true, steps: ["stdin_closed", "sigterm"] })
      })
    )
  )

  it.scopedLive("that ignores TERM is killed with everything it started", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        for (const mode of ["deaf", "tree"]) {
          const { tree, plan } = yield* started(launcher, mode)
          const report = yield* tree.terminate
          assert.deepInclude(report, { complete: true, steps: ["stdin_closed", "sigterm", "sigkill"] })
          assert.deepStrictEqual(carriers(plan.generation), [])
        }
      })
    )
  )

  it.scopedLive("takes along what left session, group and environment; without one that survives", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        const outside = uniqueSleep()
        const plain = yield* spawn(planFor("", vanishing(outside)))
        yield* lines(plain.stdout, 1)
        yield* plain.terminate
        const survivors = running(outside)
        yield* Effect.sync(() => survivors.forEach(killQuietly))
        assert.lengthOf(survivors, 1)

        const inside = uniqueSleep()
        const { tree } = yield* started(launcher, "", vanishing(inside))
        yield* eventually(() => running(`sleep ${inside}`).length === 1)
        const report = yield* tree.terminate
        assert.deepInclude(report, { complete: true, survivors: [], steps: ["stdin_closed"] })
        assert.deepStrictEqual(running(inside), [])
      })
    )
  )

  it.scopedLive("is gone after the last resort", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        const seconds = uniqueSleep()
        const { tree } = yield* started(launcher, "", vanishing(seconds))
        killAllNow()
        yield* Deferred.await(tree.exited)
        yield* eventually(() => running(seconds).length === 0)
        assert.isTrue((yield* tree.terminate).complete)
      })
    )
  )

  it.scopedLive("that the system cannot execute is the same typed failure as elsewhere", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        const folder = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-tree-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true })))
        const script = path.join(folder, "script")
        fs.writeFileSync(script, "#!/nonexistent/interpreter\n", { mode: 0o755 })
        const reasonOf = (change: Partial<SpawnPlan>) =>
          Effect.map(Effect.flip(spawn(planFor("well", { launcher, ...change }))), ({ reason }) => reason)
        assert.equal(yield* reasonOf({ file: script }), "interpreter_missing")
        assert.equal(yield* reasonOf({ file: path.join(folder, "nothing") }), "not_found")
        assert.equal(yield* reasonOf({ cwd: path.join(folder, "nothing") }), "cwd_missing")
      })
    )
  )
})

describe("a server in a PID namespace whose host is killed", () => {
  let host: Bundled
  beforeAll(async () => {
    host = await bundle("KilledHost")
  })
  afterAll(() => host.remove())

  it.scopedLive("leaves nothing", () =>
    withLaunchers((launcher) =>
      Effect.gen(function* () {
        const seconds = uniqueSleep()
        const { file, args } = PidNamespace.launch(launcher, "/bin/sh", vanishing(seconds).args ?? [])
        const killed = yield* child(process.execPath, [host.file, file, ...args])
        yield* lines(killed.stdout, 1)
        assert.isAbove(running(seconds).length, 0)
        killed.kill("SIGKILL")
        yield* eventually(() => running(seconds).length === 0)
      })
    )
  )
})

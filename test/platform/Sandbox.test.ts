import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import type { Launcher } from "../../src/platform/Launcher.ts"
import { killAllNow, spawn, type SpawnPlan } from "../../src/platform/ProcessTree.ts"
import * as Reaper from "../../src/platform/Reaper.ts"
import * as Sandbox from "../../src/platform/Sandbox.ts"
import type { LayoutRequest } from "../../src/platform/SandboxLayout.ts"
import { type Bundled, bundle } from "./support/Bundle.ts"
import { running, uniqueSleep, vanishing } from "./support/Launchers.ts"
import { carriers, child, eventually, lines, planFor, treeScript } from "./support/Processes.ts"

let workspace = ""
beforeAll(() => {
  workspace = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-sandbox-")))
})
afterAll(() => fs.rmSync(workspace, { recursive: true, force: true }))

const request = (more: Partial<LayoutRequest> = {}): LayoutRequest => ({
  workspace,
  workspaceAccess: "writable",
  cwd: workspace,
  network: "denied",
  homeDirectory: "/nonexistent",
  readablePaths: [path.dirname(treeScript)],
  writablePaths: [],
  temporary: [],
  privateDirectories: [],
  privateFiles: [],
  sockets: [],
  ...more
})
const ask = (given = request()) => Effect.flatMap(Sandbox.Sandboxes, ({ receipt }) => receipt(given))
const real = Sandbox.layer.pipe(Layer.provide(HostEnvironment.layer))

/** Whether `bwrap` works here, asked without the code under test. */
const systemCan = (): boolean =>
  spawnSync("bwrap", ["--unshare-user", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "/bin/true"], {
    stdio: "ignore",
    timeout: 5_000
  }).status === 0

/** Runs a test in the sandbox of this system; where there is none, the answer must say why and what helps. */
const withSandbox = <A, E, R>(use: (launcher: Launcher) => Effect.Effect<A, E, R>, given = request()) =>
  Effect.gen(function* () {
    const receipt = yield* ask(given)
    if (receipt._tag === "Unavailable") return assert.isDefined(receipt.fix)
    assert.deepEqual(Sandbox.lacks(receipt), [])
    yield* use(Sandbox.launcherOf(receipt, {}))
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(real, Reaper.layerNone)))

/** A host whose `bwrap` is the given script, which logs each of its starts. */
const withScript = (script: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "sigil-bwrap-"))),
      (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
    ),
    (folder) => {
      const log = path.join(folder, "log")
      const version = '[ "$1" = --version ] && { echo bubblewrap 9.8.7; exit; }'
      const text = `#!/bin/sh\nPATH=/usr/bin:/bin\n${version}\necho "$$" >>${log}\n${script}\n`
      fs.writeFileSync(path.join(folder, "bwrap"), text, { mode: 0o755 })
      const variables = { PATH: `${folder}:/usr/bin:/bin` }
      return {
        folder,
        layer: Sandbox.layer.pipe(Layer.provide(HostEnvironment.layerTest({ variables }))),
        starts: () => (fs.existsSync(log) ? fs.readFileSync(log, "utf8").trim().split("\n").length : 0)
      }
    }
  )

describe("the question whether there is a sandbox", () => {
  it.scopedLive("is answered as the system would, with proof", () =>
    Effect.gen(function* () {
      const receipt = yield* Effect.provide(ask(), real)
      assert.equal(receipt._tag, systemCan() ? "Available" : "Unavailable")
      if (receipt._tag === "Unavailable") return
      const all = { network: true, processTree: true, fileSystem: true, privileges: true, environment: true }
      assert.deepEqual(receipt.proof, all)
      const shared = yield* Effect.provide(ask(request({ network: "shared", workspaceAccess: "read-only" })), real)
      assert.deepInclude(shared, { _tag: "Available", network: "shared", proof: { ...all, network: false } })
    })
  )

  it.scopedLive("needs Linux, and bwrap on sigil's own PATH but outside of where servers write", () =>
    Effect.gen(function* () {
      const host = yield* HostEnvironment.HostEnvironment
      const under = (more: Partial<Context.Tag.Service<typeof HostEnvironment.HostEnvironment>>) =>
        Effect.provide(
          ask(),
          Sandbox.layer.pipe(Layer.provide(Layer.succeed(HostEnvironment.HostEnvironment, { ...host, ...more })))
        )
      assert.deepInclude(yield* under({ platform: "darwin" }), { _tag: "Unavailable", reason: "not_linux" })
      const planted = path.join(workspace, "bin")
      fs.mkdirSync(planted, { recursive: true })
      for (const name of ["bwrap", "env"]) fs.writeFileSync(path.join(planted, name), "#!/bin/sh\n", { mode: 0o755 })
      const elsewhere = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-path-")))
      yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(elsewhere, { recursive: true })))
      fs.symlinkSync(planted, path.join(elsewhere, "folder"))
      fs.symlinkSync(path.join(planted, "bwrap"), path.join(elsewhere, "bwrap"))
      for (const PATH of ["/nonexistent", planted, path.join(elsewhere, "folder"), elsewhere]) {
        const receipt = yield* under({ get: (name) => (name === "PATH" ? PATH : undefined) })
        assert.deepInclude(receipt, { _tag: "Unavailable", reason: "bubblewrap_missing" })
        // What is there and not to be trusted is not said to be missing.
        const text = receipt._tag === "Unavailable" ? receipt.text : ""
        if (PATH === "/nonexistent") assert.include(text, "was not found")
        else assert.include(text, `servers may write where it stands ('${workspace}')`)
      }
    }).pipe(Effect.provide(HostEnvironment.layer))
  )

  it.scopedLive("is asked on demand, once for a layout, and a refusal is kept with the system's words", () =>
    Effect.gen(function* () {
      const { layer, starts } = yield* withScript("echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
      const context = yield* Layer.build(layer)
      assert.equal(starts(), 0)
      const receipt = yield* Effect.provide(ask(), context)
      assert.deepInclude(receipt, { _tag: "Unavailable", reason: "refused" })
      assert.include(receipt._tag === "Unavailable" ? receipt.text : "", "No permissions")
      const tried = starts()
      assert.isAbove(tried, 0)
      assert.strictEqual(yield* Effect.provide(ask(), context), receipt)
      assert.equal(starts(), tried)
      yield* Effect.provide(ask(request({ network: "shared" })), context)
      assert.isAbove(starts(), tried)
    })
  )

  it.scopedLive("does not believe a program that makes no sandbox", () =>
    Effect.gen(function* () {
      const { layer } = yield* withScript('while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
      const receipt = yield* Effect.provide(ask(), layer)
      if (receipt._tag === "Unavailable") return assert.fail(receipt.text)
      assert.deepEqual(receipt.proof, {
        network: false,
        processTree: false,
        fileSystem: false,
        privileges: false,
        environment: false
      })
      assert.equal(receipt.version, "9.8.7")
      assert.lengthOf(Sandbox.lacks(receipt), 5)
    })
  )

  it.scopedLive("believes only what was left out of a real one", () =>
    Effect.gen(function* () {
      if (!systemCan()) return
      const lacking = (option: string, drop: number) =>
        Effect.gen(function* () {
          const script = [
            "n=$#; i=0; skip=0",
            'while [ "$i" -lt "$n" ]; do',
            '  a="$1"; shift; i=$((i+1))',
            `  if [ "$a" = "${option}" ] && [ "$skip" = 0 ]; then skip=${drop}; fi`,
            '  if [ "$skip" -gt 0 ]; then skip=$((skip-1)); else set -- "$@" "$a"; fi',
            "done",
            'exec /usr/bin/bwrap "$@"'
          ].join("\n")
          const { layer } = yield* withScript(script)
          const receipt = yield* Effect.provide(ask(), layer)
          if (receipt._tag === "Unavailable") return receipt.text
          return Object.entries(receipt.proof).flatMap(([name, holds]) => (holds ? [] : [name]))
        }).pipe(Effect.scoped)
      assert.deepEqual(yield* lacking("--unshare-net", 1), ["network"])
      assert.deepEqual(yield* lacking("--die-with-parent", 1), ["processTree"])
      assert.deepEqual(yield* lacking("--unshare-pid", 1), ["processTree"])
      assert.deepEqual(yield* lacking("--tmpfs", 2), ["fileSystem"])
    })
  )

  it.scopedLive("is no where user namespaces are forbidden to an unprivileged user, with what to allow", () =>
    Effect.gen(function* () {
      // The limit is that of a namespace of its own; where that cannot be made either, the answer is the same.
      const without = "echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all"
      const { layer } = yield* withScript(`exec unshare -Ur --mount sh -c '${without} /usr/bin/bwrap "$@"' sh "$@"`)
      const receipt = yield* Effect.provide(ask(), layer)
      assert.deepInclude(receipt, { _tag: "Unavailable", reason: "refused" })
      assert.include(receipt._tag === "Unavailable" ? receipt.fix : "", "Allow user namespaces")
    })
  )

  it.scopedLive("ends when the program does not, and leaves nothing", () =>
    Effect.gen(function* () {
      const seconds = uniqueSleep()
      const { layer, starts } = yield* withScript(`trap '' TERM; sleep ${seconds}`)
      const receipt = yield* Effect.provide(ask(), layer)
      assert.deepInclude(receipt, { _tag: "Unavailable", reason: "refused" })
      assert.equal(starts(), 1)
      yield* eventually(() => running(seconds).length === 0)
    })
  )
})

describe("a server in the sandbox", () => {
  const started = (launcher: Launcher, mode: string, given: Partial<SpawnPlan> = {}) =>
    Effect.gen(function* () {
      const plan = planFor(mode, { launcher, cwd: workspace, ...given })
      const tree = yield* spawn(plan)
      const [first = ""] = yield* lines(tree.stdout, 1)
      return { plan, tree, first }
    })

  it.scopedLive("that leaves on end of input needs no signal, and keeps its exit code and last words", () =>
    withSandbox((launcher) =>
      Effect.gen(function* () {
        const { tree } = yield* started(launcher, "well", { graceMs: 10_000 })
        assert.deepInclude(yield* tree.terminate, { complete: true, survivors: [], steps: ["stdin_closed"] })
        assert.deepStrictEqual(yield* Deferred.await(tree.exited), { code: 0, signal: null })
        const words = yield* started(launcher, "words", { graceMs: 5_000 })
        let said = ""
        for (const pipe of [words.tree.stdout, words.tree.stderr])
          pipe.on("data", (chunk: Buffer) => (said += chunk.toString()))
        yield* words.tree.terminate
        assert.include(said, "last-out\n")
        assert.include(said, "last-err\n")
        assert.deepStrictEqual(yield* Deferred.await(words.tree.exited), { code: 3, signal: null })
      })
    )
  )

  it.scopedLive("that handles TERM gets to use its handler, also in a session of its own", () =>
    withSandbox((launcher) =>
      Effect.gen(function* () {
        const script = "trap 'exit 6' TERM; echo ready; while :; do sleep 0.05; done"
        for (const given of [
          { file: "/bin/sh", args: ["-c", script] },
          { file: "/usr/bin/setsid", args: ["/bin/sh", "-c", script] }
        ]) {
          const { tree } = yield* started(launcher, "", { ...given, graceMs: 600 })
          assert.deepInclude(yield* tree.terminate, { complete: true, steps: ["stdin_closed", "sigterm"] })
        }
      })
    )
  )

  it.scopedLive("that ignores TERM is killed with everything it started", () =>
    withSandbox((launcher) =>
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

  it.scopedLive("takes along what left session, group and environment", () =>
    withSandbox((launcher) =>
      Effect.gen(function* () {
        const inside = uniqueSleep()
        const { tree } = yield* started(launcher, "", vanishing(inside))
        yield* eventually(() => running(`sleep ${inside}`).length === 1)
        const report = yield* tree.terminate
        assert.deepInclude(report, { complete: true, survivors: [], steps: ["stdin_closed"] })
        assert.deepStrictEqual(running(inside), [])

        const last = uniqueSleep()
        const other = yield* started(launcher, "", vanishing(last))
        killAllNow()
        yield* Deferred.await(other.tree.exited)
        yield* eventually(() => running(last).length === 0)
        assert.isTrue((yield* other.tree.terminate).complete)
      })
    )
  )

  it.scopedLive("has the plan's PWD, and none that nobody gave", () =>
    withSandbox((launcher) =>
      Effect.gen(function* () {
        const given = { file: "/usr/bin/env", args: [], env: { ONLY: "this" }, cwd: workspace }
        const plan = planFor("", { launcher, ...given })
        const said = yield* lines((yield* spawn(plan)).stdout, 2)
        assert.sameMembers([...said], ["ONLY=this", `SIGIL_GENERATION=${plan.generation}`])
        const receipt = yield* ask()
        if (receipt._tag === "Unavailable") return
        const env = { PWD: "/else where" }
        const own = planFor("", { ...given, env, launcher: Sandbox.launcherOf(receipt, env) })
        assert.include(yield* lines((yield* spawn(own)).stdout, 2), "PWD=/else where")
        // More than a pipe holds, in every character that a variable can have.
        const long = { LONG: `a"'\\\n=é${"x".repeat(100_000)}`, EMPTY: "" }
        const script = 'printf %s "$LONG" | md5sum; echo "${EMPTY-unset}."'
        const big = yield* spawn(planFor("", { launcher, ...given, env: long, file: "/bin/sh", args: ["-c", script] }))
        const digest = createHash("md5").update(long.LONG).digest("hex")
        assert.deepEqual(yield* lines(big.stdout, 2), [`${digest}  -`, "."])
      })
    )
  )
})

describe("a server in the sandbox whose host is killed", () => {
  let host: Bundled
  beforeAll(async () => {
    host = await bundle("KilledHost")
  })
  afterAll(() => host.remove())

  it.scopedLive("leaves nothing", () =>
    withSandbox((launcher) =>
      Effect.gen(function* () {
        const seconds = uniqueSleep()
        // The host knows nothing of launchers: an empty file stands for the variables that it would send.
        const args = launcher.args.flatMap((word, index) =>
          word === "--args" || launcher.args[index - 1] === "--args" ? [] : [word]
        )
        const words = [...args, "/bin/sh", ...(vanishing(seconds).args ?? [])]
        const killed = yield* child(process.execPath, [host.file, launcher.file, ...words])
        yield* lines(killed.stdout, 1)
        assert.isAbove(running(seconds).length, 0)
        killed.kill("SIGKILL")
        yield* eventually(() => running(seconds).length === 0)
      })
    )
  )
})

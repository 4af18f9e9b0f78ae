import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { ensurePrivateDirectory, readText, update } from "../../src/platform/AtomicFile.ts"
import type { FileError } from "../../src/platform/FileError.ts"
import { LOCK_WAIT_MS, lockPathOf, withLock } from "../../src/platform/FileLock.ts"
import { type Bundled, bundle } from "./support/Bundle.ts"
import { child, eventually, lines, lives, outcome } from "./support/Processes.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "sigil-file-"))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
)
const always = (text: string) => () => Effect.succeed(text)
const reasonOf = <A>(effect: Effect.Effect<A, FileError>) =>
  Effect.map(Effect.flip(effect), (error) => `${error.code} ${error.reason}`)
const modeOf = (file: string): number => fs.statSync(file).mode & 0o777

describe("update", () => {
  it.scopedLive("makes parents and file for the user only, and leaves nothing else behind", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const file = path.join(at, "a/b/c.json")
      assert.isTrue(yield* update(file, (current) => Effect.succeed(`was ${current}`)))
      assert.strictEqual(fs.readFileSync(file, "utf8"), "was undefined")
      assert.deepStrictEqual(
        [modeOf(file), modeOf(path.dirname(file)), modeOf(path.join(at, "a"))],
        [0o600, 0o700, 0o700]
      )
      assert.deepStrictEqual(fs.readdirSync(path.dirname(file)), ["c.json"])
    })
  )

  it.scopedLive("writes nothing for undefined or the same text", () =>
    Effect.gen(function* () {
      const file = path.join(yield* folder, "f")
      assert.isFalse(yield* update(file, () => Effect.succeed(undefined)))
      assert.isFalse(fs.existsSync(file))
      fs.writeFileSync(file, "same")
      const before = fs.statSync(file)
      assert.isFalse(yield* update(file, always("same")))
      assert.strictEqual(fs.statSync(file).ino, before.ino)
    })
  )

  it.scopedLive("never loosens a mode, and tightens to the wanted one", () =>
    Effect.gen(function* () {
      const file = path.join(yield* folder, "f")
      const after = (existing: number, wanted?: number) =>
        Effect.gen(function* () {
          fs.rmSync(file, { force: true })
          fs.writeFileSync(file, "old")
          fs.chmodSync(file, existing)
          yield* update(file, always("new"), { mode: wanted })
          return modeOf(file)
        })
      assert.strictEqual(yield* after(0o644), 0o600)
      assert.strictEqual(yield* after(0o400), 0o400)
      assert.strictEqual(yield* after(0o664, 0o644), 0o644)
      assert.strictEqual(yield* after(0o600, 0o644), 0o600)
      fs.rmSync(file, { force: true })
      yield* update(file, always("new"), { mode: 0o644 })
      assert.strictEqual(modeOf(file), 0o644)
    })
  )

  it.scopedLive("refuses links, dangling ones too, and what is no file", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const target = path.join(at, "target")
      fs.writeFileSync(target, "kept")
      fs.symlinkSync(target, path.join(at, "link"))
      fs.symlinkSync(path.join(at, "nowhere"), path.join(at, "dangling"))
      assert.strictEqual(yield* reasonOf(update(path.join(at, "link"), always("x"))), "SIGIL_FILE symlink")
      assert.strictEqual(yield* reasonOf(update(path.join(at, "dangling"), always("x"))), "SIGIL_FILE symlink")
      assert.strictEqual(yield* reasonOf(update(at, always("x"))), "SIGIL_FILE not_a_file")
      assert.strictEqual(fs.readFileSync(target, "utf8"), "kept")
      assert.sameMembers(fs.readdirSync(at), ["target", "link", "dangling"])
    })
  )

  it.scopedLive("notices a writer that does not know the lock", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const file = path.join(at, "f")
      const meanwhile = (act: () => void) => reasonOf(update(file, () => Effect.as(Effect.sync(act), "ours")))
      const conflict = "SIGIL_CONFIG_CONFLICT changed_meanwhile"
      assert.strictEqual(yield* meanwhile(() => fs.writeFileSync(file, "theirs")), conflict)
      assert.strictEqual(yield* meanwhile(() => fs.writeFileSync(file, "theirs again")), conflict)
      assert.strictEqual(fs.readFileSync(file, "utf8"), "theirs again")
      assert.strictEqual(yield* meanwhile(() => fs.rmSync(file)), conflict)
      const swap = (): void => fs.symlinkSync("/etc/passwd", file)
      assert.strictEqual(yield* meanwhile(swap), "SIGIL_FILE symlink")
      assert.deepStrictEqual(fs.readdirSync(at), ["f"])
    })
  )

  it.scopedLive("passes the change's own failure on and writes nothing", () =>
    Effect.gen(function* () {
      const at = yield* folder
      assert.strictEqual(yield* Effect.flip(update(path.join(at, "f"), () => Effect.fail("no" as const))), "no")
      assert.deepStrictEqual(fs.readdirSync(at), [])
    })
  )

  it.scopedLive("keeps a byte order mark and shows none", () =>
    Effect.gen(function* () {
      const file = path.join(yield* folder, "f")
      fs.writeFileSync(file, "\uFEFF{}")
      assert.strictEqual(yield* readText(file), "{}")
      yield* update(file, (current) => Effect.succeed(`${current} `))
      assert.strictEqual(fs.readFileSync(file, "utf8"), "\uFEFF{} ")
    })
  )

  it.scopedLive("names the path and the system's reason", () =>
    Effect.gen(function* () {
      const at = yield* folder
      fs.writeFileSync(path.join(at, "file"), "")
      const below = path.join(at, "file/below")
      const error = yield* Effect.flip(update(below, always("x")))
      assert.strictEqual(error.reason, "not_a_directory")
      assert.include(error.text, path.join(at, "file"))
      const long = path.join(at, "n".repeat(300))
      assert.strictEqual(yield* reasonOf(update(long, always("x"))), "SIGIL_FILE name_too_long")
    })
  )
})

describe("readText", () => {
  it.scopedLive("tells absent from unreadable", () =>
    Effect.gen(function* () {
      const at = yield* folder
      assert.isUndefined(yield* readText(path.join(at, "none")))
      assert.strictEqual(yield* reasonOf(readText(at)), "SIGIL_FILE not_a_file")
      fs.writeFileSync(path.join(at, "latin"), Buffer.from([0x66, 0xfc, 0x72]))
      assert.strictEqual(yield* reasonOf(readText(path.join(at, "latin"))), "SIGIL_FILE invalid_utf8")
      assert.strictEqual(yield* reasonOf(readText(path.join(at, "latin/x"))), "SIGIL_FILE not_a_directory")
    })
  )
})

describe("ensurePrivateDirectory", () => {
  it.scopedLive("makes, tightens, and refuses a file", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const directory = path.join(at, "a/b")
      yield* ensurePrivateDirectory(directory)
      assert.strictEqual(modeOf(directory), 0o700)
      fs.chmodSync(directory, 0o755)
      yield* ensurePrivateDirectory(directory)
      assert.strictEqual(modeOf(directory), 0o700)
      fs.writeFileSync(path.join(at, "file"), "")
      assert.strictEqual(yield* reasonOf(ensurePrivateDirectory(path.join(at, "file"))), "SIGIL_FILE not_a_directory")
    })
  )
})

describe("withLock", () => {
  let writer: Bundled
  let holder: Bundled
  beforeAll(async () => {
    writer = await bundle("Writer")
    holder = await bundle("LockHolder")
  })
  afterAll(() => {
    writer.remove()
    holder.remove()
  })

  it.scopedLive("eight processes lose no change", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const file = path.join(at, "f")
      const names = ["a", "b", "c", "d", "e", "f", "g", "h"]
      const ends = yield* Effect.forEach(
        names,
        (name) => Effect.flatMap(child(process.execPath, [writer.file, file, name, "10"]), outcome),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        ends.map((end) => `${end.code}${end.err}`),
        names.map(() => "0")
      )
      const written = fs.readFileSync(file, "utf8").trimEnd().split("\n")
      for (const name of names) {
        const mine = written.filter((line) => line.startsWith(name))
        assert.deepStrictEqual(
          mine,
          Array.from({ length: 10 }, (_, index) => `${name}:${index}`)
        )
      }
      assert.lengthOf(written, 80)
      assert.deepStrictEqual(fs.readdirSync(at), ["f"])
    })
  )

  it.scopedLive("a live holder is waited for and named; a killed one is succeeded", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const file = path.join(at, "f")
      const other = yield* child(process.execPath, [holder.file, file])
      yield* lines(other.stdout, 1)
      const error = yield* Effect.flip(withLock(file, Effect.void))
      assert.strictEqual(error.reason, "locked")
      assert.include(error.text, `process ${other.pid}`)
      other.kill("SIGKILL")
      yield* eventually(() => !lives(other.pid ?? 0))
      assert.isTrue(fs.existsSync(lockPathOf(file)), "a dead process leaves its lock")
      assert.strictEqual(yield* withLock(file, Effect.succeed("mine")), "mine")
      assert.deepStrictEqual(fs.readdirSync(at), [])
    })
  )

  it.scopedLive("many that find a stale lock enter one after the other", () =>
    Effect.gen(function* () {
      const file = path.join(yield* folder, "f")
      const other = yield* child(process.execPath, [holder.file, file])
      yield* lines(other.stdout, 1)
      other.kill("SIGKILL")
      yield* eventually(() => !lives(other.pid ?? 0))
      // Stale locks of a breaker that died as well do not matter either.
      fs.copyFileSync(lockPathOf(file), `${lockPathOf(file)}.break`)
      const ends = yield* Effect.forEach(
        ["a", "b", "c", "d", "e", "f"],
        (name) => Effect.flatMap(child(process.execPath, [writer.file, file, name, "2"]), outcome),
        { concurrency: "unbounded" }
      )
      assert.isTrue(ends.every((end) => end.code === 0))
      assert.lengthOf(fs.readFileSync(file, "utf8").trimEnd().split("\n"), 12)
    })
  )

  it.scoped("a holder of another machine cannot be judged before ten minutes", () =>
    Effect.gen(function* () {
      const file = path.join(yield* folder, "f")
      fs.writeFileSync(lockPathOf(file), "1\n1\nnonce\nelsewhere|boot|pid:[1]\n")
      const fiber = yield* Effect.fork(Effect.flip(withLock(file, Effect.void)))
      // Each attempt sleeps anew.
      while (fiber.unsafePoll() === null) yield* TestClock.adjust(LOCK_WAIT_MS)
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error.reason, "locked")
      const old = Date.now() / 1000 - 601
      fs.utimesSync(lockPathOf(file), old, old)
      yield* withLock(file, Effect.void)
    })
  )

  it.scoped("fibers of one process take turns without the clock", () =>
    Effect.gen(function* () {
      const file = path.join(yield* folder, "f")
      let inside = 0
      let most = 0
      const visit = withLock(
        file,
        Effect.gen(function* () {
          inside += 1
          most = Math.max(most, inside)
          yield* Effect.yieldNow()
          inside -= 1
        })
      )
      yield* Effect.all(
        Array.from({ length: 20 }, () => visit),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(most, 1)
    })
  )

  it.scoped("an interruption lets go, whether it hits the waiting or the work", () =>
    Effect.gen(function* () {
      const file = path.join(yield* folder, "f")
      const inside = yield* Deferred.make<void>()
      const working = yield* Effect.fork(
        withLock(file, Effect.zipRight(Deferred.succeed(inside, undefined), Effect.never))
      )
      yield* Deferred.await(inside)
      const waiting = yield* Effect.fork(withLock(file, Effect.void))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(waiting)
      assert.isTrue(fs.existsSync(lockPathOf(file)))
      yield* Fiber.interrupt(working)
      assert.isFalse(fs.existsSync(lockPathOf(file)))
    })
  )
})

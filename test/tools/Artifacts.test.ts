import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Random from "../../src/platform/Random.ts"
import { Artifacts, layer, layerMemory, MAX_AGE_MS, MAX_TOTAL_BYTES } from "../../src/tools/Artifacts.ts"

const bytes = (text: string): Uint8Array => Buffer.from(text)
const textOf = (given: Uint8Array): string => Buffer.from(given).toString()

const withDirectory = <A, E>(use: (directory: string) => Effect.Effect<A, E, Artifacts>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "sigil-artifacts-"))),
    (base) => {
      const directory = path.join(base, "artifacts")
      return use(directory).pipe(Effect.provide(layer(directory).pipe(Layer.provide(Random.layer))))
    },
    (base) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
  )

describe("Artifacts", () => {
  it.scopedLive("keeps bytes for their owner only and gives them back by handle", () =>
    withDirectory((directory) =>
      Effect.gen(function* () {
        const artifacts = yield* Artifacts
        const one = yield* artifacts.put(Buffer.from([0, 255, 1]), "png")
        const two = yield* artifacts.put(bytes("zwei"), "txt")
        assert.match(one.handle, /^[a-z0-9]{26}$/)
        assert.notEqual(one.handle, two.handle)
        assert.equal(path.dirname(one.path), directory)
        assert.equal(path.extname(one.path), ".png")
        assert.equal(fs.statSync(one.path).mode & 0o777, 0o600)
        assert.equal(fs.statSync(directory).mode & 0o777, 0o700)
        assert.deepEqual([...(yield* artifacts.read(one.handle))], [0, 255, 1])
        assert.equal(textOf(yield* artifacts.read(two.handle)), "zwei")
        assert.sameMembers(
          (yield* artifacts.list).map(({ handle }) => handle),
          [one.handle, two.handle]
        )
        yield* artifacts.remove(one.handle)
        assert.equal((yield* Effect.flip(artifacts.read(one.handle))).code, "SIGIL_UNKNOWN_ARTIFACT")
        assert.equal((yield* Effect.flip(artifacts.remove(one.handle))).code, "SIGIL_UNKNOWN_ARTIFACT")
      })
    )
  )

  it.scopedLive("takes a handle for a name and never for a path", () =>
    withDirectory((directory) =>
      Effect.gen(function* () {
        const artifacts = yield* Artifacts
        yield* artifacts.put(bytes("x"), "txt")
        fs.writeFileSync(path.join(directory, "..", `${"a".repeat(26)}.txt`), "outside")
        fs.writeFileSync(path.join(directory, `${"b".repeat(26)}`), "no extension")
        for (const handle of [
          "",
          ".",
          "..",
          "../x",
          `../${"a".repeat(26)}`,
          "a".repeat(26),
          "b".repeat(26),
          "A".repeat(26),
          `${"a".repeat(25)}\0`,
          "*"
        ]) {
          assert.equal((yield* Effect.flip(artifacts.read(handle))).code, "SIGIL_UNKNOWN_ARTIFACT", handle)
          assert.equal((yield* Effect.flip(artifacts.remove(handle))).code, "SIGIL_UNKNOWN_ARTIFACT", handle)
        }
      })
    )
  )

  it.scopedLive("keeps a strange extension inside the directory", () =>
    withDirectory((directory) =>
      Effect.gen(function* () {
        const artifacts = yield* Artifacts
        const kept = yield* artifacts.put(bytes("x"), "/../../evil")
        assert.equal(path.dirname(kept.path), directory)
        assert.equal(textOf(yield* artifacts.read(kept.handle)), "x")
      })
    )
  )

  it.scopedLive("removes what is too old, and the oldest when there is no room", () =>
    withDirectory((directory) =>
      Effect.gen(function* () {
        const artifacts = yield* Artifacts
        const old = yield* artifacts.put(bytes("old"), "txt")
        const first = yield* artifacts.put(bytes("first"), "txt")
        const second = yield* artifacts.put(bytes("second"), "txt")
        const now = Date.now()
        const age = (file: string, ms: number) => fs.utimesSync(file, new Date(now - ms), new Date(now - ms))
        age(old.path, MAX_AGE_MS + 60_000)
        age(first.path, 50_000)
        age(second.path, 10_000)
        yield* artifacts.put(bytes("third"), "txt")
        assert.isFalse(fs.existsSync(old.path))
        assert.isTrue(fs.existsSync(first.path))
        // A sparse file: as large as the limit allows without taking the room.
        fs.truncateSync(second.path, MAX_TOTAL_BYTES - 8)
        age(second.path, 10_000)
        const fourth = yield* artifacts.put(bytes("fourth"), "txt")
        assert.isFalse(fs.existsSync(first.path))
        assert.isFalse(fs.existsSync(second.path))
        assert.isTrue(fs.existsSync(fourth.path))
        assert.isTrue(fs.existsSync(directory))
      })
    )
  )

  it.scopedLive("lists nothing where nothing was kept", () =>
    withDirectory(() =>
      Effect.map(
        Effect.flatMap(Artifacts, ({ list }) => list),
        (found) => assert.deepEqual(found, [])
      )
    )
  )

  it.effect("does the same in memory", () =>
    Effect.gen(function* () {
      const artifacts = yield* Artifacts
      const one = yield* artifacts.put(bytes("x"), "txt")
      assert.equal(textOf(yield* artifacts.read(one.handle)), "x")
      assert.deepEqual(yield* artifacts.list, [one])
      yield* artifacts.remove(one.handle)
      const two = yield* artifacts.put(bytes("y"), "txt")
      assert.notEqual(two.handle, one.handle)
      assert.equal((yield* Effect.flip(artifacts.read(one.handle))).reason, "unknown_artifact")
    }).pipe(Effect.provide(layerMemory))
  )
})

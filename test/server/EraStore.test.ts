/** What is remembered of servers: for a week, in a file of its own that anything may happen to. */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe } from "vitest"
import { BELIEVED_MS, keyOf, make } from "../../src/server/EraStore.ts"

let base = ""
beforeEach(() => {
  base = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-eras-"))
})
afterEach(() => fs.rmSync(base, { recursive: true, force: true }))
const file = (): string => path.join(base, "cache", "eras.json")

describe("verdicts", () => {
  it.effect("come back for a week, privately, and not a moment longer", () =>
    Effect.gen(function* () {
      const eras = yield* make(file())
      assert.isUndefined(yield* eras.recall("k"))
      yield* eras.remember("k", "handshake")
      yield* eras.remember("other", "sse")
      assert.deepEqual([yield* eras.recall("k"), yield* eras.recall("other")], ["handshake", "sse"])
      assert.equal(fs.statSync(file()).mode & 0o777, 0o600)
      yield* TestClock.adjust(BELIEVED_MS)
      assert.equal(yield* eras.recall("k"), "handshake")
      yield* TestClock.adjust(1)
      assert.isUndefined(yield* eras.recall("k"))
    })
  )

  it.effect("are none where the file is damaged, somebody else's or from the future, and can be written again", () =>
    Effect.gen(function* () {
      const eras = yield* make(file())
      yield* eras.remember("k", "handshake")
      for (const text of [
        "",
        "{",
        "[]",
        '{"schema":"x","eras":{"k":{"era":"sse","at":0}}}',
        '{"schema":"sigil.eras/1"}'
      ]) {
        fs.writeFileSync(file(), text)
        assert.isUndefined(yield* eras.recall("k"))
      }
      fs.writeFileSync(file(), '{"schema":"sigil.eras/1","eras":{"k":{"era":"sse","at":9e15},"j":{"era":"x","at":0}}}')
      assert.deepEqual([yield* eras.recall("k"), yield* eras.recall("j")], [undefined, undefined])
      yield* eras.remember("k", "sse")
      assert.equal(yield* eras.recall("k"), "sse")
      fs.chmodSync(file(), 0o666)
      assert.isUndefined(yield* eras.recall("k"))
    })
  )

  it.effect("that cannot be written harm nobody", () =>
    Effect.gen(function* () {
      fs.writeFileSync(path.join(base, "cache"), "a file where the directory should be")
      const eras = yield* make(file())
      yield* eras.remember("k", "handshake")
      assert.isUndefined(yield* eras.recall("k"))
    })
  )

  it.effect("are kept for five hundred servers, the newest", () =>
    Effect.gen(function* () {
      const eras = yield* make(file())
      const at = 0
      const many = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`s${index}`, { era: "sse", at }]))
      yield* eras.remember("first", "sse")
      fs.writeFileSync(file(), JSON.stringify({ schema: "sigil.eras/1", eras: many }))
      yield* TestClock.adjust(1)
      yield* eras.remember("k", "sse")
      // What the store itself wrote.
      const written = JSON.parse(fs.readFileSync(file(), "utf8")) as { readonly eras: object }
      assert.equal(Object.keys(written.eras).length, 500)
      assert.equal(yield* eras.recall("k"), "sse")
    })
  )
})

describe("a key", () => {
  it("tells launches and addresses apart, and says nothing of them", () => {
    const stdio = {
      _tag: "stdio",
      file: "/bin/x",
      command: "x",
      args: ["secret"],
      cwd: "/",
      env: {},
      graceMs: 0
    } as const
    const keys = [stdio, { ...stdio, args: [] }, { ...stdio, cwd: "/tmp" }].map(keyOf)
    assert.equal(new Set(keys).size, 3)
    assert.notInclude(keys.join(), "secret")
    assert.equal(keyOf(stdio), keyOf({ ...stdio, env: { A: "b" } }))
  })
})

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { MAX_FAULTS, verify } from "../../src/audit/Verify.ts"
import { emptyChain, makeLine, payloadText } from "../../src/audit/AuditRecord.ts"
import { encodeHead, type LogPaths, logFiles } from "../../src/audit/LogFiles.ts"
import { appendAll, entry, folder, pathsIn, withLog } from "./support/Logs.ts"
import { AuditLog } from "../../src/audit/AuditLog.ts"

const linesOf = (file: string): Array<string> => fs.readFileSync(file, "utf8").split("\n").slice(0, -1)
const putLines = (file: string, lines: ReadonlyArray<string>): void =>
  fs.writeFileSync(file, lines.map((line) => `${line}\n`).join(""))

/** A log of small files. */
const written = (at: string, names: ReadonlyArray<string>, rotateBytes = 900) =>
  Effect.as(withLog(pathsIn(at), { rotateBytes })(appendAll(names)), pathsIn(at))

const verdict = (paths: LogPaths) =>
  Effect.map(verify(paths), ({ ok, faults }) => ({ ok, why: faults.map(({ why }) => why) }))

/** One thing that somebody does to a log. Lines are counted through all files. */
const tampering = fc.oneof(
  fc.record({
    how: fc.constant("change" as const),
    at: fc.nat(),
    byte: fc.nat(),
    by: fc.integer({ min: 1, max: 255 })
  }),
  fc.record({ how: fc.constant("rehash" as const), at: fc.nat(), name: fc.constantFrom("forged", "") }),
  fc.record({ how: fc.constant("remove" as const), at: fc.nat() }),
  fc.record({ how: fc.constant("swap" as const), at: fc.nat(), with: fc.nat() }),
  fc.record({ how: fc.constant("repeat" as const), at: fc.nat(), after: fc.nat() }),
  fc.record({ how: fc.constant("forge" as const), after: fc.nat() }),
  fc.record({ how: fc.constant("cut" as const), at: fc.nat(), bytes: fc.nat() })
)

/** Does it; false when it would change nothing. */
const tamper = (paths: LogPaths, act: typeof tampering extends fc.Arbitrary<infer T> ? T : never): boolean => {
  const files = logFiles(paths.log)
  const all = files.flatMap((file) => linesOf(file).map((line) => ({ file, line })))
  const put = (): boolean => {
    for (const file of files)
      putLines(
        file,
        all.filter((one) => one.file === file).map(({ line }) => line)
      )
    return true
  }
  const at = "at" in act ? act.at % all.length : 0
  const chosen = all[at]
  if (chosen === undefined) return false
  switch (act.how) {
    case "change": {
      const bytes = Buffer.from(chosen.line)
      const place = act.byte % bytes.length
      bytes[place] = ((bytes[place] ?? 0) + act.by) % 256
      const whole = fs.readFileSync(chosen.file)
      const start = Buffer.byteLength(
        all
          .slice(0, at)
          .filter(({ file }) => file === chosen.file)
          .map(({ line }) => `${line}\n`)
          .join("")
      )
      bytes.copy(whole, start)
      fs.writeFileSync(chosen.file, whole)
      return true
    }
    case "rehash": {
      // Changed with a hash that fits, as somebody who knows the format would.
      const { prev, seq, hash: _, ...rest } = JSON.parse(chosen.line)
      const { line } = makeLine({ ...rest, payload: payloadText({ name: act.name }) }, { count: seq - 1, hash: prev })
      if (line === chosen.line) return false
      all[at] = { file: chosen.file, line }
      return put()
    }
    case "remove":
      all.splice(at, 1)
      return put()
    case "swap": {
      const other = act.with % all.length
      const second = all[other]
      if (other === at || second === undefined) return false
      all[at] = { file: chosen.file, line: second.line }
      all[other] = { file: second.file, line: chosen.line }
      return put()
    }
    case "repeat": {
      const after = act.after % all.length
      all.splice(after + 1, 0, { file: all[after]?.file ?? chosen.file, line: chosen.line })
      return put()
    }
    case "forge": {
      // A record that fits the one before it, put between two others.
      const after = act.after % (all.length - 1)
      const before = JSON.parse(all[after]?.line ?? "{}")
      const made = makeLine(
        { time: before.time, kind: before.kind, run: "other", payload: "{}" },
        { count: before.seq, hash: before.hash }
      )
      all.splice(after + 1, 0, { file: all[after]?.file ?? chosen.file, line: made.line })
      return put()
    }
    case "cut": {
      const size = fs.statSync(chosen.file).size
      fs.truncateSync(chosen.file, size - 1 - (act.bytes % size))
      return true
    }
  }
}

describe("verify", () => {
  it.live(
    "finds whatever is done to any record of any file, the last one included",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.array(fc.string(), { minLength: 3, maxLength: 9 }), tampering, async (names, act) => {
            const at = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-audit-"))
            try {
              const paths = await Effect.runPromise(written(at, names))
              assert.deepEqual(await Effect.runPromise(verdict(paths)), { ok: true, why: [] })
              fc.pre(tamper(paths, act))
              assert.isFalse((await Effect.runPromise(verify(paths))).ok, JSON.stringify(act))
            } finally {
              fs.rmSync(at, { recursive: true, force: true })
            }
          }),
          { numRuns: 150 }
        )
      ),
    60_000
  )

  it.scopedLive("still finds it after more was recorded", () =>
    Effect.gen(function* () {
      for (const act of ["first", "middle", "last"] as const) {
        const paths = yield* written(yield* folder, ["a", "b", "c"], 1_000_000)
        const lines = linesOf(paths.log)
        lines.splice(["first", "middle", "last"].indexOf(act), 1)
        putLines(paths.log, lines)
        yield* withLog(paths)(appendAll(["d", "e"]))
        assert.isFalse((yield* verify(paths)).ok, act)
      }
    })
  )

  it.scopedLive("finds that a whole file is gone, the present one too", () =>
    Effect.gen(function* () {
      for (const which of [0, 1, -1]) {
        const paths = yield* written(yield* folder, ["a", "b", "c", "d", "e", "f", "g"])
        const files = logFiles(paths.log)
        assert.isAbove(files.length, 2)
        fs.rmSync(files.at(which) ?? "")
        assert.isFalse((yield* verify(paths)).ok)
      }
      const paths = yield* written(yield* folder, ["a"])
      fs.rmSync(paths.log)
      assert.isFalse((yield* verify(paths)).ok, "a head alone")
    })
  )

  it.scopedLive("finds a head that is missing, damaged or another one", () =>
    Effect.gen(function* () {
      const paths = yield* written(yield* folder, ["a", "b"])
      const { head } = yield* verify(paths)
      if (head === undefined) return assert.fail("the log has a head")
      const spoiled = [
        undefined,
        "",
        "{}",
        encodeHead({ count: 3, hash: head.hash, bytes: 0 }),
        encodeHead({ count: 1, hash: head.hash, bytes: 0 }),
        encodeHead({ count: 2, hash: emptyChain.hash, bytes: 0 })
      ]
      for (const text of spoiled) {
        if (text === undefined) fs.rmSync(paths.head)
        else fs.writeFileSync(paths.head, text)
        const found = yield* verify(paths)
        assert.isFalse(found.ok, String(text))
        assert.equal(found.records, 2)
      }
    })
  )

  it.scopedLive("takes a log that is ahead of its head for what it is, and says where faults are", () =>
    Effect.gen(function* () {
      const paths = yield* written(yield* folder, ["a", "b", "c"], 1_000_000)
      const lines = linesOf(paths.log)
      const second = JSON.parse(lines[1] ?? "")
      fs.writeFileSync(paths.head, encodeHead({ count: 2, hash: second.hash, bytes: 0 }))
      assert.deepInclude(yield* verify(paths), { ok: true, records: 3, unheaded: 1 })
      putLines(paths.log, [lines[0] ?? "", (lines[1] ?? "").replace('"b"', '"x"'), lines[2] ?? ""])
      const { faults } = yield* verify(paths)
      assert.deepEqual(
        faults.map(({ file, line }) => [file, line]),
        [[paths.log, 2]]
      )
    })
  )

  it.scopedLive("says that the end is missing, or that the last line is incomplete, its newline too", () =>
    Effect.gen(function* () {
      const paths = yield* written(yield* folder, ["a", "b", "c"], 1_000_000)
      const lines = linesOf(paths.log)
      putLines(paths.log, lines.slice(0, 1))
      assert.deepEqual((yield* verdict(paths)).why, ["records 2 to 3, which the head counts, are missing at the end"])
      for (const end of [lines.join("\n"), `${lines.join("\n")}\n{"ca`]) {
        fs.writeFileSync(paths.log, end)
        assert.include((yield* verdict(paths)).why[0], "the last line is incomplete")
      }
    })
  )

  it.scopedLive("bounds what it tells, and reads what no one sigil wrote", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      assert.deepInclude(yield* verify(paths), { ok: true, records: 0, head: undefined })
      fs.mkdirSync(path.dirname(paths.log))
      fs.writeFileSync(paths.log, `${"x".repeat(5_000_000)}\n${"\n".repeat(300)}`)
      const found = yield* verify(paths)
      assert.equal(found.faults.length, MAX_FAULTS)
      assert.equal(found.moreFaults, 301 + 1 - MAX_FAULTS)
      assert.deepEqual(found.faults[0], { file: paths.log, line: 1, why: "the line is not an audit record" })
    })
  )

  it.scopedLive("sees a log at one moment while it is written and rotated", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* Effect.gen(function* () {
        const log = yield* AuditLog
        const names = Array.from({ length: 300 }, (_, index) => `n${index}`)
        const write = Effect.forEach(names, (name) => log.append(entry(name)), { concurrency: 4, discard: true })
        const look = Effect.repeatN(
          Effect.map(verify(paths), ({ ok, faults }) => assert.isTrue(ok, JSON.stringify(faults))),
          20
        )
        yield* Effect.all([write, look], { concurrency: 2 })
      }).pipe(withLog(paths, { rotateBytes: 4_000 }))
      assert.deepInclude(yield* verify(paths), { ok: true, records: 300 })
    })
  )
})

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import nodeFs, * as fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import * as path from "node:path"
import { AuditLog, layerMemory, layerNone } from "../../src/audit/AuditLog.ts"
import { type AuditRecord, emptyChain, GENESIS, verifyLine } from "../../src/audit/AuditRecord.ts"
import { encodeHead, logFiles } from "../../src/audit/LogFiles.ts"
import * as LogLock from "../../src/audit/LogLock.ts"
import { verify } from "../../src/audit/Verify.ts"
import { appendAll, entry, folder, namesOf, pathsIn, recordsOf, withLog } from "./support/Logs.ts"

const append = (name: string, more: Parameters<typeof entry>[1] = {}) =>
  Effect.flatMap(AuditLog, (log) => log.append(entry(name, more)))
const modeOf = (file: string): number => fs.statSync(file).mode & 0o777
const isOk = (paths: ReturnType<typeof pathsIn>) =>
  Effect.map(verify(paths), ({ ok, faults }) => assert.isTrue(ok, JSON.stringify(faults)))

type Replaced = "writeSync" | "fdatasync"

/** Puts another function in the place of one of `node:fs` while an effect runs. */
const replacing = <A, E, R>(
  name: Replaced,
  other: (...args: Array<never>) => unknown,
  effect: Effect.Effect<A, E, R>
) => {
  const put = (value: unknown): void => {
    Object.assign(nodeFs, { [name]: value })
    syncBuiltinESMExports()
  }
  return Effect.acquireUseRelease(
    Effect.sync(() => {
      const before: unknown = nodeFs[name]
      put(other)
      return before
    }),
    () => effect,
    (before) => Effect.sync(() => put(before))
  )
}

/** How often an effect calls a function of `node:fs`. */
const counting = <A, E, R>(name: Replaced, effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const real: (...args: Array<never>) => unknown = nodeFs[name]
    let calls = 0
    const counted = (...args: Array<never>): unknown => {
      calls += 1
      return real(...args)
    }
    return Effect.map(replacing(name, counted, effect), () => calls)
  })

/** A failure as the system reports it. */
const systemError = (code: string): Error => Object.assign(new Error(code), { code })

/** The first write takes `bytes` bytes (all, if absent), every other one fails. */
const failingWrites = (code: string, bytes?: number) => {
  const real = nodeFs.writeSync
  let calls = 0
  return (fd: number, data: Uint8Array, at: number, length: number, position: number | null): number => {
    calls += 1
    if (calls > 1) throw systemError(code)
    return real(fd, data, at, bytes ?? length, position)
  }
}

describe("append", () => {
  it.scopedLive("makes a private log of chained records, with the head beside it", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* withLog(paths, { run: "run-1" })(append("a", { call: "c", server: "fs" }))
      const [record, ...rest] = recordsOf(paths)
      assert.isEmpty(rest)
      assert.deepInclude(record, {
        seq: 1,
        run: "run-1",
        kind: "tool_execution_started",
        call: "c",
        server: "fs",
        prev: GENESIS
      })
      assert.match(record?.time ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.deepInclude(JSON.parse(fs.readFileSync(paths.head, "utf8")), { count: 1, hash: record?.hash })
      assert.deepEqual([modeOf(paths.log), modeOf(paths.head), modeOf(path.dirname(paths.log))], [0o600, 0o600, 0o700])
      assert.sameMembers(fs.readdirSync(path.dirname(paths.log)), ["audit.jsonl", "audit.head"])
      yield* isOk(paths)
    })
  )

  it.scopedLive("has handed the record to the kernel when it returns", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* withLog(paths)(
        Effect.gen(function* () {
          for (const name of ["a", "b", "c"]) {
            yield* append(name)
            assert.include(fs.readFileSync(paths.log, "utf8"), `"name":"${name}"`)
          }
        })
      )
    })
  )

  it.scopedLive("keeps order, chain and count over many fibers and several runs", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      const names = Array.from({ length: 200 }, (_, index) => `n${index}`)
      for (const run of ["one", "two"]) {
        yield* Effect.forEach(names, (name) => append(`${run}:${name}`), { concurrency: "unbounded" }).pipe(
          withLog(paths, { run })
        )
      }
      assert.sameMembers(
        [...namesOf(paths)],
        [...names.map((name) => `one:${name}`), ...names.map((name) => `two:${name}`)]
      )
      yield* isOk(paths)
    })
  )

  it.scopedLive("writes what comes together in one piece, several entries of one append too", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* Effect.gen(function* () {
        yield* append("first")
        const writes = yield* counting(
          "writeSync",
          Effect.forEach(Array.from({ length: 16 }), (_, index) => append(`n${index}`), { concurrency: "unbounded" })
        )
        // The log and the head.
        assert.equal(writes, 2)
        const log = yield* AuditLog
        assert.equal(yield* counting("writeSync", log.appendAll([entry("x"), entry("y")])), 2)
        assert.equal(yield* counting("writeSync", log.appendAll([])), 0)
      }).pipe(withLog(paths))
      assert.deepEqual(namesOf(paths).slice(-2), ["x", "y"])
      yield* isOk(paths)
    })
  )

  it.scopedLive("waits for the disk where that is asked for, and only there", () =>
    Effect.gen(function* () {
      const syncs = (sync: "write" | "always", more: Parameters<typeof entry>[1]) =>
        Effect.gen(function* () {
          const paths = pathsIn(yield* folder)
          return yield* withLog(paths, { sync })(counting("fdatasync", append("a", more)))
        })
      assert.equal(yield* syncs("write", {}), 0)
      assert.equal(yield* syncs("always", {}), 1)
      assert.equal(yield* syncs("write", { durable: true }), 1)
      for (const kind of ["mcp_transport_authorization", "project_decision", "pin_recorded"] as const) {
        assert.equal(yield* syncs("write", { kind }), 1, kind)
      }
    })
  )

  it.scopedLive("brings everything to the disk soon after, and when it is closed", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      assert.equal(yield* counting("fdatasync", withLog(paths)(append("a"))), 1)
      let synced = false
      const real = nodeFs.fdatasync
      const noticed = (fd: number, done: fs.NoParamCallback): void => {
        synced = true
        real(fd, done)
      }
      yield* Effect.gen(function* () {
        yield* append("b")
        // Without anybody asking: only the test's own limit ends this.
        yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => synced })
      }).pipe(withLog(paths), (program) => replacing("fdatasync", noticed, program))
    })
  )

  it.scopedLive("refuses the next append when the disk did not take what was acknowledged", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* Effect.gen(function* () {
        yield* append("a")
        const broken = (_fd: number, done: fs.NoParamCallback): void => done(systemError("EIO"))
        const durable = yield* replacing("fdatasync", broken, Effect.flip(append("b", { durable: true })))
        assert.deepInclude(durable, { code: "SIGIL_AUDIT_UNWRITABLE", reason: "device_error" })
        assert.equal((yield* Effect.flip(append("c"))).reason, "device_error")
        yield* append("d")
      }).pipe(withLog(paths))
      assert.deepEqual(namesOf(paths), ["a", "b", "d"])
      yield* isOk(paths)
    })
  )

  it.scopedLive("leaves no record when it was interrupted while it waited for its turn", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      fs.mkdirSync(path.dirname(paths.log))
      const other = LogLock.make(paths.log)
      assert.isTrue(other.attempt())
      yield* Effect.gen(function* () {
        const waiting = yield* Effect.fork(append("gone"))
        yield* Effect.repeat(Effect.sleep("2 millis"), {
          until: () => fs.readdirSync(path.dirname(paths.log)).length > 1
        })
        yield* Fiber.interrupt(waiting)
        const kept = yield* Effect.fork(append("kept"))
        yield* Effect.yieldNow()
        other.release()
        yield* Fiber.join(kept)
      }).pipe(withLog(paths))
      assert.deepEqual(namesOf(paths), ["kept"])
    })
  )

  it.scopedLive("gives up on a log that somebody keeps, and says who", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      fs.mkdirSync(path.dirname(paths.log))
      const other = LogLock.make(paths.log)
      assert.isTrue(other.attempt())
      const error = yield* withLog(paths, { lockWaitMs: 20 })(Effect.flip(append("a")))
      assert.deepInclude(error, { code: "SIGIL_AUDIT_UNWRITABLE", reason: "locked" })
      assert.include(error.text, `process ${process.pid}`)
      other.release()
      yield* withLog(paths)(append("b"))
      assert.deepEqual(namesOf(paths), ["b"])
    })
  )

  it.scopedLive("shares a log with another one of the same process, and hands over while busy", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      const names = (run: string) => Array.from({ length: 3_000 }, (_, index) => `${run}${index}`)
      yield* Effect.all(
        ["a", "b", "c"].map((run) => withLog(paths, { run, rotateBytes: 300_000 })(appendAll(names(run)))),
        { concurrency: "unbounded" }
      )
      assert.sameMembers([...namesOf(paths)], ["a", "b", "c"].flatMap(names))
      const turns = recordsOf(paths).filter(({ run }, index, all) => index > 0 && all[index - 1]?.run !== run)
      // Without handing over each would write all of its records in one turn.
      assert.isAbove(turns.length, 2)
      yield* isOk(paths)
    })
  )

  it.scopedLive("refuses what is no JSON, and goes on", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      const cycle: { [key: string]: unknown } = {}
      cycle["self"] = cycle
      yield* Effect.gen(function* () {
        const error = yield* Effect.flip(append("a", { payload: cycle as { readonly [key: string]: null } }))
        assert.equal(error.reason, "payload_invalid")
        yield* append("b")
      }).pipe(withLog(paths))
      assert.deepEqual(namesOf(paths), ["b"])
    })
  )

  it.scopedLive("is refused after the log was closed", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      const log = yield* withLog(paths)(AuditLog)
      assert.equal((yield* Effect.flip(log.append(entry("a")))).reason, "closed")
      assert.isFalse(fs.existsSync(paths.log))
    })
  )
})

describe("what is in the way", () => {
  it.scopedLive("is named: a link, a directory, a file in the place of the directory", () =>
    Effect.gen(function* () {
      const reasonOf = (spoil: (paths: ReturnType<typeof pathsIn>) => void) =>
        Effect.gen(function* () {
          const paths = pathsIn(yield* folder)
          spoil(paths)
          const error = yield* withLog(paths)(Effect.flip(append("a")))
          assert.equal(error.code, "SIGIL_AUDIT_UNWRITABLE")
          return error.reason
        })
      const inState = (act: (paths: ReturnType<typeof pathsIn>) => void) => (paths: ReturnType<typeof pathsIn>) => {
        fs.mkdirSync(path.dirname(paths.log))
        act(paths)
      }
      assert.equal(yield* reasonOf(inState(({ log }) => fs.symlinkSync("/dev/null", log))), "symlink")
      assert.equal(yield* reasonOf(inState(({ head }) => fs.symlinkSync("nowhere", head))), "symlink")
      assert.equal(yield* reasonOf(inState(({ log }) => fs.mkdirSync(log))), "not_a_file")
      assert.equal(yield* reasonOf(({ log }) => fs.writeFileSync(path.dirname(log), "")), "not_a_directory")
    })
  )

  it.scopedLive("is forgotten when it is gone: a directory that was removed is made again", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* Effect.gen(function* () {
        yield* append("a")
        // Until the lock is let go, files of this process are still there without their names.
        yield* Effect.repeat(Effect.sleep("2 millis"), {
          until: () => !fs.readdirSync(path.dirname(paths.log)).includes("audit.lock")
        })
        fs.rmSync(path.dirname(paths.log), { recursive: true })
        assert.equal((yield* Effect.flip(append("b"))).reason, "not_found")
        yield* append("c")
      }).pipe(withLog(paths))
      assert.deepEqual(namesOf(paths), ["c"])
    })
  )

  it.scopedLive("leaves nothing half written", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* Effect.gen(function* () {
        yield* append("a")
        const before = fs.readFileSync(paths.log, "utf8")
        // The system takes the first bytes of the record, then there is no space left.
        const error = yield* replacing("writeSync", failingWrites("ENOSPC", 10), Effect.flip(append("b")))
        assert.equal(error.reason, "no_space")
        assert.equal(fs.readFileSync(paths.log, "utf8"), before)
        yield* append("c")
      }).pipe(withLog(paths))
      assert.deepEqual(namesOf(paths), ["a", "c"])
      yield* isOk(paths)
    })
  )

  it.scopedLive("takes the record back when the head cannot be moved", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* Effect.gen(function* () {
        yield* append("a")
        yield* replacing("writeSync", failingWrites("EIO"), Effect.flip(append("b")))
        yield* append("c")
      }).pipe(withLog(paths))
      assert.deepEqual(namesOf(paths), ["a", "c"])
      yield* isOk(paths)
    })
  )
})

describe("rotation", () => {
  it.scopedLive("keeps one chain across files, and deletes none", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      const names = Array.from({ length: 60 }, (_, index) => `n${index}`)
      for (const third of [names.slice(0, 20), names.slice(20, 40), names.slice(40)]) {
        yield* withLog(paths, { rotateBytes: 2_000 })(appendAll(third))
      }
      const files = logFiles(paths.log)
      assert.isAbove(files.length, 5)
      assert.isTrue(files.every((file) => fs.statSync(file).size <= 2_000))
      assert.deepEqual(
        files.slice(0, 2).map((file) => path.basename(file)),
        ["audit.1.jsonl", "audit.2.jsonl"]
      )
      assert.deepEqual(namesOf(paths), names)
      yield* isOk(paths)
    })
  )

  it.scopedLive("takes a record that is larger than a file, and batches over several files", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* Effect.gen(function* () {
        yield* append("a")
        yield* append("big", { payload: { name: "big", text: "x".repeat(5_000) } })
        yield* Effect.forEach(["c", "d", "e", "f", "g"], (name) => append(name), { concurrency: "unbounded" })
      }).pipe(withLog(paths, { rotateBytes: 1_000 }))
      assert.deepEqual(namesOf(paths), ["a", "big", "c", "d", "e", "f", "g"])
      yield* isOk(paths)
    })
  )

  it.scopedLive("goes on when it was killed between the new name and the new file", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* withLog(paths)(appendAll(["a", "b"]))
      fs.renameSync(paths.log, path.join(path.dirname(paths.log), "audit.1.jsonl"))
      yield* isOk(paths)
      yield* withLog(paths)(append("c"))
      assert.deepEqual(namesOf(paths), ["a", "b", "c"])
      yield* isOk(paths)
    })
  )
})

describe("repair", () => {
  it.scopedLive("moves a torn last line aside and says so in the log", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      const torn = path.join(path.dirname(paths.log), "audit.torn")
      yield* withLog(paths)(appendAll(["a", "b"]))
      fs.appendFileSync(paths.log, '{"call":"c')
      assert.isFalse((yield* verify(paths)).ok)
      yield* withLog(paths)(append("c"))
      assert.equal(fs.readFileSync(torn, "utf8"), '{"call":"c\n')
      assert.equal(modeOf(torn), 0o600)
      const [, , note, last] = recordsOf(paths)
      assert.deepInclude(note, { kind: "audit_log_repaired", payload: { what: "torn_line", file: torn, bytes: 10 } })
      assert.equal(last?.payload["name"], "c")
      yield* isOk(paths)
      fs.appendFileSync(paths.log, "again")
      yield* withLog(paths)(append("d"))
      assert.equal(fs.readFileSync(torn, "utf8"), '{"call":"c\nagain\n')
      yield* isOk(paths)
    })
  )

  it.scopedLive("also while it runs: another process was killed in the middle of a line", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* Effect.gen(function* () {
        yield* append("a")
        yield* Effect.repeat(Effect.sleep("2 millis"), {
          until: () => !fs.readdirSync(path.dirname(paths.log)).includes("audit.lock")
        })
        fs.appendFileSync(paths.log, "half")
        yield* append("b")
      }).pipe(withLog(paths))
      assert.deepEqual(
        recordsOf(paths).map(({ kind }) => kind === "audit_log_repaired"),
        [false, true, false]
      )
      yield* isOk(paths)
    })
  )

  it.scopedLive("moves a head on that lags, silently, and makes a missing one again, with a note", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* withLog(paths)(appendAll(["a", "b", "c"]))
      const first = recordsOf(paths)[0]
      fs.writeFileSync(paths.head, encodeHead({ count: 1, hash: first?.hash ?? "", bytes: 5 }))
      yield* withLog(paths)(append("d"))
      assert.deepEqual(namesOf(paths), ["a", "b", "c", "d"])
      yield* isOk(paths)
      fs.rmSync(paths.head)
      yield* withLog(paths)(append("e"))
      assert.deepInclude(recordsOf(paths)[4], { kind: "audit_log_repaired", payload: { what: "head_missing" } })
      // The records before it may have lost their end with the head: that stays visible.
      const told = yield* verify(paths)
      assert.isFalse(told.ok)
      assert.match(told.faults.map(({ why }) => why).join(), /^the head was missing here/)
    })
  )

  it.scopedLive("never hides that records are gone from the end", () =>
    Effect.gen(function* () {
      const paths = pathsIn(yield* folder)
      yield* withLog(paths)(appendAll(["a", "b", "c"]))
      const kept = fs.readFileSync(paths.log, "utf8").split("\n").slice(0, 1)
      fs.writeFileSync(paths.log, `${kept.join("\n")}\n`)
      yield* withLog(paths)(append("d"))
      assert.deepEqual(
        recordsOf(paths).map(({ seq }) => seq),
        [1, 4]
      )
      assert.isFalse((yield* verify(paths)).ok)
    })
  )
})

describe("other layers", () => {
  it.effect("keep records in memory, chained, with the time of the clock", () =>
    Effect.gen(function* () {
      const records: Array<AuditRecord> = []
      yield* TestClock.adjust("1 second")
      yield* Effect.provide(appendAll(["a", "b"]), layerMemory(records))
      assert.deepEqual(
        records.map(({ payload, time }) => [payload["name"], time]),
        [
          ["a", "1970-01-01T00:00:01.000Z"],
          ["b", "1970-01-01T00:00:01.000Z"]
        ]
      )
      let chain = emptyChain
      for (const record of records) {
        const text = JSON.stringify(record, Object.keys(record).sort().concat("name"))
        assert.deepEqual(verifyLine(Buffer.from(text), chain).faults, [])
        chain = { count: record.seq, hash: record.hash }
      }
    })
  )

  it.effect("keep none", () => Effect.provide(appendAll(["a"]), layerNone))
})

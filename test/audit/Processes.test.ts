import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { verify } from "../../src/audit/Verify.ts"
import { bundle } from "./support/Bundle.ts"
import { appendAll, folder, namesOf, pathsIn, recordsOf, withLog } from "./support/Logs.ts"

let appender = ""
let fullDisk = ""
const removals: Array<() => void> = []
beforeAll(async () => {
  for (const name of ["Appender", "FullDisk"]) {
    const made = await bundle(name)
    removals.push(made.remove)
    if (name === "Appender") appender = made.file
    else fullDisk = made.file
  }
})
afterAll(() => {
  for (const remove of removals) remove()
})

/** Runs an appender; kills it when `killAfter` records were acknowledged. Gives what it acknowledged. */
const run = (args: ReadonlyArray<string>, killAfter = Number.POSITIVE_INFINITY) =>
  Effect.async<{ readonly acknowledged: ReadonlyArray<string>; readonly killed: boolean; readonly err: string }>(
    (resume) => {
      const child = spawn(process.execPath, [appender, ...args], { stdio: ["ignore", "pipe", "pipe"] })
      let out = ""
      let err = ""
      child.stdout.on("data", (chunk: Buffer) => {
        out += chunk.toString()
        if (out.split("\n").length > killAfter) child.kill("SIGKILL")
      })
      child.stderr.on("data", (chunk: Buffer) => {
        err += chunk.toString()
      })
      child.once("close", (_code, signal) =>
        resume(Effect.succeed({ acknowledged: out.split("\n").slice(0, -1), killed: signal === "SIGKILL", err }))
      )
      return Effect.sync(() => {
        child.kill("SIGKILL")
      })
    }
  )

describe("processes", () => {
  it.scopedLive(
    "that are killed in the middle of appending lose nothing they acknowledged, and block nobody",
    () =>
      Effect.gen(function* () {
        const at = yield* folder
        const paths = pathsIn(at)
        const ends = yield* Effect.forEach(
          Array.from({ length: 10 }, (_, index) => index),
          (index) =>
            run(
              [at, `p${index}`, "100", index % 2 === 0 ? "1" : "8", index === 3 ? "always" : "write", "20000"],
              5 + index * 9
            ),
          { concurrency: "unbounded" }
        )
        assert.deepEqual(
          ends.map(({ err }) => err).filter((err) => err !== ""),
          []
        )
        assert.isAbove(ends.filter(({ killed }) => killed).length, 5)
        yield* withLog(paths)(appendAll(["after"]))
        const found = yield* verify(paths)
        assert.isTrue(found.ok, JSON.stringify(found.faults))
        const names = namesOf(paths)
        assert.equal(new Set(names).size, names.length, "no record twice")
        const kept = new Set(names)
        for (const { acknowledged } of ends)
          for (const name of acknowledged) assert.isTrue(kept.has(name), `${name} was acknowledged`)
        assert.isTrue(kept.has("after"))
      }),
    60_000
  )

  it.scopedLive(
    "that append at the same time make one chain, whatever their modes",
    () =>
      Effect.gen(function* () {
        const at = yield* folder
        const paths = pathsIn(at)
        const ends = yield* Effect.forEach(
          ["a", "b", "c", "d"],
          (name) => run([at, name, "300", name === "a" ? "1" : "16", name === "d" ? "always" : "write", "50000"]),
          { concurrency: "unbounded" }
        )
        assert.deepEqual(ends.map(({ err }) => err).join(""), "")
        const expected = ["a", "b", "c", "d"].flatMap((name) =>
          Array.from({ length: 300 }, (_, index) => `${name}:${index}`)
        )
        assert.sameMembers([...namesOf(paths)], expected)
        const { ok, records, unheaded } = yield* verify(paths)
        assert.deepEqual([ok, records, unheaded], [true, 1_200, 0])
        // Each process that appends one after the other finds its records in that order.
        const own = recordsOf(paths).flatMap(({ run: by, payload }) => (by === "a" ? [payload["name"]] : []))
        assert.deepEqual(own, expected.slice(0, 300))
        assert.notInclude(fs.readdirSync(path.dirname(paths.log)), "audit.lock")
      }),
    60_000
  )
})

describe("a disk without room", () => {
  /** Runs the program where its folder has 64 KiB, or, where nothing may be mounted, files have a largest size. */
  const inLittleRoom = (at: string): { readonly out: string; readonly err: string } => {
    const mounted =
      'mount -t tmpfs -o size=64k none "$1" && head -c 16384 /dev/zero > "$1/filler" && exec "$2" "$3" "$1"'
    const limited = 'ulimit -S -f 40 && exec "$2" "$3" "$1"'
    const words = ["sh", at, process.execPath, fullDisk]
    const tries: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
      ["unshare", ["-m", "sh", "-c", mounted, ...words]],
      ["unshare", ["-rm", "sh", "-c", mounted, ...words]],
      ["sh", ["-c", limited, ...words]]
    ]
    let err = ""
    for (const [file, args] of tries) {
      const done = spawnSync(file, args, { encoding: "utf8" })
      if (done.status === 0 && done.stdout !== "") return { out: done.stdout, err: "" }
      err += done.stderr
    }
    return { out: "", err }
  }

  it.scopedLive("refuses, leaves whole lines, and goes on when there is room", () =>
    Effect.gen(function* () {
      const { out, err } = inLittleRoom(yield* folder)
      assert.notEqual(out, "", err)
      const seen = JSON.parse(out)
      assert.isAbove(seen.count, 2)
      assert.equal(seen.code, "SIGIL_AUDIT_UNWRITABLE")
      assert.include(["no_space", "system_error"], seen.reason)
      assert.deepInclude(seen, {
        again: "SIGIL_AUDIT_UNWRITABLE",
        wholeLines: true,
        linesThen: seen.count,
        okThen: true
      })
      assert.isTrue(seen.ok, JSON.stringify(seen.faults))
      const acknowledged = Array.from({ length: seen.count }, (_, index) => `a${index}`)
      assert.deepEqual(seen.names, [...acknowledged, "after"])
    })
  )
})

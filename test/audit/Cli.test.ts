/** `sigil audit show|tail|verify` as a user runs them. */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import type { AuditEntry } from "../../src/audit/AuditRecord.ts"
import { AuditLog, layer } from "../../src/audit/AuditLog.ts"
import type { LogPaths } from "../../src/audit/LogFiles.ts"
import { workspaceId } from "../../src/config/Locations.ts"
import { makeProject, type Project, until } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
let paths: LogPaths
beforeEach(() => {
  project = makeProject()
  const state = path.join(project.home, ".sigil", "state", "workspaces", workspaceId(project.root))
  paths = { log: path.join(state, "audit.jsonl"), head: path.join(state, "audit.head") }
})
afterEach(() => project.dispose())

const record = (entries: ReadonlyArray<AuditEntry>): Promise<void> =>
  Effect.runPromise(
    Effect.flatMap(AuditLog, (log) => log.appendAll(entries)).pipe(
      Effect.provide(layer(paths, { sync: "write", run: "r", rotateBytes: 1_500 }))
    )
  )
const entries = (count: number, more: Partial<AuditEntry> = {}): ReadonlyArray<AuditEntry> =>
  Array.from({ length: count }, (_, index) => ({
    kind: "tool_execution_finished" as const,
    server: index % 2 === 0 ? "fs" : "gh",
    call: `c${index}`,
    payload: { status: "succeeded", tool_name: `t${index}` },
    ...more
  }))
const seqs = (records: ReadonlyArray<{ readonly seq: number }>): ReadonlyArray<number> => records.map(({ seq }) => seq)

describe("sigil audit", () => {
  it("says that there is no log yet, and touches nothing", async () => {
    for (const words of [["show"], ["tail"], ["verify"], []]) {
      const { code, stdout, stderr } = await project.run(["audit", ...words])
      assert.equal(code, 0, stderr)
      assert.include(stdout, "Nothing has been recorded")
      assert.isFalse(fs.existsSync(path.join(project.home, ".sigil", "state")))
    }
    const { document } = await project.document("audit", ["audit", "show"])
    assert.deepEqual([document.file, document.records], [paths.log, []])
    const verified = await project.document("audit_verify", ["audit", "verify"])
    assert.deepEqual(verified, {
      code: 0,
      stderr: "",
      document: { schema: "sigil.audit.verify/1", ok: true, records: 0, faults: [] }
    })
  })

  it("shows the newest records, filtered, and pages through all files", async () => {
    await record(entries(30))
    const page = (...more: ReadonlyArray<string>) =>
      project.document("audit", ["audit", "show", ...more]).then(({ document }) => document)
    assert.deepEqual(seqs((await page("--limit", "3")).records), [28, 29, 30])
    assert.deepEqual(seqs((await page("--limit", "2", "--server", "gh")).records), [28, 30])
    const first = await page("--since", "1", "--limit", "12")
    assert.deepEqual([seqs(first.records).length, first.next], [12, 13])
    const second = await page("--since", String(first.next), "--limit", "18")
    assert.deepEqual([second.records[0]?.seq, second.records.at(-1)?.seq, second.next], [13, 30, undefined])
    assert.deepEqual(await page("--kind", "pin_recorded").then(({ records }) => records), [])
    const text = await project.run(["audit", "show", "--limit", "1"])
    assert.match(
      text.stdout,
      /^SEQ +TIME +KIND +SERVER +CALL +WHAT\n30 +\S+Z +tool_execution_finished +gh +c29 +succeeded t29\n$/
    )
    const none = await project.run(["audit", "show", "--kind", "pin_recordet"])
    assert.deepEqual([none.code, none.stdout], [0, "No record matches.\n"])
    assert.include(none.stderr, "pin_recorded")
    for (const wrong of [
      ["--limit", "0"],
      ["--since", "0"]
    ]) {
      assert.equal((await project.run(["audit", "show", ...wrong])).code, 2)
    }
  })

  it("shows nothing that moves the cursor", async () => {
    await record(entries(1, { server: "e\u001b[2Jvil", payload: { tool_name: "a\u001b]0;t\u0007\nb\u202e" } }))
    for (const words of [["show"], ["tail"], ["show", "--json"]]) {
      const { stdout } = await project.run(["audit", ...words])
      for (const unsafe of ["\u001b", "\u0007", "\u202e"]) assert.notInclude(stdout, unsafe)
      assert.include(stdout, "vil")
    }
  })

  it("follows a log across rotations until it is interrupted", async () => {
    await record(entries(2))
    const running = project.start(["audit", "tail", "-n", "1", "--follow"])
    let seen = ""
    running.child.stdout?.on("data", (text: string) => {
      seen += text
    })
    await until("the last record is shown", () => seen.includes("t1"))
    assert.notInclude(seen, "t0")
    await record(entries(9, { server: "later" }))
    await until("new records are shown", () => seen.includes("t8"))
    running.child.kill("SIGINT")
    const { code, stdout } = await running.done
    assert.equal(code, 130)
    assert.deepEqual(
      stdout.split("\n").flatMap((line) => /^(\d+) /.exec(line)?.[1] ?? []),
      ["2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]
    )
    const { document, code: refused } = await project.document("error", ["audit", "tail", "--follow"])
    assert.deepEqual([document.error.code, refused], ["SIGIL_USAGE", 2])
  })

  it("verifies, and says with exit code 1 what does not fit", async () => {
    await record(entries(3))
    const whole = await project.document("audit_verify", ["audit", "verify"])
    assert.deepEqual(
      [whole.code, whole.document.ok, whole.document.records, whole.document.head?.count],
      [0, true, 3, 3]
    )
    assert.match((await project.run(["audit", "verify"])).stdout, /^ok 3 records/)
    fs.writeFileSync(paths.log, fs.readFileSync(paths.log, "utf8").replace("t1", "t9"))
    const { code, document } = await project.document("audit_verify", ["audit", "verify"])
    assert.deepEqual([code, document.ok], [1, false])
    assert.deepEqual(
      document.faults.map(({ file, line }) => [file, line]),
      [[paths.log, 2]]
    )
    const text = await project.run(["audit", "verify"])
    assert.equal(text.code, 1)
    assert.include(text.stdout, "audit.jsonl:2")
    fs.appendFileSync(paths.log, "x\n")
    const shown = await project.run(["audit", "show"])
    assert.include(shown.stderr, "1 line is not readable")
  })

  it("names a log that cannot be read", async () => {
    fs.mkdirSync(paths.log, { recursive: true })
    for (const words of [["show"], ["verify"]]) {
      const { document, code } = await project.document("error", ["audit", ...words])
      assert.deepEqual([document.error.code, code], ["SIGIL_FILE", 1])
    }
  })
})

/** Answers that are not what their method answers with, and targets of `--save` that cannot be written. */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { inline, makeProject, misshapen, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const config = inline("bad", [misshapen])

describe("an answer of the wrong shape", () => {
  it("is a protocol fault, never an empty answer", async () => {
    const cases: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
      [["read", "bad", "x://no-list"], "contents"],
      [["read", "bad", "x://empty"], "contents[0]"],
      [["read", "bad", "x://number"], "contents[0]"],
      [["prompt", "bad", "p", "city=Paris"], "messages[0]"],
      [["complete", "bad", "prompt:p", "city", "few"], "completion.values[0]"]
    ]
    for (const [words, field] of cases) {
      const { code, document } = await project.document("error", [...config, "mcp", ...words])
      assert.deepEqual([code, document.error.code, document.error.where?.field], [3, "SIGIL_PROTOCOL_FAULT", field])
    }
  })

  it("says that a tool failed, whatever the type of its mark", async () => {
    const { code, document } = await project.document("call", [...config, "mcp", "call", "bad", "say"])
    assert.deepEqual([code, document.is_error], [5, true])
  })

  it("of one argument does not hide the list of prompts", async () => {
    const { code, stdout } = await project.run([...config, "mcp", "prompts", "bad"])
    assert.equal(code, 0)
    assert.include(stdout, "[city]")
  })

  it("is bounded: a completion has a hundred values at most, and says that there are more", async () => {
    const { document } = await project.document("complete", [
      ...config,
      "mcp",
      "complete",
      "bad",
      "prompt:p",
      "city",
      "many"
    ])
    assert.deepEqual([document.items.length, document.complete], [100, false])
  })
})

describe("words that cannot be meant", () => {
  it("are refused: JSON for a prompt's argument, nothing to search for", async () => {
    for (const words of [
      ["mcp", "prompt", "bad", "p", "city:=5"],
      ["mcp", "search", ""]
    ]) {
      const { code, document } = await project.document("error", [...config, ...words])
      assert.deepEqual([code, document.error.code], [2, "SIGIL_USAGE"])
    }
  })
})

describe("--save", () => {
  it("is judged before the tool runs", async () => {
    const pipe = path.join(project.root, "pipe")
    execFileSync("mkfifo", [pipe])
    const cases = [
      [pipe, 1, "not_a_file"],
      [project.root, 1, "is_directory"],
      [path.join(project.root, "none", "x"), 1, "no_folder"],
      ["", 2, "usage"]
    ] as const
    for (const [target, exit, reason] of cases) {
      const { code, document } = await project.document("error", [
        ...config,
        "mcp",
        "call",
        "bad",
        "say",
        "--save",
        target
      ])
      assert.deepEqual([code, document.error.reason], [exit, reason])
    }
    const ran = async (): Promise<ReadonlyArray<string>> =>
      (await project.document("audit", ["audit", "show"])).document.records
        .map(({ kind }) => kind)
        .filter((kind) => kind === "tool_execution_finished")
    assert.deepEqual(await ran(), [])
    await project.run([...config, "mcp", "call", "bad", "say", "--save", "said"])
    assert.equal(project.read("said"), "ran")
    assert.deepEqual(await ran(), ["tool_execution_finished"])
  })

  it.runIf(fs.existsSync("/dev/full"))("that fails afterwards loses nothing: the result is shown", async () => {
    const ran = await project.run([...config, "mcp", "call", "bad", "say", "--save", "/dev/full"])
    assert.equal(ran.code, 1)
    assert.include(ran.stdout, "ran")
    assert.include(ran.stderr, "SIGIL_FILE")
  })
})

/** The built command, as a user runs it. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type SpawnSyncReturns, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { rolldown } from "rolldown"
import { options } from "../../rolldown.config.ts"
import { VERSION } from "../../src/base/Version.ts"

const directory = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-bin-"))

const build = async (): Promise<void> => {
  const { output, ...input } = options(directory)
  const bundle = await rolldown(input)
  await bundle.write(Array.isArray(output) ? output[0] : output)
  await bundle.close()
}

const sigil = (...args: ReadonlyArray<string>): SpawnSyncReturns<string> =>
  spawnSync(process.execPath, [path.join(directory, "bin.js"), ...args], {
    encoding: "utf8",
    input: "",
    env: { PATH: process.env["PATH"], HOME: directory, SIGIL_HOME: path.join(directory, "home") },
    cwd: directory
  })

beforeAll(build, 120_000)
afterAll(() => fs.rmSync(directory, { recursive: true, force: true }))

describe("sigil", () => {
  it("is an executable file with a shebang, beside the demo server", () => {
    const file = path.join(directory, "bin.js")
    assert.equal(fs.readFileSync(file, "utf8").split("\n")[0], "#!/usr/bin/env node")
    assert.equal(fs.statSync(file).mode & 0o111, 0o111)
    assert.isTrue(fs.existsSync(path.join(directory, "demo-server.js")))
  })

  it("prints its version, alone and among other words", () => {
    for (const args of [["--version"], ["mcp", "list", "--version"]]) {
      const { stdout, stderr, status } = sigil(...args)
      assert.deepEqual([stdout, stderr, status], [`${VERSION}\n`, "", 0])
    }
  })

  it("has nothing but the version to load before it answers --version", () => {
    const source = fs.readFileSync(path.join(directory, "bin.js"), "utf8")
    const statics = [...source.matchAll(/from\s*"([^"]+)"/g)].map(([, file = ""]) => path.join(directory, file))
    for (const file of [path.join(directory, "bin.js"), ...statics]) assert.isBelow(fs.statSync(file).size, 1_000, file)
  })

  it("prints plain help into a pipe", () => {
    const { stdout, stderr, status } = sigil("mcp", "add", "--help")
    assert.include(stdout, "sigil mcp add [options] NAME COMMAND ARGS...")
    assert.notInclude(stdout, "\u001b")
    assert.deepEqual([stderr, status], ["", 0])
  })

  it("prints help and exits with 2 when nothing was asked outside a terminal", () => {
    const { stdout, status } = sigil()
    assert.include(stdout, "mcp add")
    assert.equal(status, 2)
  })

  it("explains codes", () => {
    const one = sigil("errors", "start_timeout")
    assert.include(one.stdout, "SIGIL_START_TIMEOUT")
    assert.include(one.stdout, "exit: 3")
    assert.equal(one.status, 0)
    const json = sigil("--json", "errors", "SIGIL_USAGE")
    assert.deepEqual(JSON.parse(json.stdout).errors[0].code, "SIGIL_USAGE")
    assert.equal(json.stdout.trim().split("\n").length, 1)
    assert.isAbove(JSON.parse(sigil("errors", "--json").stdout).errors.length, 40)
  })

  it("puts a failure on stderr, and with --json on stdout only", () => {
    const text = sigil("errors", "SIGIL_USGE")
    assert.deepEqual([text.stdout, text.status], ["", 1])
    assert.match(text.stderr, /^error: .*\n {2}did you mean 'SIGIL_USAGE'/)
    const json = sigil("errors", "SIGIL_USGE", "--json")
    assert.deepEqual([json.stderr, json.status], ["", 1])
    assert.equal(JSON.parse(json.stdout).error.code, "SIGIL_UNKNOWN_CODE")
  })

  it("refuses what it does not know with 2", () => {
    for (const args of [["mcp", "lst"], ["mcp", "list", "--nonsense"], ["mcp", "add"], ["--wizard"]]) {
      const { stdout, stderr, status } = sigil(...args)
      assert.deepEqual([stdout, status], ["", 2], args.join(" "))
      assert.match(stderr, /^error: [^{]*code: SIGIL_/)
    }
  })
})

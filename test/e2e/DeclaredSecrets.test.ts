/** What entries name is a secret from the moment they are read: in every field, and for every server. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { makeProject, odd, type Project } from "../support/Command.ts"

const SECRET = "S3cr3t-Val//ue/../9Qzx7Kw"
const env = { MYSECRET: SECRET }
/** Parts of it that stand alone once a path is put in order. */
const traces = ["S3cr3t", "9Qzx7Kw"]

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const assertNowhere = (text: string, what: string): void => {
  for (const trace of traces) assert.notInclude(text, trace, what)
}
const kept = (): string =>
  fs
    .readdirSync(project.home, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => fs.readFileSync(path.join(entry.parentPath, entry.name), "utf8"))
    .join("\n")

const commands: ReadonlyArray<ReadonlyArray<string>> = [
  ["mcp", "call", "s", "echo", "a=1"],
  ["mcp", "tools", "s"],
  ["mcp", "list"],
  ["mcp", "list", "--status"],
  ["mcp", "get", "s"],
  ["mcp", "explain", "s"],
  ["doctor"],
  ["doctor", "--probe"]
]

describe("a secret in the command of an entry", () => {
  for (const command of ["/nonexist/${MYSECRET}", "no${MYSECRET}", "./${MYSECRET}"]) {
    it(`is shown and kept nowhere: ${command}`, { timeout: 120_000 }, async () => {
      const options = ["--mcp-config", JSON.stringify({ mcpServers: { s: { command } } })]
      for (const words of commands) {
        for (const json of [[], ["--json"]]) {
          const ran = await project.run([...options, ...json, ...words], { env })
          assertNowhere(ran.stdout + ran.stderr, [...words, ...json].join(" "))
          if (words[1] === "call") assert.include(ran.stdout + ran.stderr, command)
        }
      }
      assertNowhere(kept(), "what was kept")
    })
  }

  it("is not in the path that explain shows of a command that is found", async () => {
    const folder = path.join(project.root, SECRET)
    fs.mkdirSync(folder, { recursive: true })
    fs.copyFileSync("/bin/true", path.join(folder, "run"))
    const options = ["--mcp-config", JSON.stringify({ mcpServers: { s: { command: "./${MYSECRET}/run" } } })]
    const ran = await project.run([...options, "mcp", "explain", "s"], { env })
    assert.include(ran.stdout, "every gate passes")
    assertNowhere(ran.stdout + ran.stderr, "explain")
  })

  it("is no secret when it is a default that was written, or a public variable", async () => {
    for (const command of ["/nonexist/${MYSECRET:-written}", "/nonexist/${LANG}"]) {
      const options = ["--mcp-config", JSON.stringify({ mcpServers: { s: { command } } })]
      const ran = await project.run([...options, "mcp", "call", "s", "echo"], { env: { LANG: "en_GB.UTF-8" } })
      assert.include(ran.stderr, `There is no file '${command}'`)
    }
  })
})

describe("a secret that was granted to one server", () => {
  const node = { command: process.execPath, args: [odd, "names"], trust: { approval_default: "allow" } }
  const servers = (more: object) => ["--mcp-config", JSON.stringify({ mcpServers: { g: node, ...more } })]

  it("does not go to another, whether or not the first was started", { timeout: 60_000 }, async () => {
    const holders: ReadonlyArray<object> = [
      { ...node, inheritEnv: ["MYSECRET"] },
      { ...node, inheritEnv: ["MYSECRET"], disabled: true },
      { ...node, args: [odd, "names", "${MYSECRET}"] },
      { ...node, env: { X: "${MYSECRET}" } },
      { type: "http", url: "https://example.test/", headers: { "X-Any": "${MYSECRET}" } },
      { type: "http", url: "https://example.test/", headers: { Authorization: `Bearer ${SECRET}` } }
    ]
    for (const h of holders) {
      const ran = await project.run([...servers({ h }), "mcp", "call", "g", "plain", `message=${SECRET}`], { env })
      assert.equal(ran.code, 4, JSON.stringify(h) + ran.stderr)
      assertNowhere(ran.stdout + ran.stderr, JSON.stringify(h))
    }
    assertNowhere(kept(), "what was kept")
  })

  it("is only what an approved entry of the project names", { timeout: 60_000 }, async () => {
    project.write(".mcp.json", { mcpServers: { h: { ...node, args: [odd, "schemas"], env: { X: "${MYSECRET}" } } } })
    const call = () => project.run([...servers({}), "mcp", "call", "g", "plain", `message=${SECRET}`], { env })
    const before = await call()
    assert.equal(before.code, 0, before.stderr)
    const approved = await project.run(["mcp", "approve", "h"], { env })
    assert.equal(approved.code, 0, approved.stderr)
    const after = await call()
    assert.equal(after.code, 4, after.stderr)
  })
})

/** Resources, prompts, completion, search, kept results and shell completions, over the official server. */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { demo, inline, makeProject, odd, official, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const config = inline("every", [official("everything")])

describe("resources and prompts", () => {
  it("are listed whole", async () => {
    const resources = await project.document("resources", [...config, "mcp", "resources", "every"])
    assert.isTrue(resources.document.complete)
    assert.isAbove(resources.document.items.length, 3)
    const templates = await project.document("templates", [...config, "mcp", "templates", "every"])
    assert.include(JSON.stringify(templates.document.items), "{resourceId}")
    const prompts = await project.document("prompts", [...config, "mcp", "prompts", "every"])
    assert.include(JSON.stringify(prompts.document.items), "args-prompt")
  })

  it("are read as text, and as a file where they are binary", async () => {
    const text = await project.document("read", [...config, "mcp", "read", "every", "demo://resource/dynamic/text/1"])
    assert.match(String(text.document.contents[0]?.["text"]), /Resource 1/)
    const blob = await project.document("read", [...config, "mcp", "read", "every", "demo://resource/dynamic/blob/1"])
    assert.notProperty(blob.document.contents[0] ?? {}, "blob")
    const artifact = blob.document.contents[0]?.["artifact"] as { readonly handle: string; readonly path: string }
    assert.isTrue(fs.existsSync(artifact.path))
    const missing = await project.document("error", [...config, "mcp", "read", "every", "demo://nothing/here"])
    assert.deepEqual([missing.code, missing.document.error.code], [1, "SIGIL_REMOTE_ERROR"])
  })

  it("are got with arguments, and a wrong name is told from the list", async () => {
    const { document } = await project.document("prompt", [
      ...config,
      "mcp",
      "prompt",
      "every",
      "args-prompt",
      "city=Paris"
    ])
    assert.equal(document.messages[0]?.role, "user")
    assert.include(String(document.messages[0]?.content["text"]), "Paris")
    const wrong = await project.document("error", [...config, "mcp", "prompt", "every", "arg-prompt"])
    assert.deepEqual([wrong.code, wrong.document.error.candidates[0]], [1, "args-prompt"])
  })

  it("are completed by the server", async () => {
    const { document } = await project.document("complete", [
      ...config,
      "mcp",
      "complete",
      "every",
      "prompt:completable-prompt",
      "department",
      "E"
    ])
    assert.deepEqual(document.items, ["Engineering"])
  })

  it("pass the same gates as tools", async () => {
    const asking = inline("every", [official("everything")], { trust: { approval_default: "ask" } })
    const refused = await project.document("error", [
      ...asking,
      "mcp",
      "read",
      "every",
      "demo://resource/dynamic/text/1"
    ])
    assert.deepEqual([refused.code, refused.document.error.code], [4, "SIGIL_APPROVAL_REQUIRED"])
    assert.include(refused.document.error.fix, "mcp__every__resources_read")
    assert.equal(
      (await project.run([...asking, "mcp", "read", "every", "demo://resource/dynamic/text/1", "--yes"])).code,
      0
    )
    const secret = inline("every", [official("everything")], { inheritEnv: ["TOKEN"] })
    const blocked = await project.document("error", [...secret, "mcp", "read", "every", "demo://s3cr3t-token-value"], {
      env: { TOKEN: "s3cr3t-token-value" }
    })
    assert.deepEqual([blocked.code, blocked.document.error.code], [4, "SIGIL_SECRET_BLOCKED"])
  })

  it("of a server that has none are said to be none", async () => {
    const { document, code } = await project.document("error", [
      ...inline("odd", [odd, "plain"]),
      "mcp",
      "resources",
      "odd"
    ])
    assert.deepEqual([code, document.error.code], [1, "SIGIL_UNKNOWN_SURFACE"])
  })
})

describe("search", () => {
  it("finds tools by words, and names what it did not search", async () => {
    const both = JSON.stringify({
      mcpServers: {
        every: { command: process.execPath, args: [official("everything")] },
        lazy: { command: process.execPath, args: [odd, "plain"], startup: "lazy" }
      }
    })
    const { document } = await project.document("search", [
      "--mcp-config",
      both,
      "mcp",
      "search",
      "sum",
      "two",
      "numbers"
    ])
    assert.equal(document.matches[0]?.name, "get-sum")
    assert.deepEqual(document.not_searched, [{ server: "lazy", state: "deferred" }])
  })
})

describe("kept results", () => {
  it("are listed, shown, used as an argument and removed", async () => {
    const demoConfig = inline("demo", [demo()])
    const cut = await project.document("call", [...demoConfig, "mcp", "call", "demo", "count", "lines=5000"])
    const handle = cut.document.artifact?.handle ?? ""
    const listed = await project.document("artifacts", ["artifact", "list"])
    assert.deepEqual(
      listed.document.artifacts.map((artifact) => artifact.handle),
      [handle]
    )
    const shown = await project.run(["artifact", "show", handle])
    assert.equal(shown.stdout.trimEnd().split("\n").length, 5_000)
    const echoed = await project.document("call", [
      ...inline("odd", [odd, "plain"]),
      "mcp",
      "call",
      "odd",
      "echo",
      `text=@artifact:${handle}`,
      "--full"
    ])
    assert.include(String(echoed.document.content[0]?.["text"]), "line 5000")
    assert.equal(
      (await project.document("error", ["artifact", "show", "../../etc/passwd"])).document.error.code,
      "SIGIL_UNKNOWN_ARTIFACT"
    )
    const removed = await project.document("artifacts_removed", ["artifact", "rm", handle])
    assert.deepEqual(removed.document.removed, [handle])
    assert.deepEqual((await project.document("artifacts", ["artifact", "list"])).document.artifacts, [])
  })
})

describe("completions", () => {
  const script = async (shell: string): Promise<string> => {
    const { stdout, code } = await project.run(["completions", shell])
    assert.equal(code, 0)
    return project.write(`sigil.${shell}`, stdout)
  }

  it("work in bash", async () => {
    const file = await script("bash")
    const complete = (...words: ReadonlyArray<string>): ReadonlyArray<string> => {
      const ran = spawnSync(
        "bash",
        [
          "--norc",
          "-c",
          `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sigil; printf '%s\\n' "\${COMPREPLY[@]}"`,
          file,
          ...words
        ],
        { encoding: "utf8" }
      )
      assert.equal(ran.status, 0, ran.stderr)
      return ran.stdout.trim().split("\n")
    }
    assert.includeMembers([...complete("sigil", "")], ["mcp", "doctor", "--json"])
    assert.deepEqual(complete("sigil", "mcp", "ca"), ["call"])
    assert.deepEqual(complete("sigil", "mcp", "call", "fs", "--ti"), ["--timeout"])
    assert.deepEqual(complete("sigil", "mcp", "add", "--scope", "u"), ["user"])
  })

  it("of an unknown shell are refused with the known ones", async () => {
    const { code, document } = await project.document("error", ["completions", "bsh"])
    assert.deepEqual([code, document.error.candidates[0]], [2, "bash"])
    assert.isTrue(path.isAbsolute(project.root))
  })
})

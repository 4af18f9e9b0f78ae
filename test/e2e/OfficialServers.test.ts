/** The official MCP servers as real processes: every content kind, long work with progress, state across calls. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { inline, makeProject, official, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

describe("server-everything", () => {
  const config = inline("every", [official("everything")])
  const call = (...args: ReadonlyArray<string>) =>
    project.document("call", [...config, "mcp", "call", "every", ...args])

  it("lists its tools with descriptions and a token bill", async () => {
    const { document } = await project.document("tools", [...config, "mcp", "tools", "every"])
    const server = document.servers[0]
    assert.equal(server?.state, "ready")
    assert.isAbove(server?.tokens ?? 0, 100)
    assert.includeMembers(
      (server?.tools ?? []).map(({ name }) => name),
      ["echo", "get-sum"]
    )
    for (const { status, name } of server?.tools ?? []) assert.equal(status, "available", name)
  })

  it("answers with text and coerced numbers", async () => {
    assert.equal((await call("echo", "message=hello")).document.content[0]?.["text"], "Echo: hello")
    assert.include(String((await call("get-sum", "a=2", "b=40")).document.content[0]?.["text"]), "42")
  })

  it("answers with an image that is kept as an artifact, never as base64", async () => {
    const { document } = await call("get-tiny-image")
    const image = document.content.find(({ type }) => type === "image")
    assert.equal(image?.["mime_type"], "image/png")
    assert.notProperty(image ?? {}, "data")
    const artifact = image?.["artifact"] as { readonly path: string; readonly bytes: number }
    assert.equal(artifact.bytes, image?.["bytes"])
    assert.isTrue(artifact.path.endsWith(".png"))
    const saved = path.join(project.root, "tiny.png")
    await project.run([...config, "mcp", "call", "every", "get-tiny-image", "--save", "tiny.png"])
    const { readFileSync } = await import("node:fs")
    assert.deepEqual([...readFileSync(saved).subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47])
  })

  it("answers with structured content, links and embedded resources", async () => {
    const structured = await call("get-structured-content", "location=New York")
    assert.equal(structured.code, 0)
    assert.property(
      structured.document.structured_content ?? JSON.parse(String(structured.document.content[0]?.["text"])),
      "temperature"
    )
    const links = await call("get-resource-links", "count=2")
    assert.equal(links.document.content.filter(({ type }) => type === "resource_link").length, 2)
    const resource = await call("get-resource-reference", "resourceType=Text", "resourceId=1")
    assert.isDefined(resource.document.content.find(({ type }) => type === "resource"))
    const annotated = await call("get-annotated-message", "messageType=error", "includeImage=true")
    assert.property(annotated.document.content[0] ?? {}, "annotations")
  })

  it("reports progress of long work without being cut off by it", async () => {
    const { document, code } = await call("trigger-long-running-operation", "duration=1", "steps=5")
    assert.equal(code, 0)
    assert.match(String(document.content[0]?.["text"]), /completed/i)
  })
})

describe("server-memory", () => {
  it("keeps what one call stored for the next", async () => {
    const config = inline("memory", [official("memory")], {
      env: { MEMORY_FILE_PATH: path.join(project.root, "memory.jsonl") }
    })
    const entity = { name: "sigil", entityType: "host", observations: ["holds"] }
    const stored = await project.document("call", [
      ...config,
      "mcp",
      "call",
      "memory",
      "create_entities",
      `entities:=${JSON.stringify([entity])}`
    ])
    assert.equal(stored.code, 0)
    const { document } = await project.document("call", [...config, "mcp", "call", "memory", "read_graph"])
    assert.include(JSON.stringify(document.structured_content ?? document.content), "holds")
  })
})

describe("server-filesystem", () => {
  it("keeps the directory it was declared for, also where that is not the workspace", async () => {
    const elsewhere = path.join(path.dirname(project.root), "elsewhere")
    fs.mkdirSync(elsewhere)
    fs.writeFileSync(path.join(elsewhere, "there.txt"), "x")
    const config = inline("fs", [official("filesystem"), elsewhere])
    const { document, code } = await project.document("call", [
      ...config,
      "mcp",
      "call",
      "fs",
      "list_directory",
      `path=${elsewhere}`
    ])
    assert.equal(code, 0)
    assert.include(String(document.content[0]?.["text"]), "there.txt")
  })

  it("reads, lists and refuses what is outside its directory", async () => {
    project.write("a.txt", "alpha\n")
    const config = inline("fs", [official("filesystem"), project.root])
    const read = await project.document("call", [
      ...config,
      "mcp",
      "call",
      "fs/read_text_file",
      `path=${project.root}/a.txt`
    ])
    assert.equal(read.document.content[0]?.["text"], "alpha\n")
    const outside = await project.document("call", [
      ...config,
      "mcp",
      "call",
      "fs/read_text_file",
      "path=/etc/hostname"
    ])
    assert.deepEqual([outside.code, outside.document.is_error], [5, true])
    assert.match(String(outside.document.content[0]?.["text"]), /denied/i)
  })
})

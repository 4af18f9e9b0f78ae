/**
 * A real server that was granted a secret and repeats it everywhere: nothing that the command prints, sends or keeps
 * holds it, in any form or in pieces (spec section 9).
 */
import * as fs from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import * as path from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { inline, leaky, makeProject, type Project, type Ran } from "../support/Command.ts"

/** Marks of every encoding; each part of eight characters stands nowhere else. */
const SECRET = 's3cr&t"/Kw%rd+t0k<9Qzx\\Ü-Vb7LmN2'
/** Characters in a row that nobody may read. */
const SHARD = 8

const unescaped = (text: string): string =>
  text
    .replace(/\\u([0-9a-fA-F]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\\(["\\/])/g, "$1")

const named: { readonly [entity: string]: string } = { amp: "&", lt: "<", gt: ">", quot: '"' }

/** Every reading of a text: as it is, unescaped, and each run of base64 at each of its four places decoded. */
const readings = (text: string): ReadonlyArray<string> => {
  const decoded = (text.match(/[A-Za-z0-9+/_-]{10,}={0,2}/g) ?? []).flatMap((run) =>
    [0, 1, 2, 3].flatMap((from) => {
      const bytes = Buffer.from(run.slice(from), "base64")
      return [bytes.toString("utf8"), bytes.toString("latin1")]
    })
  )
  const percent = text.replace(/(?:%[0-9a-fA-F]{2})+/g, (run) =>
    Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8")
  )
  const entities = text.replace(/&(\w+);/g, (all, name: string) => named[name] ?? all)
  return [text, unescaped(text), unescaped(unescaped(text)), percent, entities, ...decoded]
}

/** Parts of the secret that nobody may read. */
const shards = Array.from({ length: SECRET.length - SHARD + 1 }, (_, at) => SECRET.slice(at, at + SHARD))

/** A part of the secret that can be read in the text. */
const leakIn = (text: string): string | undefined => {
  // Lines joined too: broken base64 is one text.
  for (const given of [text, text.replaceAll("\n", ""), text.replaceAll("\\n", "")]) {
    for (const reading of readings(given)) {
      const shard = shards.find((one) => reading.includes(one))
      if (shard !== undefined)
        return `${shard} in …${reading.slice(Math.max(0, reading.indexOf(shard) - 60)).slice(0, 140)}`
    }
  }
  return undefined
}

const filesUnder = (directory: string): ReadonlyArray<string> =>
  fs
    .readdirSync(directory, { recursive: true, withFileTypes: true })
    .flatMap((entry) => (entry.isFile() ? [path.join(entry.parentPath, entry.name)] : []))

/** Fails when a file, name or link under the directory shows the secret. */
const searchFiles = (directory: string): void => {
  for (const file of filesUnder(directory)) {
    assert.isUndefined(leakIn(file), "a file's name")
    const bytes = fs.readFileSync(file)
    for (const text of [bytes.toString("utf8"), bytes.toString("latin1")]) assert.isUndefined(leakIn(text), file)
  }
}

let collector: http.Server
const exported: Array<string> = []
let url = ""
beforeAll(async () => {
  collector = http.createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      exported.push(`${request.url} ${Buffer.concat(chunks).toString("utf8")}`)
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
  // A TCP server has an address object once it listens.
  url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
})
afterAll(() => {
  collector.closeAllConnections()
  return new Promise((resolve) => collector.close(resolve))
})

const within = async (use: (project: Project) => Promise<void>): Promise<void> => {
  const project = makeProject()
  try {
    await use(project)
    searchFiles(project.root)
    searchFiles(project.home)
  } finally {
    project.dispose()
  }
}

const env = (): { readonly [name: string]: string } => ({ LEAK_TOKEN: SECRET, OTEL_EXPORTER_OTLP_ENDPOINT: url })
const serverOf = (form: string, more: object = {}): ReadonlyArray<string> =>
  inline("leaky", [leaky, form], { inheritEnv: ["LEAK_TOKEN"], ...more })

const clean = ({ stdout, stderr }: Ran, what: string): void => {
  assert.isUndefined(leakIn(stdout), `stdout of ${what}`)
  assert.isUndefined(leakIn(stderr), `stderr of ${what}`)
}

const tools = [
  "blocks",
  "structured",
  "media",
  "binary",
  "links",
  "error",
  "failed",
  "frames",
  "violates",
  "big",
  "late"
]

/** Of each kind of channel one, for the forms beside the plain one. */
const some: ReadonlyArray<ReadonlyArray<string>> = [
  ["tools", "leaky"],
  ["read", "leaky", "demo://x"],
  ["prompt", "leaky", "p"],
  ["call", "leaky", "logs", "--stderr"],
  ["call", "leaky", "progress"],
  ...["blocks", "structured", "links", "error"].map((tool) => ["call", "leaky", tool, "--full"])
]

/** Everything a server can be asked for. */
const commands: ReadonlyArray<ReadonlyArray<string>> = [
  ...some,
  ["search", "echo"],
  ["resources", "leaky"],
  ["templates", "leaky"],
  ["prompts", "leaky"],
  ["complete", "leaky", "prompt:p", "a", "x"],
  ["call", "leaky", "nothing-like-it"],
  ...tools.map((tool) => ["call", "leaky", tool, "--full"]),
  ["list", "--status"],
  ["get", "leaky"],
  ["logs", "leaky"]
]

describe("a server that repeats its secret", () => {
  for (const form of ["plain", "base64", "base64url", "wrapped", "url", "json", "html"]) {
    it(`shows it nowhere, written as ${form}`, { timeout: 180_000 }, () =>
      within(async (project) => {
        for (const words of form === "plain" ? commands : some) {
          // People and programs see different texts; the alternative form is enough for each second one.
          for (const json of form === "plain" && some.includes(words) ? [[], ["--json"]] : [["--json"]]) {
            const ran = await project.run([...serverOf(form), ...json, "mcp", ...words], { env: env() })
            clean(ran, `${words.join(" ")} ${json.join("")}`)
            assert.isAtMost(ran.code, 5, `${words.join(" ")}: ${ran.stderr}`)
          }
        }
        for (const tool of form === "plain" ? ["blocks", "binary", "media"] : ["media"]) {
          clean(
            await project.run([...serverOf(form), "mcp", "call", "leaky", tool, "--save", `saved-${tool}`], {
              env: env()
            }),
            tool
          )
          assert.isTrue(fs.existsSync(path.join(project.root, `saved-${tool}`)))
        }
      })
    )
  }

  it("is seen to speak: what is hidden was there, and the rest still is", () =>
    within(async (project) => {
      const call = (tool: string) =>
        project.document("call", [...serverOf("plain"), "mcp", "call", "leaky", tool], { env: env() })
      const texts = (content: ReadonlyArray<{ readonly [key: string]: unknown }>): ReadonlyArray<unknown> =>
        content.map((block) => block["text"])
      const { document: blocks } = await call("blocks")
      assert.deepEqual(texts(blocks.content), ["a [hidden] b", "c [hidden]", " d"])
      const { document: structured } = await call("structured")
      assert.notInclude(JSON.stringify(structured), "typed-by-somebody")
      assert.include(JSON.stringify(structured), "nextPageToken")
      const { document: format } = await call("format")
      assert.deepEqual(texts(format.content), ["token [hidden].", "cut [hidden]", " end"])
      const { document: error, code } = await project.document(
        "error",
        [...serverOf("plain"), "mcp", "call", "leaky", "error"],
        { env: env() }
      )
      assert.equal(code, 1)
      assert.include(error.error.message, "no: [hidden]")
      const shown = await project.run([...serverOf("plain"), "mcp", "call", "leaky", "logs", "--stderr"], {
        env: env()
      })
      for (const line of [/stderr: started with \[hidden\]/, /stderr: err \[hidden\] end/, /stderr: last \[hidden\]/]) {
        assert.match(shown.stderr, line)
      }
      assert.match(shown.stderr, /log info: part \[hidden\]\n/)
      const kept = await project.document("logs", [...serverOf("plain"), "mcp", "logs", "leaky"], { env: env() })
      assert.deepEqual(kept.document.lines, ["started with [hidden]", "err [hidden] end", "last [hidden]"])
      // Binary content keeps its length; text gets the placeholder.
      await project.run([...serverOf("plain"), "mcp", "call", "leaky", "binary", "--save", "out.bin"], { env: env() })
      const saved = fs.readFileSync(path.join(project.root, "out.bin"))
      assert.equal(saved.length, 3 + SECRET.length)
      assert.equal(saved.subarray(2, -1).toString("latin1"), "*".repeat(SECRET.length))
    }))

  it("leaves spans and records behind that hold nothing of it", () =>
    within(async (project) => {
      const before = exported.length
      await project.run([...serverOf("plain"), "mcp", "call", "leaky", "error"], { env: env() })
      await project.run([...serverOf("plain"), "mcp", "call", "leaky", `bad-${SECRET}`], { env: env() })
      await project.run([...serverOf("plain"), "mcp", "prompt", "leaky", SECRET], { env: env() })
      assert.isAbove(exported.length, before)
      for (const body of exported) assert.isUndefined(leakIn(body), "an exported body")
      assert.isNotEmpty(filesUnder(project.home).filter((file) => file.endsWith(".jsonl")))
    }))

  it("fails to start without a word of it", () =>
    within(async (project) => {
      const dying = inline("dying", ["-e", "console.error('token', process.env.LEAK_TOKEN); process.exit(2)"], {
        inheritEnv: ["LEAK_TOKEN"]
      })
      for (const json of [[], ["--json"]]) {
        const ran = await project.run([...dying, ...json, "mcp", "tools", "dying"], { env: env() })
        clean(ran, "a failed start")
        assert.include(ran.stderr + ran.stdout, "token [hidden]")
      }
    }))
})

describe("what goes out", () => {
  it("is blocked where it holds a secret, and harmless names pass", () =>
    within(async (project) => {
      const refused = async (...words: ReadonlyArray<string>) => {
        const { document, code } = await project.document("error", [...serverOf("plain"), "mcp", ...words], {
          env: env()
        })
        assert.deepEqual([code, document.error.code], [4, "SIGIL_SECRET_BLOCKED"], words.join(" "))
        assert.isUndefined(leakIn(JSON.stringify(document)), words.join(" "))
      }
      for (const text of [
        SECRET,
        Buffer.from(`u:${SECRET}`).toString("base64"),
        encodeURIComponent(SECRET),
        `ghp_${"aB3".repeat(12)}`
      ]) {
        await refused("call", "leaky", "echo", `token=${text}`)
      }
      await refused("read", "leaky", `demo://${encodeURIComponent(SECRET)}`)
      await refused("prompt", "leaky", "p", `a=${SECRET}`)
      await refused("complete", "leaky", "prompt:p", "a", SECRET)
      const args = { token: "abc", max_tokens: 5, pageToken: "next" }
      const { document } = await project.document(
        "call",
        [...serverOf("plain"), "mcp", "call", "leaky", "echo", "--args", JSON.stringify(args)],
        { env: env() }
      )
      assert.deepEqual(JSON.parse(String(document.content[0]?.["text"])), args)
      const { document: list } = await project.document("tools", [...serverOf("plain"), "mcp", "tools", "leaky"], {
        env: env()
      })
      const echo = list.servers[0]?.tools.find(({ name }) => name === "echo")
      assert.deepEqual(echo?.input_schema, {
        type: "object",
        description: "[hidden]",
        properties: {
          token: { type: "string", description: "like [hidden]" },
          max_tokens: { type: "integer", default: 5 },
          pageToken: { type: "string" },
          password: { type: "string", enum: ["a", "[hidden]"] }
        }
      })
    }))

  it("may hold a secret where the entry allows it, and comes back hidden", () =>
    within(async (project) => {
      const allowed = serverOf("plain", { trust: { approval_default: "allow", allow_secrets: true } })
      const { document } = await project.document(
        "call",
        [...allowed, "mcp", "call", "leaky", "echo", `token=${SECRET}`],
        { env: env() }
      )
      assert.equal(document.content[0]?.["text"], '{"token":"[hidden]"}')
    }))
})

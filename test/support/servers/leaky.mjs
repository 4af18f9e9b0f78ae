// A real MCP server over stdio that was granted a secret and repeats it wherever a server can say anything.
// usage: node leaky.mjs [FORM]     FORM: plain, base64, url, json, html; how it is written, plain when absent
const secret = process.env["LEAK_TOKEN"] ?? "no-secret"
const pad = (before, after = "") => Buffer.from(before + secret + after).toString("base64")
const writers = {
  plain: () => secret,
  // With neighbours, so that no character of it is the value's own encoding.
  base64: () => pad("u:", "!"),
  base64url: () => Buffer.from(`u${secret}!`).toString("base64url"),
  wrapped: () => pad("x".repeat(40)).replace(/.{64}/g, "$&\n"),
  url: () => encodeURIComponent(secret).replace(/%../g, (one) => one.toLowerCase()),
  json: () =>
    JSON.stringify(secret)
      .slice(1, -1)
      .replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  html: () => secret.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;")
}
const form = process.argv[2] ?? "plain"
const written = (writers[form] ?? writers.plain)()
const half = Math.floor(written.length / 2)
const [first, second] = [written.slice(0, half), written.slice(half)]

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const log = (data, more = {}) => send({ method: "notifications/message", params: { level: "info", data, ...more } })
/** Writes a text in two chunks that arrive one after the other. */
const later = (write, parts) =>
  parts.reduce(
    (before, part) => before.then(() => new Promise((done) => write(part, () => setTimeout(done, 30)))),
    Promise.resolve()
  )
const block = (text) => ({ type: "text", text })
const open = { type: "object" }

process.stderr.write(`started with ${written}\n`)

const tools = [
  {
    name: "echo",
    title: `t ${written}`,
    description: `says ${written}`,
    annotations: { title: `a ${written}` },
    inputSchema: {
      type: "object",
      description: written,
      properties: {
        token: { type: "string", description: `like ${written}` },
        max_tokens: { type: "integer", default: 5 },
        pageToken: { type: "string" },
        password: { type: "string", enum: ["a", written] }
      }
    }
  },
  ...[
    "blocks",
    "structured",
    "media",
    "binary",
    "links",
    "error",
    "failed",
    "logs",
    "progress",
    "frames",
    "format",
    "violates",
    "big",
    "late"
  ].map((name) => ({
    name,
    inputSchema: open,
    ...(name === "violates" ? { outputSchema: { type: "object", additionalProperties: { type: "integer" } } } : {})
  })),
  { name: `do-${written}`, inputSchema: open },
  {
    name: `bad-${written}`,
    inputSchema: { type: "object", properties: { [written]: { $ref: `https://x.invalid/${written}` } } }
  }
]

const calls = {
  echo: ({ params }) => ({ content: [block(JSON.stringify(params.arguments ?? {}))] }),
  blocks: () => ({ content: [block(`a ${written} b`), block(`c ${first}`), block(`${second} d`)] }),
  structured: () => {
    const value = { list: [written], [written]: 1, nested: { password: "typed-by-somebody", nextPageToken: "p2" } }
    return { content: [block(JSON.stringify(value))], structuredContent: value }
  },
  media: () => ({
    content: [{ type: "image", mimeType: `image/${written}`, data: pad("\u0000png"), annotations: { by: written } }]
  }),
  binary: () => ({
    content: [
      {
        type: "resource",
        resource: {
          uri: "demo://x",
          mimeType: "application/octet-stream",
          blob: Buffer.from(`\u0000\u00ff${secret}\u0000`, "latin1").toString("base64")
        }
      }
    ]
  }),
  links: () => ({
    content: [
      { type: "resource_link", uri: `demo://${written}`, name: written, description: written },
      { type: "resource", resource: { uri: `demo://${written}`, text: `embedded ${written}` } },
      { type: "novel", what: written }
    ]
  }),
  failed: () => ({ content: [block(`cannot: ${written}`)], isError: true }),
  violates: () => ({ content: [], structuredContent: { [written]: "text" } }),
  big: () => ({ content: [block(`${"line\n".repeat(3_000)}${written}\n${"line\n".repeat(3_000)}`)] }),
  format: () => ({
    content: [block(`token ghp_${"aB3".repeat(12)}.`), block(`cut gh`), block(`p_${"xY7".repeat(12)} end`)]
  })
}

const answer = async (message) => {
  const { id, method, params } = message
  const token = params?._meta?.progressToken
  switch (method) {
    case "initialize":
      return send({
        id,
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {}, resources: { subscribe: true }, prompts: {}, completions: {}, logging: {} },
          serverInfo: { name: `n ${written}`, version: `${"v".repeat(250)}${written}` },
          instructions: written
        }
      })
    case "tools/list":
      return send({ id, result: { tools } })
    case "resources/list":
      return send({ id, result: { resources: [{ uri: `demo://${written}`, name: written, description: written }] } })
    case "resources/templates/list":
      return send({ id, result: { resourceTemplates: [{ uriTemplate: `demo://${written}/{id}`, name: written }] } })
    case "resources/read":
      return send({
        id,
        result: {
          contents: [
            { uri: params.uri, text: first },
            { uri: params.uri, text: `${second} and ${written}` }
          ]
        }
      })
    case "prompts/list":
      return send({
        id,
        result: { prompts: [{ name: "p", description: written, arguments: [{ name: "a", description: written }] }] }
      })
    case "prompts/get":
      return send({
        id,
        result: {
          description: written,
          messages: [first, `${second} ${written}`].map((text) => ({ role: "user", content: block(text) }))
        }
      })
    case "completion/complete":
      return send({ id, result: { completion: { values: [written] } } })
    case "tools/call": {
      const { name } = params
      if (name === "error")
        return send({ id, error: { code: -32001, message: `no: ${written}`, data: { [written]: written } } })
      if (name === "logs") {
        log(written, { logger: written, level: written })
        log({ deep: written })
        log(`part ${first}`)
        log(`${second} part`)
        await later(
          (part, done) => process.stderr.write(part, done),
          [`err ${first}`, `${second} end\n`, `last ${written}`]
        )
        return send({ id, result: { content: [block("logged")] } })
      }
      if (name === "progress") {
        for (const [progress, text] of [`at ${written}`, `part ${first}`, `${second} part`].entries()) {
          send({
            method: "notifications/progress",
            params: { progressToken: token, progress: progress + 1, total: 3, message: text }
          })
          await new Promise((done) => setTimeout(done, 150))
        }
        return send({ id, result: { content: [block("progressed")] } })
      }
      if (name === "frames") {
        const frame = `${JSON.stringify({ jsonrpc: "2.0", id, result: { content: [block(`in ${written} frames`)] } })}\n`
        const at = frame.indexOf(JSON.stringify(written).slice(1, -1)) + 4
        return later((part, done) => process.stdout.write(part, done), [frame.slice(0, at), frame.slice(at)])
      }
      if (name === "late") return process.exit(3)
      return send({ id, result: calls[name]?.(message) ?? { content: [block(`unknown ${name}`)] } })
    }
    default:
      if (id !== undefined) send({ id, result: {} })
  }
}

let rest = ""
process.stdin.setEncoding("utf8").on("data", (text) => {
  const lines = (rest + text).split("\n")
  rest = lines.pop() ?? ""
  for (const line of lines) if (line.trim() !== "") void answer(JSON.parse(line))
})

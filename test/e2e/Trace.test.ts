/** The trace of one real command against server-everything, as a collector on this machine receives it. */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { inline, makeProject, official, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

interface Span {
  readonly name: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: { readonly stringValue?: string } }>
}

/** A collector that keeps what it is sent. */
const collect = async <A>(
  use: (url: string) => Promise<A>
): Promise<{ readonly bodies: ReadonlyArray<string>; readonly spans: ReadonlyArray<Span> }> => {
  const bodies: Array<string> = []
  const spans: Array<Span> = []
  const server = http.createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (chunk: string) => {
      body += chunk
    })
    request.on("end", () => {
      bodies.push(body)
      if (request.url === "/v1/traces") {
        const { resourceSpans } = JSON.parse(body) as {
          readonly resourceSpans: ReadonlyArray<{
            readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<Span> }>
          }>
        }
        for (const { scopeSpans } of resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans)
      }
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
  return { bodies, spans }
}

/** The spans as an indented list of names. */
const tree = (spans: ReadonlyArray<Span>): string => {
  const known = new Set(spans.map(({ spanId }) => spanId))
  const below = (parent: string | undefined, depth: number): ReadonlyArray<string> =>
    spans
      .filter(({ parentSpanId }) => (parent === undefined ? !known.has(parentSpanId ?? "") : parentSpanId === parent))
      .flatMap((span) => [`${"  ".repeat(depth)}${span.name}`, ...below(span.spanId, depth + 1)])
  return below(undefined, 0).join("\n")
}

describe("the trace of one call", () => {
  it("has admission, spawn, initialize, lists, the call and the close, with attributes and without a secret", async () => {
    const secret = "s3cr3t-token-value"
    const config = inline("every", [official("everything")], { inheritEnv: ["TOKEN"] })
    const { bodies, spans } = await collect(async (url) => {
      const ran = await project.run([...config, "mcp", "call", "every", "echo", "message=hello"], {
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, TOKEN: secret }
      })
      assert.equal(ran.code, 0, ran.stderr)
    })
    const shown = tree(spans)
    for (const name of [
      "sigil.start",
      "sigil.admission",
      "sigil.spawn",
      "initialize",
      "tools/list",
      "tools/call echo",
      "sigil.close"
    ]) {
      assert.include(shown, name)
    }
    const call = spans.find(({ name }) => name === "tools/call echo")
    const attributes = Object.fromEntries((call?.attributes ?? []).map(({ key, value }) => [key, value.stringValue]))
    assert.equal(attributes["mcp.method.name"], "tools/call")
    assert.equal(attributes["gen_ai.tool.name"], "echo")
    assert.notInclude(bodies.join("\n"), secret)
    assert.notInclude(bodies.join("\n"), "hello")
  })

  it("does not delay or change a command when the collector is gone", async () => {
    const config = inline("every", [official("everything")])
    const { document, code, stderr } = await project.document(
      "call",
      [...config, "mcp", "call", "every", "echo", "message=hello"],
      {
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" }
      }
    )
    assert.deepEqual([code, document.content[0]?.["text"]], [0, "Echo: hello"])
    assert.notInclude(stderr, "hello")
  })
})

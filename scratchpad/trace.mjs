// Prints the trace of one command as a tree: a collector on this machine receives what sigil exports.
// usage: node scratchpad/trace.mjs SIGIL-ARGUMENTS…   (build first: npm run build)
//   node scratchpad/trace.mjs --mcp-config '{"mcpServers":{"demo":{"command":"node","args":["dist/demo-server.js"]}}}' mcp call demo add a=1 b=2 --yes
import { spawn } from "node:child_process"
import http from "node:http"
import path from "node:path"
import { fileURLToPath } from "node:url"

const bin = path.join(path.dirname(fileURLToPath(import.meta.url)), "..", "dist", "bin.js")
const spans = []
const server = http.createServer(async (request, response) => {
  let body = ""
  for await (const chunk of request) body += chunk
  if (request.url === "/v1/traces") {
    for (const { scopeSpans } of JSON.parse(body).resourceSpans)
      for (const scope of scopeSpans) spans.push(...scope.spans)
  }
  response.writeHead(200, { "content-type": "application/json" }).end("{}")
})
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
const child = spawn(process.execPath, [bin, ...process.argv.slice(2)], {
  stdio: "inherit",
  env: { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.address().port}` }
})
const code = await new Promise((resolve) => child.on("close", resolve))
server.close()

const known = new Set(spans.map(({ spanId }) => spanId))
const value = ({ stringValue, intValue, boolValue, doubleValue }) => stringValue ?? intValue ?? boolValue ?? doubleValue
const print = (parent, depth) => {
  const level = spans
    .filter((span) => (parent === undefined ? !known.has(span.parentSpanId) : span.parentSpanId === parent))
    .sort((left, right) => (BigInt(left.startTimeUnixNano) < BigInt(right.startTimeUnixNano) ? -1 : 1))
  for (const span of level) {
    const ms = Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6
    const attributes = span.attributes.map((one) => `${one.key}=${value(one.value)}`).join(" ")
    console.log(`${"  ".repeat(depth)}${span.name}  ${ms.toFixed(1)} ms  ${attributes}`)
    print(span.spanId, depth + 1)
  }
}
print(undefined, 0)
process.exitCode = code

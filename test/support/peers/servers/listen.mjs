// A node:http server on a port of 127.0.0.1, told to whoever started this process, and ended with it.
import http from "node:http"

/** Ends this process when its parent is gone or closes its stdin. */
export const endWithParent = () => {
  process.stdin.resume()
  process.stdin.once("close", () => process.exit(0))
}

/** Serves `handle` on `port` (0: any) and prints `listening on PORT` to stderr. */
export const listen = (handle, port) => {
  endWithParent()
  const server = http.createServer((request, response) => {
    Promise.resolve(handle(request, response)).catch((error) => {
      process.stderr.write(`${error.stack}\n`)
      if (!response.headersSent) response.writeHead(500)
      response.end()
    })
  })
  server.listen(port, "127.0.0.1", () => process.stderr.write(`listening on ${server.address().port}\n`))
}

/** The whole body of a request, parsed. */
export const jsonBody = async (request) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString("utf8"))
}

/** Answers with a JSON-RPC error that belongs to no request. */
export const refuse = (response, status, message) => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message } }))
}

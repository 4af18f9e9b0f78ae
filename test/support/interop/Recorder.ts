/**
 * A listener between sigil and an HTTP peer that remembers what passes, and whose peer can be replaced under one URL.
 *
 * Requests and answers go through unchanged, as they come. It also shows what a client cannot say in words: an answer
 * that it stopped reading.
 */
import * as http from "node:http"
import type { AddressInfo } from "node:net"

/** One request as it came. */
export interface Seen {
  readonly method: string
  readonly headers: http.IncomingHttpHeaders
  /** The whole body. */
  readonly body: string
  /** The JSON-RPC method of the body, if it has one. */
  readonly rpc: string | undefined
  /** Status of the answer, once it has begun. */
  status: number | undefined
  /** Whether the client went away before the answer was over. */
  abandoned: boolean
}

/** A listener. */
export interface Recorder {
  readonly url: string
  readonly requests: ReadonlyArray<Seen>
  /** JSON-RPC methods in the order in which they came; for requests without a body the HTTP method. */
  readonly said: () => ReadonlyArray<string>
  /** Settles with the first request, past or to come, of which this holds. */
  readonly seen: (holds: (request: Seen) => boolean) => Promise<Seen>
  /** Breaks the answers under way of which this holds; how many there were. */
  readonly cut: (holds: (request: Seen) => boolean) => number
  /** Answers requests of which this holds with 400 from now on, in the peer's stead. */
  readonly refuse: (holds: (request: Seen) => boolean) => void
  /** Puts another peer behind the URL; connections to the old one end. */
  readonly turnTo: (url: string) => void
  readonly close: () => Promise<void>
}

const rpcOf = (body: string): string | undefined => {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === "object" && value !== null && "method" in value ? String(value.method) : undefined
  } catch {
    return undefined
  }
}

/** Listens on a free port of 127.0.0.1 in front of the peer at `target`. */
export const record = async (target: string): Promise<Recorder> => {
  let to = new URL(target)
  const { pathname } = to
  const requests: Array<Seen> = []
  const waiting = new Set<() => void>()
  const tell = (): void => {
    for (const check of waiting) check()
  }
  /** The path of the peer itself where the client names the path of the first one; whatever else a peer named stays. */
  const pathOf = (path: string): string => (path === pathname ? to.pathname : path)
  const outgoing = new Set<http.ClientRequest>()
  let refused: (request: Seen) => boolean = () => false
  const answering = new Map<Seen, http.ServerResponse>()
  const server = http.createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8")
      const { headers, method = "GET" } = request
      const seen: Seen = { method, headers, body, rpc: rpcOf(body), status: undefined, abandoned: false }
      requests.push(seen)
      if (refused(seen)) {
        seen.status = 400
        response.writeHead(400).end()
        return tell()
      }
      answering.set(seen, response)
      const onward = http.request(
        {
          host: to.hostname,
          port: to.port,
          method,
          path: pathOf(request.url ?? "/"),
          headers: { ...headers, host: to.host }
        },
        (answer) => {
          seen.status = answer.statusCode
          tell()
          response.writeHead(answer.statusCode ?? 502, answer.headers)
          response.flushHeaders()
          answer.pipe(response)
          answer.on("error", () => response.destroy())
          answer.on("aborted", () => response.destroy())
        }
      )
      outgoing.add(onward)
      onward.on("close", () => outgoing.delete(onward))
      onward.on("error", () => response.destroy())
      response.on("close", () => {
        seen.abandoned = !response.writableEnded
        answering.delete(seen)
        onward.destroy()
        tell()
      })
      tell()
      onward.end(body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // A server that listens on a port has an address of this kind.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}${pathname}`,
    requests,
    said: () => requests.map(({ method, rpc }) => rpc ?? method),
    seen: (holds) =>
      new Promise((resolve) => {
        const check = (): void => {
          const found = requests.find(holds)
          if (found === undefined) return
          waiting.delete(check)
          resolve(found)
        }
        waiting.add(check)
        check()
      }),
    refuse: (holds) => {
      refused = holds
    },
    cut: (holds) => {
      const broken = [...answering].filter(([seen]) => holds(seen))
      for (const [, response] of broken) response.destroy()
      return broken.length
    },
    turnTo: (url) => {
      to = new URL(url)
      for (const one of outgoing) one.destroy()
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const one of outgoing) one.destroy()
      server.closeAllConnections()
      await closed
    }
  }
}

/** A client over `node:net` that sees every byte and how the connection ends; it forgives nothing and hides nothing. */
import * as net from "node:net"

/** What came over one connection so far. */
export interface RawAnswer {
  /** Bytes as latin1, so that none is lost. */
  readonly text: () => string
  /** Settles when the text so far satisfies the condition, or the connection has ended. */
  readonly until: (condition: (text: string) => boolean) => Promise<void>
  /** Settles when the connection is over: with a FIN, with a reset, or refused. */
  readonly ended: Promise<"end" | "reset" | "refused">
  readonly destroy: () => void
}

/** A request with a JSON body. */
export interface RawRequest {
  readonly method?: string
  readonly headers?: { readonly [name: string]: string }
  readonly message?: object
}

/** Sends one request on a connection of its own. */
export const send = (port: number, { method = "POST", headers = {}, message }: RawRequest): RawAnswer => {
  const body = message === undefined ? "" : JSON.stringify(message)
  const lines = [
    `${method} /mcp HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  ]
  const socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true })
  const parts: Array<string> = []
  let text = ""
  let over = false
  const waiting = new Set<() => void>()
  const look = (): void => {
    for (const check of waiting) check()
  }
  socket.setEncoding("latin1").on("data", (part: string) => {
    parts.push(part)
    look()
  })
  const whole = (): string => {
    text += parts.splice(0).join("")
    return text
  }
  const ended = new Promise<"end" | "reset" | "refused">((resolve) => {
    const finish = (how: "end" | "reset" | "refused"): void => {
      over = true
      resolve(how)
      look()
    }
    socket.once("end", () => {
      finish("end")
      socket.end()
    })
    socket.once("error", (error: NodeJS.ErrnoException) => finish(error.code === "ECONNREFUSED" ? "refused" : "reset"))
    socket.once("close", () => finish("end"))
  })
  socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`)
  return {
    text: whole,
    until: (condition) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (!over && !condition(whole())) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      }),
    ended,
    destroy: () => socket.destroy()
  }
}

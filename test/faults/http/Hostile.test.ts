/** The hostile server does on the wire what its faults say, and nothing else: seen by a client that hides no byte. */
import * as modern from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js"
import { gunzipSync } from "node:zlib"
import { afterEach, assert, describe, it } from "vitest"
import { KIB, MIB } from "../../../src/base/Units.ts"
import { BOMB_BYTES, DEPTH, type FaultName, faults, FLOOD_BYTES, HUGE_BYTES, INTERIM, STORM } from "./Faults.ts"
import { connectFaults, hostile, type Hostile, type HostileOptions } from "./Hostile.ts"
import { type RawAnswer, send } from "./RawClient.ts"
import { steps } from "./Step.ts"
import { inapplicable, rows } from "./Table.ts"

const opened: Array<() => Promise<void> | void> = []
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close()
})
const open = async (options: HostileOptions): Promise<Hostile> => {
  const server = await hostile(options)
  opened.push(server.close)
  return server
}
const call = (id: number, text = "hello") => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name: "echo", arguments: { text } }
})
const strike = async (fault: FaultName, ms = 1): Promise<RawAnswer & { readonly server: Hostile }> => {
  const server = await open({ era: "modern", script: { call: { fault, ms } } })
  const answer = send(server.port, { message: call(1) })
  opened.push(answer.destroy)
  await server.arrived("call")
  return { ...answer, server }
}

const bodyOf = (text: string): string => text.slice(text.indexOf("\r\n\r\n") + 4)
const payloads = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/^data: ?(.*)$/gm)].map(([, payload = ""]) => payload)
/** The body of a chunked response, as far as it came. */
const unchunked = (text: string): string => {
  let rest = bodyOf(text)
  let whole = ""
  for (;;) {
    const [line = ""] = rest.split("\r\n", 1)
    const size = Number.parseInt(line, 16)
    if (!(size > 0)) return whole
    whole += rest.slice(line.length + 2, line.length + 2 + size)
    rest = rest.slice(line.length + 4 + size)
  }
}
const good = '"content":[{"type":"text","text":"hello"}]'
const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** A fault with a beginning, and what the whole of it must be once it is there. */
interface Whole {
  readonly begins: RegExp
  /** Whether enough has come to look at it. Absent: when the connection ends or the body is whole by its length. */
  readonly enough?: (text: string) => boolean
  readonly holds: (text: string) => boolean
}
const byLength = (text: string): boolean => {
  const length = /^content-length: (\d+)\r$/im.exec(text)?.[1]
  return text.includes("\r\n\r\n") && length !== undefined && bodyOf(text).length >= Number(length)
}
const over = (bytes: number) => (text: string) => text.length > bytes
const plain = (status: number, holds: (text: string) => boolean = () => true): Whole => ({
  begins: new RegExp(`^HTTP/1\\.1 ${status} `),
  enough: byLength,
  holds
})
const json = (holds: (body: string) => boolean): Whole => plain(200, (text) => holds(bodyOf(text)))
const redirect = (status: number, location: RegExp): Whole => plain(status, (text) => location.test(text))
const limited = (value: RegExp): Whole => plain(429, (text) => value.test(text))
const never = (text: string): boolean => text.length < 0
const stream = (holds: (events: ReadonlyArray<string>, body: string) => boolean, enough = never): Whole => ({
  begins: /^HTTP\/1\.1 200 .*\r\nContent-Type: text\/event-stream/,
  enough,
  holds: (text) => holds(payloads(unchunked(text)), unchunked(text))
})

const wholes: { readonly [name in FaultName]?: Whole } = {
  none: json((body) => body.includes(good)),
  accepted: plain(202),
  "no content": plain(204),
  "slow headers": { begins: /^HTTP\/1\.1 200/, enough: over(200), holds: (text) => !text.includes("\r\n\r\n") },
  trickle: {
    begins: /^HTTP\/1\.1 200/,
    enough: (text) => text.endsWith("0\r\n\r\n"),
    holds: (text) => unchunked(text).includes(good) && /\r\n1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n/.test(text)
  },
  "endless body": { begins: /application\/json/, enough: over(4 * MIB), holds: (text) => !isJson(unchunked(text)) },
  "endless comments": stream((list) => list.length === 0, over(1_000)),
  "comment flood": stream((list) => list.length === 0, over(4 * MIB)),
  "endless event": stream((list, body) => list.length === 1 && !body.includes("\n\n"), over(4 * MIB)),
  "close after": { ...json((body) => body.includes(good)), begins: /Connection: keep-alive/ },
  "http 1.0": { begins: /^HTTP\/1\.0 200 /, holds: (text) => isJson(bodyOf(text)) && !/content-length/i.test(text) },
  "close in body": { begins: /^HTTP\/1\.1 200 /, holds: (text) => !byLength(text) && isJson(bodyOf(text)) },
  "cut in event": stream(([first = ""], body) => first.startsWith("{") && !isJson(first) && !body.endsWith("\n\n")),
  "cut in character": stream((_, body) => body.endsWith("\xc3")),
  "split character": {
    ...stream(([first = ""]) => isJson(Buffer.from(first, "latin1").toString("utf8"))),
    begins: /\xc3\r\n[0-9a-f]+\r\n\xa9/
  },
  "no event": stream((_, body) => body === ""),
  "stream ends": stream((list) => list.length === 0),
  "stream ends, retry 0": stream((_, body) => body === "retry: 0\n\n"),
  "stream ends, retry absurd": stream((_, body) => body === "retry: 99999999999999\n\n"),
  "events of other kinds": stream(
    (list) => list.includes("") && list.includes("not json") && list.at(-1)?.includes(good) === true
  ),
  "html 200": plain(200, (text) => /text\/html/.test(text) && text.includes("<h1>")),
  "html 404": plain(404, (text) => /text\/html/.test(text)),
  "html 500": plain(500, (text) => /text\/html/.test(text)),
  "html 502": plain(502, (text) => /text\/html/.test(text)),
  "empty 200": plain(200, (text) => bodyOf(text) === ""),
  "redirect 301": redirect(301, /^location: http:\/\/127\.0\.0\.1:\d+\/mcp\r$/im),
  "redirect 302": redirect(302, /^location: http:\/\/127\.0\.0\.1:\d+\/mcp\r$/im),
  "redirect 307": redirect(307, /^location: http:\/\/127\.0\.0\.1:\d+\/mcp\r$/im),
  "redirect 308": redirect(308, /^location: http:\/\/127\.0\.0\.1:\d+\/mcp\r$/im),
  "redirect to itself": redirect(307, /^location: http:\/\/127\.0\.0\.1:\d+\/mcp\r$/im),
  "redirect nowhere": plain(302, (text) => !/^location:/im.test(text)),
  "401": plain(401, (text) => /^www-authenticate: Bearer resource_metadata=/im.test(text)),
  "401 bare": plain(401, (text) => !/^www-authenticate:/im.test(text)),
  "403": plain(403),
  "429 seconds": limited(/^retry-after: 1\r$/im),
  "429 date": limited(/^retry-after: \w{3}, \d\d \w{3} \d{4} .* GMT\r$/im),
  "429 absurd": limited(/^retry-after: 99999999999\r$/im),
  "429 garbage": limited(/^retry-after: soon\r$/im),
  gone: plain(404, (text) => bodyOf(text) === ""),
  "500 with error": plain(500, (text) => bodyOf(text).includes('"id":1,"error":{"code":-32603')),
  "session changed": plain(200, (text) => /^mcp-session-id: another-session\r$/im.test(text)),
  "session invalid": plain(200, (text) => /^mcp-session-id: two words\r$/im.test(text)),
  "session too long": plain(200, (text) => /^mcp-session-id: s{4096}\r$/im.test(text)),
  "session lost": plain(404),
  "wrong type": plain(200, (text) => /text\/plain/.test(text) && text.includes(good)),
  "no type": plain(200, (text) => !/^content-type:/im.test(text) && text.includes(good)),
  "not json": json((body) => !isJson(body)),
  "not utf-8": json((body) => body.endsWith("\xff\xfe")),
  "byte order mark": json((body) => body.startsWith("\xef\xbb\xbf{")),
  batch: json((body) => body.startsWith("[{") && isJson(body)),
  "huge body": json((body) => body.length > HUGE_BYTES && isJson(body)),
  "huge event": stream(([first = ""]) => first.length > HUGE_BYTES && isJson(first)),
  "deep json": json((body) => body.includes("[".repeat(DEPTH)) && body.includes("]".repeat(DEPTH))),
  "gzip bomb": plain(200, (text) => {
    const body = Buffer.from(bodyOf(text), "latin1")
    return /content-encoding: gzip/i.test(text) && body.length < MIB && gunzipSync(body).length > BOMB_BYTES
  }),
  "gzip, good": plain(200, (text) =>
    gunzipSync(Buffer.from(bodyOf(text), "latin1"))
      .toString()
      .includes(good)
  ),
  "gzip, broken": plain(200, (text) => /content-encoding: gzip/i.test(text) && bodyOf(text) === "no gzip"),
  "unknown coding": plain(200, (text) => /content-encoding: none-such/i.test(text)),
  "header flood": { begins: /^HTTP\/1\.1 200 OK/, holds: (text) => text.indexOf("\r\n\r\n") > FLOOD_BYTES },
  "headers broken": { begins: /^HTTP\/1\.1 200 OK/, holds: (text) => text.includes("\r\nno colon here\r\n") },
  "two lengths": { begins: /^HTTP\/1\.1 200 OK/, holds: (text) => text.match(/^content-length:/gim)?.length === 2 },
  "not http": { begins: /^SSH-2\.0/, holds: (text) => text.endsWith("\r\n") },
  "interim 100": {
    begins: /^HTTP\/1\.1 100 /,
    enough: (text) => text.includes(good),
    holds: (text) => text.split("HTTP/1.1 100 Continue\r\n\r\n").length === INTERIM + 1
  },
  "interim 103": {
    begins: /^HTTP\/1\.1 103 /,
    enough: (text) => text.includes(good),
    holds: (text) => text.includes("HTTP/1.1 200 ")
  },
  "interim for ever": { begins: /^HTTP\/1\.1 100 /, enough: over(200), holds: (text) => !text.includes(" 200 ") },
  "interim flood": { begins: /^HTTP\/1\.1 100 /, enough: over(MIB), holds: (text) => !text.includes(" 200 ") },
  "switching protocols": {
    begins: /^HTTP\/1\.1 101 /,
    enough: (text) => text.includes("\r\n\r\n"),
    holds: (text) => !text.includes(" 200 ")
  },
  "as a stream": stream((list) => list.length === 1 && list[0]?.includes(good) === true),
  "as a stream, left open": stream(
    (list) => list[0]?.includes(good) === true,
    (text) => text.includes("\n\n\r\n")
  ),
  storm: stream((list) => list.length === STORM + 1 && list.at(-1)?.includes(good) === true),
  duplicate: stream((list) => list.length === 2 && list[0] === list[1]),
  "unknown ids": stream((list) => list.length === 11 && list[0]?.includes('"id":900000') === true),
  "unknown id alone": json((body) => body.includes('"id":900000') && body.includes(good)),
  "error with a null id": json((body) => body.includes('"id":null,"error"')),
  "envelope broken": json((body) => body.includes('"jsonrpc":"1.0"'))
}
/** Faults that a case of their own is about. */
const apart: ReadonlyArray<FaultName> = [
  "black hole",
  "late",
  "refuse",
  "restart",
  "close before",
  "reset before",
  "reset in body",
  "reset in event",
  "crossed"
]

describe("a fault on the wire", () => {
  for (const [name, whole] of Object.entries(wholes))
    it(name, async () => {
      // Names of an object literal that the compiler has checked.
      const { text, until } = await strike(name as FaultName)
      await until(whole.enough ?? never)
      assert.match(text().slice(0, 4 * KIB), whole.begins)
      assert.isTrue(whole.holds(text()), text().slice(0, 500))
    })
})

describe("a fault of the connection", () => {
  it("a black hole takes the request and says nothing, while others are answered", async () => {
    const { server, text } = await strike("black hole")
    const other = send(server.port, { message: call(2) })
    await other.until((got) => got.includes(good))
    assert.equal(text(), "")
    assert.equal(server.connections().open, 2)
  })

  it("a late answer comes after others that were asked later", async () => {
    const { server, text, until } = await strike("late", 200)
    const other = send(server.port, { message: call(2) })
    await other.until((got) => got.includes(good))
    assert.equal(text(), "")
    await until((got) => got.includes(good))
    assert.include(text(), '"id":1')
  })

  it("a refusing server takes no connection any more, until it comes back on its port", async () => {
    const { server, ended } = await strike("refuse")
    await ended
    assert.equal(await send(server.port, { message: call(2) }).ended, "refused")
    await server.restart()
    const back = send(server.port, { message: call(3) })
    await back.until((got) => got.includes(good))
    assert.include(back.text(), '"id":3')
  })

  it("a restart ends the connection without an answer and listens on the same port", async () => {
    const { server, ended, text } = await strike("restart")
    await ended
    assert.equal(text(), "")
    await server.restart()
    const back = send(server.port, { message: call(2) })
    await back.until((got) => got.includes(good))
    assert.include(back.text(), '"id":2')
  })

  it("closes with a FIN before any byte", async () => {
    const { ended, text } = await strike("close before")
    assert.equal(await ended, "end")
    assert.equal(text(), "")
  })

  for (const name of ["reset before", "reset in body", "reset in event"] as const)
    it(`${name} ends with a reset`, async () => {
      const { ended, text } = await strike(name)
      const how = await ended
      // What was read before a reset may hide it: some systems then report a plain end.
      if (name === "reset before") assert.equal(how, "reset")
      assert.isFalse(byLength(text()))
      if (name !== "reset before") assert.include(text(), '"jsonrpc"')
    })

  it("crosses the answers of two open requests", async () => {
    const server = await open({ era: "modern", script: { call: "black hole", next: "crossed" } })
    const first = send(server.port, { message: call(1) })
    opened.push(first.destroy)
    await server.arrived("call")
    const second = send(server.port, { message: call(2, "second") })
    await second.until(byLength)
    assert.include(second.text(), '"id":1')
    assert.include(second.text(), "second")
  })

  for (const fault of connectFaults.filter((name) => name !== "none"))
    it(`${fault} before the first byte, once`, async () => {
      const server = await open({ era: "modern", script: { connect: { fault, times: 1 } } })
      const first = send(server.port, { message: call(1) })
      if (fault === "black hole") {
        const other = send(server.port, { message: call(2) })
        await other.until((text) => text.includes(good))
        assert.equal(first.text(), "")
        first.destroy()
        other.destroy()
        return server.idle()
      }
      const how = await first.ended
      assert.equal(how, fault === "refuse" ? "refused" : fault === "reset before" ? "reset" : "end")
      assert.equal(first.text(), fault === "not http" ? "SSH-2.0-hostile\r\n" : "")
      assert.equal(server.seen.length, 0)
      if (fault === "refuse") await server.restart()
      const second = send(server.port, { message: call(2) })
      await second.until(byLength)
      return assert.include(second.text(), good)
    })
})

describe("the hostile server", () => {
  it("has a case for every fault, and a row or a reason for every moment", () => {
    const cases = [...Object.keys(wholes), ...apart].toSorted()
    assert.deepEqual(cases, Object.keys(faults).toSorted())
    const named = new Set([...rows, ...inapplicable].map(({ era, step, fault }) => `${era} ${step} ${fault}`))
    for (const fault of Object.keys(faults)) {
      assert.isTrue(
        rows.some((row) => row.fault === fault),
        `no row for ${fault}`
      )
      for (const step of steps) assert.isTrue(named.has(`legacy ${step} ${fault}`), `${step} ${fault}`)
    }
    for (const { expect, step, fault } of rows) {
      assert.isAbove(expect.codes.length, 0)
      if (step === "connect")
        assert.isTrue(
          connectFaults.some((name) => name === fault),
          fault
        )
    }
  })

  it("sends a redirect to an origin that records what follows it", async () => {
    const server = await open({ era: "modern", script: { call: "redirect 307" } })
    const request = { method: "POST", body: JSON.stringify(call(1)) }
    const refused = await fetch(server.url, { ...request, redirect: "manual" })
    assert.equal(refused.status, 307)
    assert.equal(refused.headers.get("location"), server.elsewhere.url)
    assert.equal(server.elsewhere.seen.length, 0)
    server.become({ next: "redirect 307" })
    await fetch(server.url, request)
    assert.deepEqual(
      server.elsewhere.seen.map(({ message }) => message.method),
      ["tools/call"]
    )
  })

  it("forgets its sessions once and takes a new one", async () => {
    const server = await open({ era: "legacy", script: { list: { fault: "session lost", times: 1 } } })
    const post = (message: object, session?: string | null) =>
      fetch(server.url, {
        method: "POST",
        headers: session === undefined || session === null ? {} : { "mcp-session-id": session },
        body: JSON.stringify(message)
      })
    const initialize = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25" } }
    const list = { jsonrpc: "2.0", id: 2, method: "tools/list" }
    const first = (await post(initialize)).headers.get("mcp-session-id")
    assert.equal((await post(list, first)).status, 404)
    assert.equal((await post(list, first)).status, 404)
    const second = (await post(initialize)).headers.get("mcp-session-id")
    assert.notEqual(second, first)
    assert.equal((await post(list, second)).status, 200)
    assert.equal((await post(list)).status, 400)
  })

  it("records headers, bodies, moments and connections", async () => {
    const server = await open({ era: "modern" })
    await fetch(server.url, { method: "POST", headers: { "mcp-method": "tools/call" }, body: JSON.stringify(call(7)) })
    await fetch(server.url, { method: "POST", body: JSON.stringify(call(8)) })
    assert.deepEqual(
      server.seen.map(({ step, message }) => [step, message.id]),
      [
        ["call", 7],
        ["next", 8]
      ]
    )
    assert.equal(server.seen[0]?.headers["mcp-method"], "tools/call")
    assert.include(server.seen[0]?.body ?? "", '"id":7')
    assert.isAtLeast(server.connections().total, 1)
  })

  it("behaves well in the older era to the official client, with its stream and the end of its session", async () => {
    const server = await open({ era: "legacy" })
    const client = new Client({ name: "self-test", version: "1" })
    const changed = new Promise<void>((resolve) => {
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve())
    })
    const transport = new StreamableHTTPClientTransport(new URL(server.url))
    // Its optional members are typed with `undefined`, which its own interface does not allow under strict options.
    await client.connect(transport as Transport)
    await client.listTools()
    const { content } = await client.callTool({ name: "echo", arguments: { text: "hello" } })
    assert.deepEqual(content, [{ type: "text", text: "hello" }])
    await server.arrived("stream")
    server.push("notifications/tools/list_changed")
    await changed
    await transport.terminateSession()
    await client.close()
    assert.deepEqual(
      server.seen.map(({ step }) => step).filter((step) => step !== "stream"),
      ["handshake", "initialized", "list", "call", "delete"]
    )
  })

  it("behaves well in the newer era to the official client, with its subscription", async () => {
    const server = await open({ era: "modern" })
    let heard: () => void = () => undefined
    const changed = new Promise<void>((resolve) => {
      heard = resolve
    })
    const client = new modern.Client(
      { name: "self-test", version: "2" },
      {
        versionNegotiation: { mode: "auto" },
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => heard() } }
      }
    )
    await client.connect(new modern.StreamableHTTPClientTransport(new URL(server.url)))
    await client.listTools()
    const { content } = await client.callTool({ name: "echo", arguments: { text: "hello" } })
    assert.deepEqual(content, [{ type: "text", text: "hello" }])
    await server.arrived("stream")
    server.push("notifications/tools/list_changed")
    await changed
    await client.close()
    assert.includeMembers(
      server.seen.map(({ step }) => step),
      ["handshake", "list", "call", "stream"]
    )
  })

  it("has no connection left after its end", async () => {
    const server = await open({ era: "modern", script: { call: "endless comments" } })
    const answer = send(server.port, { message: call(1) })
    await server.arrived("call")
    await server.close()
    await answer.ended
    assert.equal(server.connections().open, 0)
  })
})

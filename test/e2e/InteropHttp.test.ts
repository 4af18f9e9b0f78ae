/**
 * What sigil says on the wire to servers of the official SDKs, and what becomes of it when a server is another one the
 * next time; the transports that the SDKs do not serve; several servers side by side.
 */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import type { DynamicServers } from "../../src/index.ts"
import * as Fakes from "../support/interop/Fakes.ts"
import * as Host from "../support/interop/Host.ts"
import * as Recorder from "../support/interop/Recorder.ts"
import * as Peers from "../support/peers/Peers.ts"

/** What every case opened, closed after it in reverse. */
const opened: Array<() => Promise<void>> = []
let home: Host.Home
beforeEach(() => {
  home = Host.makeHome()
})
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close()
  home.dispose()
})

const closing = async <A extends { readonly close: () => Promise<void> }>(opening: Promise<A> | A): Promise<A> => {
  const one = await opening
  opened.push(one.close)
  return one
}
const inFrontOf = async (peer: Promise<Peers.Peer>): Promise<Recorder.Recorder> =>
  closing(Recorder.record((await closing(peer)).url))
/** One run over the home of the case; it ends with `use`. */
const during = async <A>(servers: DynamicServers, use: (host: Host.Host) => Promise<A>): Promise<A> => {
  const host = Host.open(home, servers)
  try {
    return await use(host)
  } finally {
    await host.close()
  }
}
/** Starts the server at a URL and calls it once; the revision that was found. */
const meet = (url: string): Promise<string> =>
  during({ peer: Host.remote(url) }, async (host) => {
    const { revision } = await host.activate("peer")
    assert.equal(Host.textOf(await host.call("peer", "echo", { text: "hello" })), "hello")
    return revision.version
  })
const legacy = "2025-11-25"
const modern = "2026-07-28"

describe("on the wire", () => {
  it("a session is named in each message and ended by DELETE", async () => {
    const { requests, url } = await inFrontOf(Peers.sdk1Http())
    assert.equal(await meet(url), legacy)
    const after = requests.slice(requests.findIndex(({ rpc }) => rpc === "initialize") + 1)
    const sessions = new Set(after.map(({ headers }) => headers["mcp-session-id"]))
    assert.equal(sessions.size, 1)
    assert.isString([...sessions][0])
    assert.deepEqual(new Set(after.map(({ headers }) => headers["mcp-protocol-version"])), new Set([legacy]))
    assert.deepEqual(
      requests.filter(({ method }) => method === "DELETE").map(({ status }) => status),
      [200]
    )
  })

  it("the stateless revision has no session, no GET, no DELETE, and headers that say what the body says", async () => {
    const { requests, url } = await inFrontOf(Peers.sdk2Http())
    assert.equal(await meet(url), modern)
    assert.deepEqual(new Set(requests.map(({ method }) => method)), new Set(["POST"]))
    for (const { headers, rpc } of requests) {
      assert.isUndefined(headers["mcp-session-id"])
      assert.equal(headers["mcp-method"], rpc)
      assert.equal(headers["mcp-protocol-version"], modern)
      assert.equal(headers["mcp-name"], rpc === "tools/call" ? "echo" : undefined)
    }
  })

  it("a stream that the server closed is taken up where it broke", async () => {
    const { requests, url } = await inFrontOf(Peers.sdk1Http())
    await during({ peer: Host.remote(url) }, async (host) => {
      assert.equal(Host.textOf(await host.call("peer", "cut")), "answered after the cut")
    })
    const resumed = requests.filter(({ headers }) => headers["last-event-id"] !== undefined)
    assert.deepEqual(
      resumed.map(({ method, status }) => [method, status]),
      [["GET", 200]]
    )
    assert.equal(requests.filter(({ body }) => body.includes('"cut"')).length, 1)
  })

  const giveUp = (url: string): Promise<void> =>
    during({ peer: Host.remote(url) }, async (host) => {
      const waiting = await new Promise<Host.Calling>((resolve) => {
        const calling = host.start("peer", "wait", {}, { onProgress: () => resolve(calling) })
      })
      await waiting.interrupt()
      assert.equal(Host.textOf(await host.call("peer", "given-up")), "seen")
    })
  it("a call is given up by a notification in the older era", async () => {
    const recorder = await inFrontOf(Peers.sdk1Http())
    await giveUp(recorder.url)
    const call = await recorder.seen(({ body }) => body.includes('"wait"'))
    const cancelled = await recorder.seen(({ rpc }) => rpc === "notifications/cancelled")
    assert.equal(JSON.parse(cancelled.body).params.requestId, JSON.parse(call.body).id)
  })
  it("a call is given up by closing its stream in the stateless revision", async () => {
    const recorder = await inFrontOf(Peers.sdk2Http())
    await giveUp(recorder.url)
    await recorder.seen(({ abandoned, body }) => abandoned && body.includes('"wait"'))
    assert.notInclude([...recorder.said()], "notifications/cancelled")
  })
})

describe("what was found out is remembered", () => {
  it("a server of the older era is not probed again", async () => {
    const { said, url } = await inFrontOf(Peers.sdk1Http())
    await meet(url)
    assert.deepEqual(said().slice(0, 2), ["server/discover", "initialize"])
    const first = said().length
    await meet(url)
    assert.equal(said()[first], "initialize")
    assert.notInclude(said().slice(first), "server/discover")
  })

  it("an address with two endpoints gets its stream at once", async () => {
    const { requests, said, url } = await inFrontOf(Peers.sdk1Sse())
    assert.equal(await meet(url), legacy)
    assert.deepEqual(said().slice(0, 4), ["server/discover", "initialize", "GET", "initialize"])
    const first = requests.length
    assert.equal(await meet(url), legacy)
    assert.deepEqual(said().slice(first, first + 2), ["GET", "initialize"])
  })

  const peers: { readonly [name: string]: () => Promise<Peers.Peer> } = {
    "both eras": Peers.sdk2Http,
    "2026-07-28 only": Peers.sdk2ModernHttp,
    "the older era": Peers.sdk1Http
  }
  const turns: ReadonlyArray<readonly [from: string, to: string, then: string]> = [
    ["both eras", "the older era", legacy],
    ["the older era", "2026-07-28 only", modern],
    ["2026-07-28 only", "the older era", legacy]
  ]
  for (const [from, to, then] of turns)
    it(`a server of ${from} that comes back with ${to} is found out anew`, async () => {
      const recorder = await inFrontOf(peers[from]!())
      const before = await meet(recorder.url)
      const next = await closing(peers[to]!())
      recorder.turnTo(next.url)
      assert.equal(await meet(recorder.url), then)
      assert.notEqual(before, then)
      const third = recorder.requests.length
      assert.equal(await meet(recorder.url), then)
      assert.equal(recorder.said()[third], then === modern ? "server/discover" : "initialize")
    })
  const places: ReadonlyArray<readonly [string, () => Promise<Peers.Peer>, () => Promise<Peers.Peer>]> = [
    ["two endpoints instead of one", Peers.sdk1Http, Peers.sdk1Sse],
    ["one endpoint instead of two", Peers.sdk1Sse, Peers.sdk1Http]
  ]
  for (const [what, from, to] of places)
    it(`an address that has ${what} is found out anew`, async () => {
      const recorder = await inFrontOf(from())
      assert.equal(await meet(recorder.url), legacy)
      recorder.turnTo((await closing(to())).url)
      assert.equal(await meet(recorder.url), legacy)
    })

  it("in the same run, a refresh finds it out", async () => {
    const recorder = await inFrontOf(Peers.sdk2Http())
    await during({ peer: Host.remote(recorder.url) }, async (host) => {
      assert.equal((await host.activate("peer")).revision.version, modern)
      recorder.turnTo((await closing(Peers.sdk1Http())).url)
      assert.equal((await host.refresh("peer")).revision.version, legacy)
      assert.equal(Host.textOf(await host.call("peer", "echo", { text: "hello" })), "hello")
    })
  })
})

describe("a server that comes back in the middle of a run", () => {
  const turn = async (
    from: () => Promise<Peers.Peer>,
    to: () => Promise<Peers.Peer>,
    revision: string,
    argument = "text"
  ): Promise<void> => {
    const recorder = await inFrontOf(from())
    await during({ peer: Host.remote(recorder.url) }, async (host) => {
      await host.activate("peer")
      recorder.turnTo((await closing(to())).url)
      // The first call may find out; the next one works.
      await host.call("peer", "echo", { [argument]: "lost" }).catch(() => undefined)
      assert.include(Host.textOf(await host.call("peer", "echo", { [argument]: "hello" })), "hello")
      assert.equal((await host.activate("peer")).revision.version, revision)
    })
  }
  it("without the session that it had", () => turn(Peers.sdk1Http, Peers.sdk1Http, legacy))
  it("without the session, which it says by another status than it should", () =>
    turn(Peers.everythingHttp, Peers.everythingHttp, legacy, "message"))
  it("without the session, which is noticed while nothing is asked", async () => {
    const recorder = await inFrontOf(Peers.sdk1Http())
    await during({ peer: Host.remote(recorder.url) }, async (host) => {
      const { id } = await host.activate("peer")
      await recorder.seen(({ method, status }) => method === "GET" && status === 200)
      const successor = await closing(Peers.sdk1Http())
      const before = recorder.requests.length
      recorder.turnTo(successor.url)
      await recorder.seen((request) => request.rpc === "tools/list" && recorder.requests.indexOf(request) >= before)
      assert.notEqual((await host.activate("peer")).id, id)
    })
    assert.notInclude([...recorder.said()], "tools/call")
  })
  it("with the older era only", () => turn(Peers.sdk2Http, Peers.sdk1Http, legacy))
  it("with the newer era only", () => turn(Peers.sdk1Http, Peers.sdk2ModernHttp, modern))
})

describe("one request that is refused by a status", () => {
  const cases: ReadonlyArray<readonly [name: string, start: () => Promise<Peers.Peer>, question: string]> = [
    ["in the older era", Peers.sdk1Http, "ping"],
    ["in the stateless revision", Peers.sdk2Http, "server/discover"]
  ]
  for (const [name, start, question] of cases)
    it(`${name} does not end the connection of a server that answers otherwise`, async () => {
      const recorder = await inFrontOf(start())
      await during({ peer: Host.remote(recorder.url) }, async (host) => {
        const { id } = await host.activate("peer")
        recorder.refuse(({ body }) => body.includes("unwelcome"))
        const failure: unknown = await host.call("peer", "echo", { text: "unwelcome" }).catch((error: unknown) => error)
        assert.deepInclude(failure, { code: "SIGIL_HTTP_STATUS" })
        assert.equal(recorder.said().at(-1), question)
        assert.equal(Host.textOf(await host.call("peer", "echo", { text: "hello" })), "hello")
        assert.equal((await host.activate("peer")).id, id)
      })
    })
})

describe("transports of other servers", () => {
  it("http-json", async () => {
    const fake = await closing(Fakes.httpJson())
    await during({ peer: Host.remote(fake.url, { transport: "http-json" }) }, async (host) => {
      assert.equal((await host.activate("peer")).revision.version, legacy)
      assert.equal(Host.textOf(await host.call("peer", "echo", { text: "hello" })), "hello")
    })
    assert.deepEqual([...fake.said], ["initialize", "notifications/initialized", "tools/list", "tools/call"])
  })

  it("ws, with a form in the middle of a call", async () => {
    const fake = await closing(Fakes.webSocket())
    await during({ peer: Host.remote(fake.url, { transport: "ws" }) }, async (host) => {
      assert.equal((await host.activate("peer")).revision.version, legacy)
      assert.equal(Host.textOf(await host.call("peer", "echo", { text: "hello" })), "hello")
      assert.equal(Host.textOf(await host.call("peer", "ask")), "hello Ada")
      const exit = await host.start("peer", "drop").done
      assert.include(JSON.stringify(exit), "SIGIL_CONNECTION_LOST")
      assert.equal(Host.textOf(await host.call("peer", "echo", { text: "again" })), "again")
    })
  })
  for (const subprotocol of ["mcp", "none"] as const)
    it(`ws, where the server selects ${subprotocol === "mcp" ? "the subprotocol of the SDKs" : "no subprotocol"}`, async () => {
      const fake = await closing(Fakes.webSocket(subprotocol))
      await during({ peer: Host.remote(fake.url, { transport: "ws" }) }, async (host) => {
        assert.equal(Host.textOf(await host.call("peer", "echo", { text: "hello" })), "hello")
      })
    })

  for (const [what, answer, code] of [
    ["never", undefined, "SIGIL_START_TIMEOUT"],
    ["with 401", "HTTP/1.1 401 No", "SIGIL_SIGN_IN_NEEDED"],
    ["with 404", "HTTP/1.1 404 No", "SIGIL_HTTP_STATUS"],
    ["with 503", "HTTP/1.1 503 No", "SIGIL_HTTP_STATUS"]
  ] as const)
    it(`ws, where the server answers the upgrade ${what}, fails the start within its budget`, async () => {
      const server = http.createServer().on("upgrade", (_request, socket) => {
        // It ends when the other side does, and not before.
        socket.on("error", () => undefined).on("end", () => socket.end())
        socket.resume()
        if (answer !== undefined) socket.end(`${answer}\r\ncontent-length: 0\r\n\r\n`)
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      opened.push(() => new Promise((resolve) => void server.close(() => resolve())))
      // A listening TCP server has an address with a port.
      const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
      await during({ peer: Host.remote(url, { transport: "ws", startupTimeoutSecs: 1 }) }, async (host) => {
        const failure: unknown = await host.activate("peer").catch((error: unknown) => error)
        assert.deepInclude(failure, { code })
        assert.notInclude(JSON.stringify(failure), "stdout")
      })
      // Completes when no connection is left.
      await opened.pop()?.()
    })

  it("Streamable HTTP of a server that answers in JSON only and has no stream", async () => {
    const fake = await closing(Fakes.httpJson())
    await during({ peer: Host.remote(fake.url) }, async (host) => {
      assert.equal((await host.activate("peer")).revision.version, legacy)
      assert.equal(Host.textOf(await host.call("peer", "echo", { text: "hello" })), "hello")
    })
  })
})

describe("tasks", () => {
  it("of the stateless revision are followed, with a form in their middle", async () => {
    const fake = await closing(Fakes.tasks())
    await during({ peer: Host.remote(fake.url) }, async (host) => {
      assert.equal(Host.textOf(await host.call("peer", "greet")), "hello Ada")
    })
    assert.deepEqual(
      fake.said.filter((method) => method.startsWith("tasks/")),
      ["tasks/get", "tasks/get", "tasks/update", "tasks/get"]
    )
  })
})

describe("a task that is given up", () => {
  it("is cancelled, by its caller as by its deadline", async () => {
    let polled: () => void = () => undefined
    const fake = await closing(Fakes.tasks(() => polled()))
    const cancelled = (): number => fake.said.filter((method) => method === "tasks/cancel").length
    await during({ peer: Host.remote(fake.url) }, async (host) => {
      const first = await new Promise<Host.Calling>((resolve) => {
        const calling = host.start("peer", "endless")
        polled = () => resolve(calling)
      })
      await first.interrupt()
      assert.equal(cancelled(), 1)
      const exit = await host.start("peer", "endless", {}, { timeoutMs: 200 }).done
      assert.include(JSON.stringify(exit), "SIGIL_CALL_TIMEOUT")
      assert.equal(cancelled(), 2)
    })
    assert.notInclude([...fake.said], "notifications/cancelled")
  })
})

describe("a server that goes away in the middle of a call", () => {
  const cases: ReadonlyArray<readonly [name: string, start: () => Promise<Peers.Peer>]> = [
    ["in the older era", Peers.sdk1Http],
    ["in the stateless revision", Peers.sdk2Http],
    ["with two endpoints", Peers.sdk1Sse]
  ]
  for (const [name, start] of cases)
    it(`${name} fails the call at once, and the next call reaches its successor`, async () => {
      const recorder = await inFrontOf(start())
      const successor = await closing(start())
      await during({ peer: Host.remote(recorder.url) }, async (host) => {
        const waiting = await new Promise<Host.Calling>((resolve) => {
          const calling = host.start("peer", "wait", {}, { onProgress: () => resolve(calling) })
        })
        recorder.turnTo(successor.url)
        assert.include(JSON.stringify(await waiting.done), "SIGIL_CONNECTION_LOST")
        assert.equal(Host.textOf(await host.call("peer", "echo", { text: "hello" })), "hello")
      })
      assert.equal(recorder.requests.filter(({ body }) => body.includes('"wait"')).length, 1)
    })
})

describe("a stream of announcements that breaks", () => {
  const cases: ReadonlyArray<readonly [name: string, start: () => Promise<Peers.Peer>, stream: string]> = [
    ["in the older era", Peers.sdk1Http, "GET"],
    ["in the stateless revision", Peers.sdk2Http, "subscriptions/listen"]
  ]
  for (const [name, start, stream] of cases)
    it(`${name} is opened again, and what was missed counts as announced`, async () => {
      const recorder = await inFrontOf(start())
      const isStream = ({ method, rpc, status }: Recorder.Seen): boolean => (rpc ?? method) === stream && status === 200
      await during({ peer: Host.remote(recorder.url) }, async (host) => {
        const generation = await host.activate("peer")
        const updated = await host.subscribe("peer", "peer://note")
        await recorder.seen(isStream)
        const changed = new Promise<void>((resolve) => {
          generation.notices.listen(({ _tag }) => {
            if (_tag === "ListChanged") resolve()
          })
        })
        assert.isAbove(recorder.cut(isStream), 0)
        const grown = Host.textOf(await host.call("peer", "grow"))
        await changed
        assert.equal(await updated(), "peer://note")
        await host.settle()
        assert.include(await host.tools("peer"), grown)
        assert.equal((await host.activate("peer")).id, generation.id)
      })
    })
})

it("a stream of announcements whose place is not known any more is opened without it", async () => {
  const recorder = await inFrontOf(Peers.sdk1Http())
  await during({ peer: Host.remote(recorder.url) }, async (host) => {
    const generation = await host.activate("peer")
    const changed = (): Promise<void> =>
      new Promise((resolve) => {
        const stop = generation.notices.listen(({ _tag }) => {
          if (_tag !== "ListChanged") return
          stop()
          resolve()
        })
      })
    const first = changed()
    await host.call("peer", "grow")
    await first
    recorder.refuse(({ headers }) => headers["last-event-id"] !== undefined)
    const second = changed()
    assert.equal(
      recorder.cut(({ method }) => method === "GET"),
      1
    )
    await second
    const streams = recorder.requests.filter(({ method }) => method === "GET")
    assert.deepEqual(
      streams.map(({ headers, status }) => [headers["last-event-id"] !== undefined, status]),
      [
        [false, 200],
        [true, 400],
        [false, 200]
      ]
    )
  })
})

it("a dead address and one that never answers disturb no other server", async () => {
  const hole = await closing(Fakes.blackHole())
  const stream = await closing(Peers.sdk1Http())
  await during(
    {
      hole: Host.remote(hole.url, { startupTimeoutSecs: 600 }),
      dead: Host.remote(await Fakes.dead()),
      stream: Host.remote(stream.url),
      process: Host.local(Peers.sdk2Stdio)
    },
    async (host) => {
      let silent = true
      const hanging = host.activate("hole").then(
        () => undefined,
        () => {
          silent = false
        }
      )
      const dying = host.activate("dead").then(
        () => undefined,
        (error: unknown) => error
      )
      const answers = await Promise.all(
        ["stream", "process"].map((server) => host.call(server, "echo", { text: server }))
      )
      assert.deepEqual(answers.map(Host.textOf), ["stream", "process"])
      assert.deepInclude(await dying, { code: "SIGIL_START_FAILED" })
      assert.isTrue(silent)
      await host.close()
      await hanging
      assert.isFalse(silent)
    }
  )
})

it("an address that speaks no MCP is told by what it said to a message, not by what it said to the last attempt", async () => {
  const fake = await closing(Fakes.refusing())
  const failure = await during({ peer: Host.remote(fake.url) }, (host) =>
    host.activate("peer").then(
      () => undefined,
      (error: unknown) => error
    )
  )
  assert.include(String(failure), "no such tenant")
  assert.deepEqual([...fake.said], ["server/discover", "initialize", "GET"])
})

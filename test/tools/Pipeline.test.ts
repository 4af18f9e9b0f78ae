import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import * as Tracer from "effect/Tracer"
import type { AuditRecord } from "../../src/audit/AuditRecord.ts"
import { defaultSettings } from "../../src/config/Settings.ts"
import { Registry } from "../../src/server/Registry.ts"
import { ServerLog } from "../../src/server/ServerLog.ts"
import type { Answer, Question } from "../../src/tools/Approver.ts"
import { type Caller, headless } from "../../src/tools/Caller.ts"
import { Pipeline } from "../../src/tools/Pipeline.ts"
import type { MemoryLink } from "../../src/transport/MemoryTransport.ts"
import { declared, withFakes } from "../support/FakeRuntime.ts"
import { fakeServer, type Received, text, tool } from "../support/FakeServer.ts"

const caller = headless("test")
const call = (server: string, name: string, args = {}, who: Caller = caller) =>
  Effect.flatMap(Pipeline, (pipeline) => pipeline.call(who, { server, tool: name, args }))
const calls = (received: ReadonlyArray<Received>): number =>
  received.filter(({ method }) => method === "tools/call").length

const trusting = (approvalDefault: "allow" | "ask" | "deny") => ({
  trust: {
    trustClass: "self_hosted",
    approvalDefault,
    egressLogging: true,
    allowSecrets: false,
    pinVersion: false
  } as const
})

/** Answers from a list and keeps the questions. */
const scripted = (answers: ReadonlyArray<Answer>) => {
  const questions: Array<Question> = []
  const who: Caller = {
    ...caller,
    approver: {
      ask: (question) =>
        Effect.sync(() => {
          questions.push(question)
          return answers[questions.length - 1] ?? "deny"
        })
    }
  }
  return { who, questions }
}

describe("Pipeline", () => {
  it.effect("starts a server once for many calls and gives each its answer", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const outcomes = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => n),
        (n) => call("a", "echo", { n }),
        {
          concurrency: "unbounded"
        }
      )
      assert.deepEqual(
        outcomes.map(({ result }) => result),
        outcomes.map((_, n) => text(JSON.stringify({ n })))
      )
      assert.equal(received.filter(({ method }) => method === "initialize").length, 1)
    }).pipe(withFakes({ servers: { a: fakeServer({ received }) } }))
  })

  it.effect("sends nothing when arguments do not fit, permission is missing, or a secret would leave", () => {
    const received: Array<Received> = []
    const strict = tool("strict", {
      inputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }
    })
    return Effect.gen(function* () {
      const misfit = yield* Effect.flip(call("a", "strict", { n: "x" }))
      assert.equal(misfit.code, "SIGIL_ARGUMENTS_INVALID")
      const asked = yield* Effect.flip(call("asking", "strict", { n: 1 }))
      assert.equal(asked.code, "SIGIL_APPROVAL_REQUIRED")
      const denied = yield* Effect.flip(call("denying", "strict", { n: 1 }))
      assert.equal(denied.code, "SIGIL_DENIED")
      const secret = yield* Effect.flip(call("granted", "strict", { n: 1, note: "the value is s3cr3t-token-value" }))
      assert.equal(secret.code, "SIGIL_SECRET_BLOCKED")
      assert.notInclude(JSON.stringify(secret), "s3cr3t-token-value")
      assert.equal(calls(received), 0)
    }).pipe(
      withFakes({
        servers: Object.fromEntries(
          ["a", "asking", "denying", "granted"].map((name) => [name, fakeServer({ received, tools: [strict] })])
        ),
        entries: [
          declared("a"),
          declared("asking", trusting("ask")),
          declared("denying", trusting("deny")),
          declared("granted", {
            endpoint: {
              _tag: "stdio",
              command: process.execPath,
              args: [],
              inheritEnv: ["TOKEN"],
              publicEnv: [],
              env: {}
            }
          })
        ],
        variables: { TOKEN: "s3cr3t-token-value" }
      })
    )
  })

  it.effect("hides a granted value wherever the server repeats it, and leaves the schema whole", () => {
    const value = "s3cr3t-token-value"
    const leaky = fakeServer({
      tools: [
        tool("leak", {
          description: `uses ${value}`,
          inputSchema: { type: "object", properties: { token: { type: "string" }, password: { type: "string" } } }
        })
      ],
      methods: {
        "tools/call": () => ({
          content: [
            {
              type: "text",
              text: `plain ${value}, base64 ${Buffer.from(`x${value}`).toString("base64")}, url ${encodeURIComponent(value)}`
            },
            { type: "resource_link", uri: `file:///${value}`, name: value }
          ],
          structuredContent: { nested: [{ [value]: value, password: "anything", max_tokens: 5 }] }
        })
      }
    })
    return Effect.gen(function* () {
      const outcome = yield* call("a", "leak")
      const shown = JSON.stringify(outcome.result)
      assert.notInclude(shown, value)
      assert.notInclude(shown, Buffer.from(value).toString("base64").slice(0, 20))
      assert.deepEqual(outcome.result["structuredContent"], {
        nested: [{ "[hidden]": "[hidden]", password: "[hidden]", max_tokens: 5 }]
      })
      assert.deepEqual(Object.keys(outcome.tool.inputSchema["properties"] ?? {}), ["token", "password"])
    }).pipe(
      withFakes({
        servers: { a: leaky },
        entries: [
          declared("a", {
            endpoint: {
              _tag: "stdio",
              command: process.execPath,
              args: [],
              inheritEnv: ["TOKEN"],
              publicEnv: [],
              env: {}
            }
          })
        ],
        variables: { TOKEN: value }
      })
    )
  })

  it.effect("refuses to write back a placeholder that it put into a result", () => {
    const value = "s3cr3t-token-value"
    const received: Array<Received> = []
    const server = fakeServer({ received, methods: { "tools/call": () => text(`config: key=${value}`) } })
    return Effect.gen(function* () {
      yield* call("a", "echo", { text: "the word [hidden] is harmless before anything was hidden" })
      const error = yield* Effect.flip(call("a", "echo", { text: "key=[hidden]" }))
      assert.equal(error.code, "SIGIL_REDACTED_WRITEBACK")
      assert.equal(calls(received), 1)
    }).pipe(
      withFakes({
        servers: { a: server },
        entries: [
          declared("a", {
            endpoint: {
              _tag: "stdio",
              command: process.execPath,
              args: [],
              inheritEnv: ["TOKEN"],
              publicEnv: [],
              env: {}
            }
          })
        ],
        variables: { TOKEN: value }
      })
    )
  })

  it.effect("asks once, remembers a session's yes for that exact tool, and keeps a no", () => {
    const received: Array<Received> = []
    const { who, questions } = scripted(["session", "deny", "once", "once"])
    return Effect.gen(function* () {
      yield* call("a", "one", { x: 1 }, who)
      yield* call("a", "one", { x: 2 }, who)
      assert.equal(questions.length, 1)
      assert.deepEqual(questions[0]?.args, { x: 1 })
      const denied = yield* Effect.flip(call("a", "two", {}, who))
      assert.equal(denied.reason, "denied_by_user")
      yield* call("a", "two", {}, who)
      yield* call("a", "two", {}, who)
      assert.equal(questions.length, 4)
      assert.equal(calls(received), 4)
    }).pipe(
      withFakes({
        servers: { a: fakeServer({ received, tools: [tool("one"), tool("two")] }) },
        entries: [declared("a", trusting("ask"))]
      })
    )
  })

  it.effect("asks no second time after always, and offers it only where a rule would allow", () => {
    const { who, questions } = scripted(["always"])
    const records: Array<AuditRecord> = []
    const asking = { ...defaultSettings.lists, ask: [{ text: "mcp__b", tool: "mcp__b", where: {} }] }
    return Effect.gen(function* () {
      yield* call("a", "one", {}, who)
      yield* call("a", "one", {}, who)
      assert.equal(questions.length, 1)
      assert.deepEqual(questions[0]?.rule, { tool_name: "mcp__a__one", mode: "allow" })
      const listed = scripted(["always", "session", "deny"])
      // An answer that was not offered is a yes to this one call.
      yield* call("b", "one", {}, listed.who)
      yield* call("b", "one", {}, listed.who)
      yield* call("b", "one", {}, listed.who)
      assert.deepEqual(
        listed.questions.map(({ grantable, rule }) => [grantable, rule]),
        [
          [true, undefined],
          [true, undefined]
        ]
      )
      const answers = records.filter(({ kind }) => kind === "approval_resolved").map(({ payload }) => payload)
      assert.deepEqual(
        answers.map(({ allow_source, user_decision }) => [user_decision, allow_source]),
        [
          ["approved", "always"],
          ["approved", "once"],
          ["approved_for_session", "session"]
        ]
      )
    }).pipe(
      withFakes({
        servers: { a: fakeServer({ tools: [tool("one")] }), b: fakeServer({ tools: [tool("one")] }) },
        entries: [declared("a", trusting("ask")), declared("b", trusting("allow"))],
        snapshot: { settings: { ...defaultSettings, lists: asking } },
        records
      })
    )
  })

  it.effect("starts nothing and calls nothing under a network policy that asks without a yes to each", () => {
    const received: Array<Received> = []
    const started = () => received.filter(({ method }) => method === "initialize").length
    const { who, questions } = scripted(["deny", "once", "session", "always", "deny"])
    return Effect.gen(function* () {
      const nobody = yield* Effect.flip(call("a", "one", {}, { ...caller, yes: true }))
      assert.equal(nobody.reason, "network_approval_required")
      assert.equal((yield* Effect.flip(call("a", "one", {}, who))).reason, "denied_by_user")
      assert.equal(started(), 0)
      yield* call("a", "one", {}, who)
      assert.equal(started(), 1)
      // The yes to the start is none to the calls, and no grant answers the network.
      yield* call("a", "one", {}, who)
      const alone = yield* Effect.flip(call("a", "one", {}, { ...caller, yes: true }))
      assert.equal(alone.reason, "approval_required")
      assert.include(alone.fix, "network_mode")
      assert.equal((yield* Effect.flip(call("a", "one", {}, who))).reason, "denied_by_user")
      assert.deepEqual(
        questions.map(({ facets, grantable, kind, rule }) => [kind ?? "call", ...facets, grantable, rule]),
        [
          ["start", "network", false, undefined],
          ["start", "network", false, undefined],
          ["call", "network", false, undefined],
          ["call", "network", false, undefined],
          ["call", "network", false, undefined]
        ]
      )
      assert.equal(calls(received), 2)
    }).pipe(
      withFakes({
        servers: { a: fakeServer({ received, tools: [tool("one")] }) },
        snapshot: { settings: { ...defaultSettings, networkMode: "ask" } }
      })
    )
  })

  it.effect("takes exact names and caps from the caller's own run", () => {
    const received: Array<Received> = []
    return Effect.gen(function* () {
      const run: Caller = { ...caller, allowedTools: ["mcp__a__one"] }
      yield* call("a", "one", {}, run)
      assert.equal((yield* Effect.flip(call("a", "two", {}, run))).code, "SIGIL_APPROVAL_REQUIRED")
      assert.equal((yield* Effect.flip(call("a", "one"))).code, "SIGIL_APPROVAL_REQUIRED")
      const planning: Caller = { ...run, caps: { mode: "read-only" } }
      assert.equal((yield* Effect.flip(call("a", "one", {}, planning))).code, "SIGIL_DENIED")
      yield* call("a", "one", {}, run)
      assert.equal(calls(received), 2)
    }).pipe(
      withFakes({
        servers: { a: fakeServer({ received, tools: [tool("one"), tool("two")] }) },
        entries: [declared("a", trusting("ask"))]
      })
    )
  })

  it.effect("judges each call by its own arguments where a list looks at them", () => {
    const deny = [{ text: "mcp__a(/etc/*)", tool: "mcp__a", pattern: "/etc/*", where: { file: "s.json", line: 2 } }]
    const records: Array<AuditRecord> = []
    return Effect.gen(function* () {
      yield* call("a", "read", { file_path: "/tmp/x" })
      const refused = yield* Effect.flip(call("a", "read", { file_path: "/etc/passwd" }))
      assert.deepEqual([refused.code, refused.where?.file, refused.where?.line], ["SIGIL_DENIED", "s.json", 2])
      yield* call("a", "read", { file_path: "/tmp/y" })
      const [recorded] = records.filter(({ kind }) => kind === "approval_resolved")
      assert.deepInclude(recorded?.payload, {
        policy_decision: "deny",
        access: "read",
        network_effect: "unknown",
        reason: "'mcp__a(/etc/*)' in permissions.deny of settings.json (s.json:2)"
      })
      assert.include(JSON.stringify(recorded?.payload["reasons"]), "permission.mode")
    }).pipe(
      withFakes({
        records,
        servers: { a: fakeServer({ tools: [tool("read")] }) },
        snapshot: { settings: { ...defaultSettings, lists: { ...defaultSettings.lists, deny } } }
      })
    )
  })

  it.effect("asks for a destructive tool although the server's default allows", () => {
    const { who, questions } = scripted(["once"])
    return Effect.gen(function* () {
      yield* call("a", "wipe", {}, who)
      assert.equal(questions[0]?.destructive, true)
    }).pipe(
      withFakes({ servers: { a: fakeServer({ tools: [tool("wipe", { annotations: { destructiveHint: true } })] }) } })
    )
  })

  it.effect("refuses filtered, quarantined and unknown tools by name", () => {
    const entries = [declared("a", { excludeTools: ["hidden"] })]
    const tools = [tool("open"), tool("hidden"), { name: "broken" }, tool("twice"), tool("twice")]
    return Effect.gen(function* () {
      assert.equal((yield* Effect.flip(call("a", "hidden"))).code, "SIGIL_TOOL_FILTERED")
      assert.equal((yield* Effect.flip(call("a", "broken"))).code, "SIGIL_TOOL_QUARANTINED")
      const unknown = yield* Effect.flip(call("a", "opne"))
      assert.deepEqual([unknown.code, unknown.candidates], ["SIGIL_UNKNOWN_TOOL", ["open"]])
      yield* call("a", "twice")
    }).pipe(withFakes({ servers: { a: fakeServer({ tools }) }, entries }))
  })

  it.effect("ends a call at its deadline, cancels it, and starts the server anew for the next one", () => {
    const received: Array<Received> = []
    const arrived = Deferred.unsafeMake<void>(FiberId.none)
    const server = fakeServer({
      received,
      tools: [tool("slow"), tool("echo")],
      methods: {
        "tools/call": (params) => {
          if (params["name"] !== "slow") return text("answer")
          Deferred.unsafeDone(arrived, Effect.void)
          return undefined
        }
      }
    })
    return Effect.gen(function* () {
      const fiber = yield* Effect.fork(Effect.flip(call("a", "slow")))
      yield* Deferred.await(arrived)
      yield* TestClock.adjust(30_000)
      const error = yield* Fiber.join(fiber)
      assert.equal(error.code, "SIGIL_CALL_TIMEOUT")
      assert.include(error.text, "30000 ms")
      assert.equal(received.at(-1)?.method, "notifications/cancelled")
      yield* call("a", "echo")
      assert.equal(received.filter(({ method }) => method === "initialize").length, 2)
    }).pipe(withFakes({ servers: { a: server } }))
  })

  it.effect("passes a server's JSON-RPC error on without closing the connection, secrets hidden", () => {
    const links: Array<MemoryLink> = []
    const server = fakeServer({
      methods: {
        "tools/call": (_params, link, id) => {
          links.push(link)
          link.send({ jsonrpc: "2.0", id, error: { code: -32000, message: "no: s3cr3t-token-value" } })
          return undefined
        }
      }
    })
    return Effect.gen(function* () {
      const error = yield* Effect.flip(call("a", "echo"))
      assert.equal(error.code, "SIGIL_REMOTE_ERROR")
      assert.include(error.text, "no: [hidden]")
      yield* Effect.flip(call("a", "echo"))
      assert.equal(new Set(links).size, 1)
    }).pipe(
      withFakes({
        servers: { a: server },
        entries: [
          declared("a", {
            endpoint: {
              _tag: "stdio",
              command: process.execPath,
              args: [],
              inheritEnv: ["TOKEN"],
              publicEnv: [],
              env: {}
            }
          })
        ],
        variables: { TOKEN: "s3cr3t-token-value" }
      })
    )
  })

  it.effect("pages through a list, and ends one that walks in a circle", () => {
    const paged = fakeServer({
      methods: {
        "tools/list": (params) => {
          const cursor = params["cursor"]
          if (cursor === undefined) return { tools: [tool("one")], nextCursor: "" }
          return { tools: [tool(cursor === "" ? "two" : "three")], nextCursor: "again" }
        }
      }
    })
    return Effect.gen(function* () {
      const pipeline = yield* Pipeline
      const tools = yield* pipeline.tools("a")
      assert.deepEqual(
        tools.map(({ name, status }) => `${name} ${status}`),
        ["one available", "two available", "three available"]
      )
    }).pipe(withFakes({ servers: { a: paged } }))
  })

  it.effect("fails a start with the server's last words, and leaves nothing behind", () => {
    const dying = (link: MemoryLink) => {
      link.log("starting\nfatal: no database\n")
      return { receive: () => link.end("The server exited with code 1.") }
    }
    return Effect.gen(function* () {
      const error = yield* Effect.flip(call("a", "echo"))
      assert.equal(error.code, "SIGIL_START_FAILED")
      assert.include(error.text, "fatal: no database")
      assert.deepEqual(yield* Effect.flatMap(Registry, (registry) => registry.closeAll), [])
      assert.include(yield* Effect.flatMap(ServerLog, (log) => log.read("a")), "fatal: no database")
    }).pipe(withFakes({ servers: { a: dying } }))
  })

  it.effect("makes one span per call with MCP's attributes, only when a tracer is installed", () => {
    const spans: Array<{ readonly name: string; readonly attributes: ReadonlyMap<string, unknown>; failed: boolean }> =
      []
    const tracer = Tracer.make({
      span: (name, parent, context, links, startTime, kind) => {
        const attributes = new Map<string, unknown>()
        const span = { name, attributes, failed: false }
        spans.push(span)
        return {
          _tag: "Span",
          name,
          spanId: String(spans.length),
          traceId: "1",
          parent,
          context,
          links,
          kind,
          sampled: true,
          status: { _tag: "Started", startTime },
          attributes,
          attribute: (key, value) => void attributes.set(key, value),
          event: () => undefined,
          addLinks: () => undefined,
          end: (_end, exit) => {
            span.failed = Exit.isFailure(exit)
          }
        }
      },
      context: (run) => run()
    })
    return Effect.gen(function* () {
      yield* call("a", "echo")
      assert.equal(spans.length, 0)
      yield* Effect.withTracer(call("a", "echo"), tracer)
      yield* Effect.withTracer(Effect.flip(call("a", "nothing")), tracer)
      assert.deepEqual(
        spans.map(({ name, failed, attributes }) => [
          name,
          failed,
          attributes.get("mcp.method.name"),
          attributes.get("gen_ai.tool.name")
        ]),
        [
          ["tools/call echo", false, "tools/call", "echo"],
          ["tools/call nothing", true, "tools/call", "nothing"]
        ]
      )
      assert.equal(spans[1]?.attributes.get("error.type"), "SIGIL_UNKNOWN_TOOL")
      assert.isTrue(Option.isSome(Option.fromNullable(spans[0])))
    }).pipe(withFakes({ servers: { a: fakeServer() } }))
  })
})

// Every fault of the hostile server but those of its end. Each returns what comes next: `answer` (the request is
// then answered well), `silence` (this request is not answered), `deaf` (nothing is answered any more).
import { child, holder, tree } from "./processes.mjs"

const MIB = 1024 * 1024
const FRAME = 4 * MIB
/** Over the limit of 256 messages in one window. */
const STORM = 300
const IDLE_STORM = 100_000
const idleOr = (stage, idle, open) => (stage === "idle" ? idle : open)

/** Writes many equal lines in portions, waiting for the pipe. */
const repeat = async (write, text, times) => {
  const portion = Math.max(1, Math.min(times, Math.floor(MIB / 8 / text.length)))
  for (let left = times; left > 0; left -= portion) await write(text.repeat(Math.min(left, portion)))
}
const pour = async (write, mib) => {
  const block = "x".repeat(MIB)
  for (let index = 0; index < mib; index += 1) await write(block)
}
const log = (data) => ({ method: "notifications/message", params: { level: "info", data } })
const progress = (progressToken, value, message) => ({
  method: "notifications/progress",
  params: { progressToken, progress: value, message }
})
/** A response as a text, to be sent in some wrong way. */
const answerText = ({ id, good }, more = {}) => JSON.stringify({ jsonrpc: "2.0", id, result: good, ...more })
const stale = { content: [{ type: "text", text: "stale" }] }

export const faults = {
  good: async () => "answer",

  // The process
  hang: async () => "deaf",
  exit0: async () => process.exit(0),
  exit3: async ({ writeError }) => {
    await writeError("fatal: the key of the fault suite is missing\n")
    process.exit(3)
  },
  kill: async () => {
    process.kill(process.pid, "SIGKILL")
    return "deaf"
  },
  holder: async ({ file }) => {
    holder(file)
    process.exit(0)
  },
  children: async ({ file }) => {
    for (let index = 0; index < 3; index += 1) child(file)
    process.exit(0)
  },
  tree: async ({ file }) => {
    tree(file)
    return "answer"
  },

  // The streams
  "close-stdout": async ({ closeStdout }) => {
    closeStdout()
    return "deaf"
  },
  "close-stdin": async ({ stage, closeStdin }) => {
    closeStdin()
    // Nobody can be asked for a sign of life any more.
    return stage === "idle" ? "silence" : "answer"
  },
  "never-reads": async ({ stopReading }) => {
    stopReading()
    return "deaf"
  },
  "stderr-flood": async ({ writeError }) => {
    await pour(writeError, 9)
    return "answer"
  },
  "stderr-chatter": async ({ writeError }) => {
    await pour(writeError, 4)
    return "answer"
  },

  // Frames
  "invalid-json": async ({ write }) => {
    await write('{"jsonrpc":"2.0",,}\n')
    return "answer"
  },
  "non-utf8": async ({ write }) => {
    await write(Buffer.concat([Buffer.from('{"jsonrpc":"2.0","method":"a'), Buffer.from([0xff]), Buffer.from('"}\n')]))
    return "answer"
  },
  "content-length": async (at) => {
    const body = answerText(at)
    await at.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    return "silence"
  },
  "no-newline": async (at) => {
    await at.write(answerText(at))
    process.exit(0)
  },
  oversized: async ({ write, line }) => {
    await write(line(log("x".repeat(FRAME))))
    return "answer"
  },
  "oversized-endless": async ({ write }) => {
    await write('{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"')
    await pour(write, 32)
    return "silence"
  },
  "stdout-flood": async ({ write }) => {
    await pour(write, 32)
    return "silence"
  },
  "slow-frame": async (at) => {
    // About ten seconds for the whole message; the deadline is far shorter.
    for (const byte of answerText(at, { padding: "p".repeat(2_000) })) {
      await at.write(byte)
      await at.sleep(5)
    }
    await at.write("\n")
    return "silence"
  },
  "slow-frame-in-time": async (at) => {
    for (const byte of answerText(at)) await at.write(byte)
    await at.write("\n")
    return "silence"
  },
  noise: async ({ write }) => {
    await write("Server listening on stdio\n")
    return "answer"
  },
  "noise-flood": async ({ write }) => {
    await repeat(write, "Server listening on stdio\n", 20_000)
    return "answer"
  },

  "blank-lines": async (at) => {
    await at.write(`\r\n\n   \n${at.stage === "spawn" || at.stage === "idle" ? "" : `${answerText(at)}\r\n`}`)
    return at.stage === "spawn" || at.stage === "idle" ? "answer" : "silence"
  },
  deep: async ({ id, stage, write }) => {
    const member = stage === "call" ? "content" : "structuredContent"
    await write(`{"jsonrpc":"2.0","id":${id},"result":{"${member}":${"[".repeat(100_000)}${"]".repeat(100_000)}}}\n`)
    return stage === "call" ? "silence" : "answer"
  },
  "deep-digits": async ({ id, stage, write }) => {
    // A long run of digits takes the way of the lossless parser.
    const value = `${"[".repeat(100_000)}12345678901234567890${"]".repeat(100_000)}`
    await write(`{"jsonrpc":"2.0","id":${id},"result":{"content":${value}}}\n`)
    return stage === "call" ? "silence" : "answer"
  },
  "deep-log": async ({ write }) => {
    const value = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
    await write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${value}}}\n`)
    return "answer"
  },
  "last-words": async (at) => {
    // More than the pipe holds, so the end of the process and its last bytes come close together.
    await at.write(`${answerText({ ...at, good: { ...at.good, padding: "p".repeat(3 * MIB) } })}\n`)
    process.exit(0)
  },

  // Envelopes
  batch: async (at) => {
    await at.write(`[${answerText(at)}]\n`)
    return "silence"
  },
  "empty-batch": async ({ write }) => {
    await write("[]\n")
    return "answer"
  },
  "wrong-version": async (at) => {
    await at.write(`${answerText(at, { jsonrpc: "1.0" })}\n`)
    return "silence"
  },
  "result-not-object": async ({ id, send }) => {
    await send({ id, result: "text" })
    return "silence"
  },
  "result-and-error": async ({ id, good, send }) => {
    await send({ id, result: good, error: { code: -32603, message: "both" } })
    return "silence"
  },
  "error-without-code": async ({ id, send }) => {
    await send({ id, error: { code: "EFAIL", message: "no integer" } })
    return "silence"
  },
  "error-answer": async ({ id, send }) => {
    await send({ id, error: { code: -32603, message: "it failed" } })
    return "silence"
  },

  // Ids
  "unknown-id": async ({ send }) => {
    await send({ id: 999_999, result: stale })
    await send({ id: "unknown", error: { code: -32603, message: "for nobody" } })
    return "answer"
  },
  "unknown-id-storm": async ({ stage, write, line }) => {
    await repeat(write, line({ id: 999_999, result: stale }), idleOr(stage, IDLE_STORM, STORM))
    return "answer"
  },
  "id-object": async ({ id, good, send }) => {
    await send({ id: { id }, result: good })
    return "silence"
  },
  "string-id": async ({ id, good, send }) => {
    await send({ id: String(id), result: good })
    return "silence"
  },
  duplicate: async ({ stage, id, good, send }) => {
    if (stage !== "idle") await send({ id, result: good })
    await send({ id, result: stale })
    return stage === "idle" ? "answer" : "silence"
  },
  "null-id": async ({ send }) => {
    await send({ id: null, error: { code: -32700, message: "Parse error" } })
    return "silence"
  },
  "null-id-idle": async ({ send }) => {
    await send({ id: null, error: { code: -32700, message: "Parse error" } })
    return "answer"
  },
  "id-off-by-one": async ({ id, good, send }) => {
    await send({ id: id + 1, result: good })
    return "silence"
  },

  // Requests of the server
  "unknown-request": async ({ ask, send, id }) => {
    const reply = await ask("server-1", "sigil/unknown", {})
    if (reply?.error?.code === -32601) return "answer"
    await send({ id, error: { code: -32000, message: `answered ${JSON.stringify(reply)}` } })
    return "silence"
  },
  "long-methods": async ({ stage, send }) => {
    const times = idleOr(stage, 40, 4)
    for (let index = 0; index < times; index += 1) await send({ id: "long", method: `${index}`.padEnd(MIB, "m") })
    return "answer"
  },
  "null-id-request": async ({ send }) => {
    await send({ id: null, method: "ping" })
    return "answer"
  },
  pings: async ({ ask, send, id }) => {
    for (let index = 0; index < 50; index += 1) {
      const reply = await ask(`ping-${index}`, "ping")
      if (JSON.stringify(reply?.result) === "{}") continue
      await send({ id, error: { code: -32000, message: `answered ${JSON.stringify(reply)}` } })
      return "silence"
    }
    return "answer"
  },
  "ping-flood": async ({ stage, write, line }) => {
    const times = idleOr(stage, 20_000, STORM)
    let text = ""
    for (let index = 0; index < times; index += 1) {
      text += line({ id: `flood-${index}`, method: "ping" })
      if (text.length < 64 * 1024) continue
      await write(text)
      text = ""
    }
    await write(text)
    return "answer"
  },
  "request-flood": async ({ stage, stopReading, write, line }) => {
    // Each answer repeats the id, so a host that queues answers without end grows with them.
    stopReading()
    const text = line({ id: "i".repeat(1_024), method: "ping" })
    await repeat(write, text, idleOr(stage, 100_000, STORM))
    return "deaf"
  },

  // Notifications
  "log-storm": async ({ stage, write, line }) => {
    await repeat(write, line(log("all is well")), idleOr(stage, IDLE_STORM, STORM))
    return "answer"
  },
  "log-bytes": async ({ stage, write, line }) => {
    await repeat(write, line(log("x".repeat(MIB))), idleOr(stage, 40, 9))
    return "answer"
  },
  "list-changed-storm": async ({ stage, write, line }) => {
    await repeat(write, line({ method: "notifications/tools/list_changed" }), idleOr(stage, IDLE_STORM, STORM))
    return "answer"
  },
  "progress-storm": async ({ write, line, progressToken, token }) => {
    let text = ""
    for (let value = 1; value <= 6_000; value += 1) {
      text += line(progress(progressToken, value, String(token)))
      if (value % 100 > 0) continue
      await write(text)
      text = ""
    }
    return "answer"
  },
  "progress-unknown": async ({ write, line }) => {
    await repeat(write, line(progress("nobody", 1, "stale")), 100)
    return "answer"
  },
  "progress-unknown-storm": async ({ stage, write, line }) => {
    await repeat(write, line(progress("nobody", 1, "stale")), idleOr(stage, 10_000, STORM))
    return "answer"
  },
  "progress-malformed": async ({ send, progressToken }) => {
    await send({ method: "notifications/progress", params: { progressToken } })
    await send({ method: "notifications/progress", params: { progressToken: {}, progress: 1 } })
    await send({ method: "notifications/progress", params: { progressToken, progress: "half" } })
    await send({ method: "notifications/progress" })
    return "answer"
  },
  cancelled: async ({ id, good, send, sleep }) => {
    await send({ method: "notifications/cancelled", params: { requestId: id, reason: "busy" } })
    // The answer comes all the same, and late.
    await sleep(20)
    await send({ id, result: good })
    return "silence"
  },
  "cancelled-malformed": async ({ send }) => {
    for (const params of [{}, { requestId: null }, { requestId: {} }, { requestId: 999_999 }, { requestId: "x" }])
      await send({ method: "notifications/cancelled", params })
    await send({ method: "notifications/cancelled" })
    return "answer"
  },

  // Time
  late: async ({ stage, id, good, send, sleep, beforeNext }) => {
    // At a call also in front of the next answer, so that it meets an open call whoever is faster.
    if (stage === "call") beforeNext(() => send({ id, result: stale }))
    await sleep(stage === "call" ? 1_200 : 2_500)
    await send({ id, result: good })
    return "silence"
  },

  // Lists and the handshake
  "endless-pages": async ({ good, params }) => {
    good.nextCursor = String(Number(params?.cursor ?? 0) + 1)
    return "answer"
  },
  "repeated-cursor": async ({ good }) => {
    good.nextCursor = "again"
    return "answer"
  },
  "many-entries": async ({ good, params, tool }) => {
    const page = Number(params?.cursor ?? 0)
    good.tools = Array.from({ length: 1_000 }, (_, index) => tool(`tool-${page}-${index}`))
    // 20,001 entries in all.
    if (page === 20) good.tools.length = 1
    else good.nextCursor = String(page + 1)
    return "answer"
  },
  "huge-list": async ({ good, params, tool }) => {
    const page = Number(params?.cursor ?? 0)
    good.tools = [{ ...tool(`tool-${page}`), description: "d".repeat(3 * MIB) }]
    // 72 MiB in all, if somebody reads that far.
    if (page < 24) good.nextCursor = String(page + 1)
    return "answer"
  },
  "list-not-array": async ({ good }) => {
    good.tools = { target: {} }
    return "answer"
  },
  "list-of-junk": async ({ good }) => {
    good.tools.push(null, 1, "text", [])
    return "answer"
  },
  "zero-surface": async ({ good }) => {
    good.tools = []
    return "answer"
  },
  "future-version": async ({ good }) => {
    good.protocolVersion = "2099-01-01"
    return "answer"
  },
  "no-protocol-version": async ({ good }) => {
    delete good.protocolVersion
    return "answer"
  }
}

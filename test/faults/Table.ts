/**
 * The fault table: what a server can do wrong, when, and what must come of it.
 *
 * One line per fault; a cell says what is right by the specification, whether or not sigil does it today. Cells that
 * cannot be are named with the reason. Rules: spec sections 6 and 7, R sections 3.9 to 5.1, K sections 9.1 and 9.12.
 */
import { MIB } from "../../src/base/Units.ts"
import type { Details, Expected, Inapplicable, Row, Seen, Stage } from "./Row.ts"
import { stages } from "./Row.ts"

const lives: Expected = { kind: "lives" }

/** Codes by terminal cause: `start` where a start reports another one than a call. */
const causes: { readonly [reason: string]: { readonly call: string; readonly start: string } } = {
  connection_closed: { call: "SIGIL_CONNECTION_LOST", start: "SIGIL_START_FAILED" },
  stream_closed: { call: "SIGIL_CONNECTION_LOST", start: "SIGIL_START_FAILED" },
  write_failed: { call: "SIGIL_CONNECTION_LOST", start: "SIGIL_START_FAILED" },
  timeout: { call: "SIGIL_CALL_TIMEOUT", start: "SIGIL_START_TIMEOUT" },
  timeout_in_queue: { call: "SIGIL_CALL_TIMEOUT", start: "SIGIL_START_TIMEOUT" },
  ...Object.fromEntries(
    [
      "invalid_json",
      "invalid_utf8",
      "content_length_framing",
      "missing_newline",
      "invalid_jsonrpc_envelope",
      "unsupported_protocol_version",
      "invalid_list"
    ].map((reason) => [reason, { call: "SIGIL_PROTOCOL_FAULT", start: "SIGIL_PROTOCOL_FAULT" }] as const)
  ),
  ...Object.fromEntries(
    ["frame_too_large", "message_limit", "cumulative_bytes_limit", "stderr_limit", "list_limit", "backlog_limit"].map(
      (reason) => [reason, { call: "SIGIL_LIMIT_EXCEEDED", start: "SIGIL_LIMIT_EXCEEDED" }] as const
    )
  )
}
const starting: ReadonlyArray<Stage> = ["spawn", "probe", "handshake", "list", "pages"]

const saw = (what: string, holds: (seen: Seen) => boolean) => (seen: Seen) => (holds(seen) ? undefined : what)

/** What is right at one stage. */
type Cell = (stage: Stage) => { readonly expected: ReadonlyArray<Expected>; readonly details?: Details }

const ok: Cell = () => ({ expected: [lives] })
/** Ends of a server that did not know a question: it is started once more, without the question. */
const deaths = new Set([
  "connection_closed",
  "stream_closed",
  "missing_newline",
  "write_failed",
  "invalid_json",
  "invalid_jsonrpc_envelope"
])
const started = (times: number) => ({
  check: saw(`the server was not started ${times} times`, ({ starts }) => starts === times)
})
const again: Cell = () => ({ expected: [lives], details: started(2) })
const dies =
  (...reasons: ReadonlyArray<string>): Cell =>
  (stage) => {
    const expected = reasons.map((reason): Expected => {
      if (stage === "probe" && deaths.has(reason)) return lives
      const code = causes[reason]?.[starting.includes(stage) ? "start" : "call"] ?? "unknown"
      return { kind: "dies", reason, code }
    })
    if (stage !== "spawn" && stage !== "probe") return { expected }
    // Nobody can tell a death of the first question from any other death at the start.
    if (reasons.every((reason) => deaths.has(reason))) return { expected, details: started(2) }
    return reasons.some((reason) => deaths.has(reason)) ? { expected } : { expected, details: started(1) }
  }
const fails =
  (code: string, reason: string): Cell =>
  () => ({ expected: [{ kind: "fails", code, reason }] })
const breaks =
  (reason: string): Cell =>
  () => ({ expected: [{ kind: "breaks", reason }] })
const either =
  (...cells: ReadonlyArray<Cell>): Cell =>
  (stage) => ({ expected: cells.flatMap((cell) => cell(stage).expected) })
const having =
  (cell: Cell, details: Details): Cell =>
  (stage) => ({ ...cell(stage), details: { ...cell(stage).details, ...details } })
const late = dies("timeout")

/** One fault with its cells; `start` stands for all stages before the server is ready. */
interface Line {
  readonly name: string
  readonly fault: string
  readonly cells: { readonly [stage in Stage | "start"]?: Cell }
  /** Why the stages without a cell have none. */
  readonly otherwise: string
}
const fault = (name: string, word: string, cells: Line["cells"], otherwise = "the end is not decided by messages") => ({
  name,
  fault: word,
  cells,
  otherwise
})
/** The same at every stage of an open connection. */
const always = (cell: Cell) => ({ start: cell, call: cell, idle: cell })
/** Only where a request is open that the fault is about; a probe without an answer costs only its time. */
const asked = (cell: Cell) => ({ probe: ok, handshake: cell, list: cell, pages: cell, call: cell })
const noRequest = "there is no request that it could be about"

const tells = (word: string) =>
  saw(`the error does not say '${word}'`, ({ failure, generation }) =>
    failure === undefined
      ? generation?.wire.stderr().text.includes(word) === true
      : JSON.stringify([failure.text, failure.details]).includes(word)
  )
const warns = (word: string) =>
  saw(`no warning says '${word}'`, ({ generation }) =>
    [...(generation?.warnings ?? []), ...(generation?.connection.oddities.warnings ?? [])].some((text) =>
      text.includes(word)
    )
  )
const coalesced = saw("progress was lost or not coalesced", ({ notes }) => {
  const values = notes.map(({ progress }) => progress)
  return values.at(-1) === 6_000 && values.length < 3_000 && values.every((value, at) => value > (values[at - 1] ?? 0))
})

const skip = { declaration: { stdoutNoise: "skip" } }
const batches = { options: ["protocol=2025-03-26"] }
const keep = { declaration: { onTimeout: "keep" } }
const flood: Details = { flood: true }
const ends = (...steps: ReadonlyArray<string>): Cell =>
  having(ok, {
    check: saw(`the end did not take ${steps.join(", ")}`, (seen) => steps.every((step) => seen.steps.includes(step)))
  })

const lines: ReadonlyArray<Line> = [
  fault("no fault", "good", { ...always(ok), close: ok }),

  fault("silent hang", "hang", { ...always(late), close: ends("sigterm", "sigkill") }),
  fault("exit 0", "exit0", always(dies("connection_closed")), "that is how a server ends"),
  fault("exit 3 with stderr", "exit3", {
    start: having(dies("connection_closed"), { check: tells("key of the fault suite") }),
    probe: again,
    call: having(dies("connection_closed"), { check: tells('"exit_code":3') }),
    idle: dies("connection_closed"),
    close: ok
  }),
  fault("killed by SIGKILL", "kill", {
    ...always(dies("connection_closed")),
    call: having(dies("connection_closed"), { check: tells('"exit_signal":"SIGKILL"') }),
    close: ok
  }),
  fault("exits, grandchild in its own session holds stdout", "holder", {
    ...always(dies("connection_closed")),
    close: ends("sweep")
  }),
  fault("exits, children ignore TERM", "children", { ...always(dies("connection_closed")), close: ends("sigkill") }),
  fault("process tree of 20", "tree", { ...always(ok), close: ends("sigkill", "sweep") }),

  fault("closes stdout, lives on", "close-stdout", always(dies("stream_closed")), "nothing is read any more"),
  fault(
    "closes stdin, lives on",
    "close-stdin",
    {
      // Whether the first message still finds the pipe open is a matter of luck.
      spawn: dies("write_failed", "timeout"),
      probe: fails("SIGIL_START_FAILED", "write_failed"),
      handshake: dies("write_failed"),
      // What was read before is answered; the next message cannot be written.
      list: breaks("write_failed"),
      pages: breaks("write_failed"),
      call: breaks("write_failed"),
      idle: dies("write_failed")
    },
    "sigil closes it itself"
  ),
  fault(
    "never reads stdin",
    "never-reads",
    { spawn: late, call: having(dies("timeout", "timeout_in_queue"), { alone: true, argumentBytes: 3 * MIB }) },
    "the request of this stage was read"
  ),
  fault("stderr flood over 8 MiB", "stderr-flood", {
    ...always(having(dies("stderr_limit"), flood)),
    close: having(ok, flood)
  }),
  fault("stderr chatter of 4 MiB", "stderr-chatter", always(ok)),

  fault("invalid JSON line", "invalid-json", always(dies("invalid_json"))),
  fault("bytes that are not UTF-8", "non-utf8", always(dies("invalid_utf8"))),
  fault("Content-Length framing", "content-length", always(dies("content_length_framing"))),
  fault("frame without newline, then EOF", "no-newline", always(dies("missing_newline"))),
  fault("frame over 4 MiB, ended", "oversized", always(having(dies("frame_too_large"), flood))),
  fault("frame over 4 MiB, endless", "oversized-endless", always(having(dies("frame_too_large"), flood))),
  fault("stdout flood without newline", "stdout-flood", always(having(dies("frame_too_large"), flood))),
  fault(
    "a byte at a time, too slow",
    "slow-frame",
    // The next answer falls into the slow one.
    { start: late, probe: again, call: late },
    "it only delays the next answer"
  ),
  fault("a byte at a time, in time", "slow-frame-in-time", asked(ok), noRequest),
  fault("blank lines and CRLF", "blank-lines", always(ok)),
  fault(
    "answers 3 MiB, then exits",
    "last-words",
    { call: having(either(breaks("connection_closed"), breaks("write_failed")), { alone: true }) },
    "it is about a good answer"
  ),
  fault(
    "result nested 100,000 deep",
    "deep",
    { call: fails("SIGIL_LIMIT_EXCEEDED", "nesting_limit"), idle: ok },
    noRequest
  ),
  fault(
    "result nested 100,000 deep, with long digits",
    "deep-digits",
    { call: fails("SIGIL_LIMIT_EXCEEDED", "nesting_limit"), idle: ok },
    noRequest
  ),
  fault("log message nested 100,000 deep", "deep-log", always(ok)),
  fault("noise line, refused", "noise", always(dies("invalid_json"))),
  fault("noise line, skipped", "noise", always(having(ok, skip))),
  fault(
    "20,000 noise lines, skipped",
    "noise-flood",
    always(having(either(dies("invalid_json", "message_limit"), ok), { ...skip, ...flood }))
  ),

  fault("top-level batch", "batch", always(dies("invalid_jsonrpc_envelope"))),
  fault(
    "top-level batch under 2025-03-26",
    "batch",
    { list: having(ok, batches), call: having(ok, batches) },
    noRequest
  ),
  fault(
    "empty batch under 2025-03-26",
    "empty-batch",
    {
      call: having(dies("invalid_jsonrpc_envelope"), batches),
      idle: having(dies("invalid_jsonrpc_envelope"), batches)
    },
    "the revision is agreed on later"
  ),
  fault("wrong jsonrpc version", "wrong-version", always(dies("invalid_jsonrpc_envelope"))),
  fault("result is no object", "result-not-object", always(dies("invalid_jsonrpc_envelope"))),
  fault("result and error", "result-and-error", always(dies("invalid_jsonrpc_envelope"))),
  fault("error without an integer code", "error-without-code", always(dies("invalid_jsonrpc_envelope"))),
  fault(
    "error as the answer",
    "error-answer",
    {
      probe: ok,
      handshake: fails("SIGIL_START_FAILED", "remote_error"),
      list: fails("SIGIL_START_FAILED", "remote_error"),
      pages: fails("SIGIL_START_FAILED", "remote_error"),
      call: fails("SIGIL_REMOTE_ERROR", "remote_error")
    },
    noRequest
  ),

  fault("answer with an unknown id", "unknown-id", always(ok)),
  fault("answers with an unknown id: 300, idle 100,000", "unknown-id-storm", {
    start: dies("message_limit"),
    call: dies("message_limit"),
    idle: having(ok, flood)
  }),
  fault("id is an object", "id-object", always(dies("invalid_jsonrpc_envelope"))),
  fault("id as a string", "string-id", { ...asked(ok), call: having(ok, { check: warns("as a string") }) }, noRequest),
  fault("answered twice", "duplicate", { ...asked(ok), idle: ok }, noRequest),
  fault(
    "error with a null id, one call open",
    "null-id",
    {
      probe: ok,
      handshake: fails("SIGIL_START_FAILED", "remote_error"),
      list: fails("SIGIL_START_FAILED", "remote_error"),
      pages: fails("SIGIL_START_FAILED", "remote_error"),
      call: having(fails("SIGIL_REMOTE_ERROR", "remote_error"), { alone: true })
    },
    noRequest
  ),
  fault("error with a null id, two calls open or none", "null-id-idle", { call: ok, idle: ok }, "one request is open"),
  fault("id off by one", "id-off-by-one", asked(late), noRequest),
  fault("id off by one, timeouts keep", "id-off-by-one", {
    call: having(fails("SIGIL_CALL_TIMEOUT", "timeout"), keep)
  }),

  fault("unknown request of the server", "unknown-request", asked(ok), noRequest),
  fault("request with a null id", "null-id-request", always(dies("invalid_jsonrpc_envelope"))),
  fault("requests for methods of 1 MiB: 4, idle 40", "long-methods", always(having(ok, flood))),
  fault("50 pings, answers read", "pings", asked(ok), noRequest),
  fault("ping flood: 300, idle 20,000", "ping-flood", {
    start: dies("message_limit"),
    call: dies("message_limit"),
    idle: having(ok, flood)
  }),
  fault("request flood without reading: 300, idle 100,000", "request-flood", {
    start: dies("message_limit"),
    call: dies("message_limit"),
    // Nobody reads the answers: they may be dropped or the connection ended, but never kept without end.
    idle: having(dies("backlog_limit", "timeout", "timeout_in_queue", "write_failed"), flood)
  }),

  fault("log messages: 300, idle 100,000", "log-storm", {
    start: dies("message_limit"),
    call: dies("message_limit"),
    idle: having(ok, flood)
  }),
  fault("log messages: 9 MiB, idle 40 MiB", "log-bytes", {
    start: having(dies("cumulative_bytes_limit"), flood),
    call: having(dies("cumulative_bytes_limit"), flood),
    idle: having(ok, flood)
  }),
  fault("list_changed: 300, idle 100,000", "list-changed-storm", {
    start: dies("message_limit"),
    call: dies("message_limit"),
    idle: having(ok, flood)
  }),
  fault("progress: 6,000 notes", "progress-storm", { call: having(ok, { check: coalesced }), idle: ok }, noRequest),
  fault("progress of an unknown token: 100", "progress-unknown", always(ok)),
  fault("progress of an unknown token: 300, idle 10,000", "progress-unknown-storm", {
    start: dies("message_limit"),
    call: dies("message_limit"),
    idle: ok
  }),
  fault("malformed progress", "progress-malformed", { call: ok, idle: ok }, noRequest),
  fault(
    "cancelled by the server, answered later",
    "cancelled",
    { call: fails("SIGIL_CALL_CANCELLED", "cancelled_by_server"), idle: ok },
    "a start is no call that a server could cancel"
  ),
  fault("malformed cancelled", "cancelled-malformed", always(ok)),

  fault("answer after the deadline", "late", { ...asked(late), close: ok }, noRequest),
  fault("answer after the deadline, timeouts keep", "late", {
    call: having(fails("SIGIL_CALL_TIMEOUT", "timeout"), keep)
  }),

  ...(
    [
      // A thousand answers one after the other.
      ["endless pages", "endless-pages", having(dies("list_limit"), { startMs: 30_000 })],
      ["repeated cursor", "repeated-cursor", having(ok, { check: warns("cursor") })],
      ["20,001 entries", "many-entries", dies("list_limit")],
      ["list over 64 MiB", "huge-list", having(dies("list_limit"), { flood: true, memoryBytes: 256 * MIB })],
      ["list is no array", "list-not-array", fails("SIGIL_PROTOCOL_FAULT", "invalid_list")],
      ["entries that are no objects", "list-of-junk", having(ok, { check: warns("not an object") })],
      ["zero surface", "zero-surface", fails("SIGIL_ZERO_SURFACE", "zero_surface")]
    ] as const
  ).map(([name, word, cell]) => fault(name, word, { list: cell }, "it is about lists")),
  ...(
    [
      ["unsupported protocol version", "future-version"],
      ["no protocol version", "no-protocol-version"]
    ] as const
  ).map(([name, word]) =>
    fault(
      name,
      word,
      { handshake: fails("SIGIL_PROTOCOL_FAULT", "unsupported_protocol_version") },
      "it is about the handshake"
    )
  ),

  ...(
    [
      ["writes after stdin was closed", "write-after-end", having(ok, flood)],
      ["starts another process on TERM", "forks-on-term", ends("sigkill")]
    ] as const
  ).map(([name, word, cell]) => fault(name, word, { close: cell }, "it is about the end"))
]

const cellOf = (line: Line, stage: Stage): Cell | undefined =>
  line.cells[stage] ?? (starting.includes(stage) ? line.cells.start : undefined)

/** Every row, fault by fault, in the order of the stages. */
export const rows: ReadonlyArray<Row> = lines.flatMap((line) =>
  stages.flatMap((stage) => {
    const cell = cellOf(line, stage)?.(stage)
    return cell === undefined
      ? []
      : [{ ...cell.details, stage, name: line.name, fault: line.fault, expected: cell.expected }]
  })
)

/** Every cell that has no row. */
export const inapplicable: ReadonlyArray<Inapplicable> = lines.flatMap((line) =>
  stages.flatMap((stage) =>
    cellOf(line, stage) === undefined ? [{ stage, name: line.name, why: line.otherwise }] : []
  )
)

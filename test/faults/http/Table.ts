/**
 * The fault table over HTTP: what a remote server can do wrong, when, and what must come of it.
 *
 * One line per fault; a cell says what is right by the specification. Two things hold for every row and stand in no
 * cell: nothing ever arrives at the other origin of a redirect, and no connection is open once sigil has closed. Rules:
 * spec sections 6 and 7, R section 8, K sections 9.7 to 9.10 and 9.12.
 */
import type { FaultName } from "./Faults.ts"
import { connectFaults, type Script } from "./Hostile.ts"
import {
  type Expect,
  HELD_MS,
  type Inapplicable,
  type Life,
  LONG,
  type Outcome,
  type Row,
  SHORT,
  SLACK_MS,
  TOO_LATE_MS
} from "./Row.ts"
import { type Era, exists, type Step, steps } from "./Step.ts"

/** What is right at one moment; the codes may depend on whether the start or a call is struck. */
interface Cell {
  readonly codes: (starting: boolean) => ReadonlyArray<Outcome>
  /** After a struck call; a failed start has no connection that could live. */
  readonly lives: ReadonlyArray<Life>
  /** Runs into a deadline. */
  readonly late?: true
}

const cell = (start: ReadonlyArray<Outcome>, call: ReadonlyArray<Outcome>, ...lives: ReadonlyArray<Life>): Cell => ({
  codes: (starting) => (starting ? start : call),
  lives
})
/** The same code for a start and for a call. */
const both = (code: Outcome, ...lives: ReadonlyArray<Life>): Cell => cell([code], [code], ...lives)

/** Tolerated. */
const ok = both("none", "same")
/** One request waits for its deadline; a remote connection is kept (spec section 7, `on_timeout`). */
const late: Cell = { ...cell(["SIGIL_START_TIMEOUT"], ["SIGIL_CALL_TIMEOUT"], "same"), late: true }
/** One request is lost; the server is still there. */
const lost = cell(["SIGIL_START_FAILED"], ["SIGIL_CONNECTION_LOST"], "same")
/** The same, at a server that is gone. */
const gone: Cell = { ...lost, lives: ["down"] }
/** What arrived is no HTTP, or no answer of MCP; the message was one of its own, so the connection lives. */
const fault = both("SIGIL_PROTOCOL_FAULT", "same")
/** An invalid frame ends the connection, and such a server is not started again by itself (spec section 7). */
const invalid = both("SIGIL_PROTOCOL_FAULT", "down")
/** One answer is too much. */
const limit = both("SIGIL_LIMIT_EXCEEDED", "same")
/** A status that refuses this one request. */
const refused = both("SIGIL_HTTP_STATUS", "same")
const signIn = both("SIGIL_SIGN_IN_NEEDED", "same")
const redirected = both("SIGIL_REDIRECT_REFUSED", "same")
/** The server's own error. */
const remote = cell(["SIGIL_START_FAILED"], ["SIGIL_REMOTE_ERROR"], "same")
/** The end of the handshake was not taken, for whatever reason. */
const rejected = both("SIGIL_START_FAILED", "same")
/** The session is begun anew, and what was not processed is sent again in it (spec section 6). */
const anew = both("none", "anew")
/** The start or the call finds out, whichever is under way. */
const whenever = (...codes: ReadonlyArray<Outcome>): Cell => cell(codes, codes, "same", "anew", "down")

/** Moments of the start in which a request waits for its answer. */
const START = ["handshake", "list"] as const
type Group = "start" | "aside"

/** One fault with its cells. `start` stands for the handshake and the list, `aside` for the stream and the end. */
interface Line extends Required<Pick<More, "otherwise" | "eras" | "also" | "sends">> {
  readonly fault: FaultName
  readonly cells: { readonly [step in Step | Group]?: Cell }
  readonly more: More
}
interface More {
  readonly otherwise?: string
  readonly eras?: ReadonlyArray<Era>
  /** Strikes these moments too. */
  readonly also?: ReadonlyArray<Step>
  /** How often one call may be sent. */
  readonly sends?: number
  readonly times?: number
  readonly ms?: number
  readonly declaration?: { readonly [key: string]: unknown }
  /** The first call is open when the second one is struck. */
  readonly holds?: true
}
const line = (name: FaultName, cells: Line["cells"], more: More = {}): Line => ({
  fault: name,
  cells,
  otherwise: "no answer of this kind belongs there",
  eras: ["legacy", "modern"],
  also: [],
  sends: 1,
  ...more,
  more
})
/** The same wherever an answer is awaited; what happens aside of that costs nobody anything. */
const always = (one: Cell): Line["cells"] => ({ start: one, call: one, aside: ok })
const asked = (one: Cell): Line["cells"] => ({ start: one, call: one })
const legacy: More = { eras: ["legacy"], otherwise: "it is about sessions" }
const modern: More = { eras: ["modern"] }
/** Calls are sent again only where the entry says so itself. */
const retries: More = { declaration: { retries: 2 }, otherwise: "it is about calls" }

const lines: ReadonlyArray<Line> = [
  line("none", { ...always(ok), connect: ok, probe: ok, initialized: ok, next: ok }),

  // A server that keeps silent about the newer era has half of the budget for that.
  line("black hole", { ...always(late), connect: late, probe: { ...ok, late: true }, initialized: late }),
  line("late", always(late), { ms: TOO_LATE_MS }),
  line("accepted", asked(fault)),
  line("no content", asked(fault)),
  line("slow headers", always(late), { ms: 50 }),
  line("trickle", asked(ok), { ms: 1 }),
  line("trickle", asked(late), { ms: TOO_LATE_MS }),
  line("endless body", always(limit)),
  line("endless comments", always(late), { ms: 50 }),
  // Comments are no messages, but they are bytes of this response.
  line("comment flood", always(limit)),
  line("endless event", always(limit)),

  line(
    "refuse",
    { ...always(gone), connect: gone, stream: whenever("SIGIL_START_FAILED", "SIGIL_CONNECTION_LOST") },
    {
      sends: 2
    }
  ),
  line("restart", { start: lost, call: { ...lost, lives: ["anew"] }, delete: ok }, { ...legacy, sends: 2 }),
  line("restart", { start: lost, call: lost }, modern),
  line("restart", { next: { ...lost, lives: ["anew"] } }, { ...legacy, times: 1, sends: 2 }),
  line("restart", { next: lost }, { ...modern, times: 1 }),
  line(
    "restart",
    { stream: whenever("none", "SIGIL_CONNECTION_LOST", "SIGIL_START_FAILED") },
    { times: 1, sends: 2, otherwise: "it is about the stream" }
  ),
  line("close before", { ...always(lost), connect: lost, probe: lost, initialized: rejected }),
  line("close before", { call: lost }, retries),
  line("reset before", { ...always(lost), connect: lost, probe: lost, initialized: rejected }),
  line("reset in body", always(lost)),
  line("close in body", asked(lost)),
  line("close after", { ...asked(ok), next: ok }),
  line("http 1.0", asked(ok)),

  line("cut in event", always(lost)),
  line("cut in character", always(lost)),
  line("split character", asked(ok)),
  line("reset in event", always(lost)),
  line("no event", always(lost)),
  line("stream ends", { stream: ok }),
  line("stream ends, retry 0", { stream: ok }),
  line("stream ends, retry absurd", { stream: ok }),
  line("events of other kinds", asked(ok)),

  line("html 200", { ...always(fault), probe: ok }),
  // Evidence of the older era at the probe; afterwards the session may be gone.
  ...(["html 404", "gone"] as const).flatMap((name) => [
    line(name, { handshake: refused, list: rejected, call: anew, aside: ok, probe: ok }, { ...legacy, sends: 2 }),
    line(name, { start: refused, call: refused, aside: ok }, modern)
  ]),
  line("html 500", { ...always(refused), probe: refused, initialized: rejected }),
  line("html 502", { ...always(refused), probe: refused }),
  line("empty 200", asked(fault)),
  ...(["redirect 301", "redirect 302", "redirect 307", "redirect 308", "redirect to itself"] as const).map((name) =>
    line(name, { ...always(redirected), probe: redirected, initialized: rejected })
  ),
  line("redirect nowhere", asked(redirected)),
  line("401", { ...always(signIn), probe: signIn }),
  line("401 bare", { ...always(signIn), probe: signIn }),
  line("403", { ...always(refused), probe: refused }),
  // Lists only read and are asked for again after the time that the server names.
  line("429 seconds", { handshake: refused, list: ok, call: refused, aside: ok, probe: refused }, { times: 1 }),
  line("429 seconds", { call: ok }, { ...retries, times: 1, sends: 2 }),
  line("429 date", { handshake: refused, list: ok, call: refused }, { times: 1 }),
  line("429 absurd", { ...always(refused), probe: refused }),
  line("429 garbage", asked(refused)),
  line(
    "429 garbage",
    { call: { ...refused, lives: ["down"] } },
    { declaration: { retries: 1 }, also: ["next"], otherwise: "it is about calls", sends: 2 }
  ),
  line("gone", { call: gone }, { ...legacy, also: ["next"], sends: 2 }),
  line(
    "gone",
    { call: { ...refused, lives: ["down"] } },
    { ...modern, also: ["next"], otherwise: "it is about calls" }
  ),
  line("500 with error", asked(remote)),

  line("session changed", { list: fault, call: { ...fault, lives: ["anew"] } }, legacy),
  line("session invalid", { handshake: fault }, legacy),
  line("session too long", { handshake: fault }, legacy),
  line(
    "session lost",
    { initialized: ok, list: ok, call: anew, next: anew, stream: whenever("none"), delete: ok },
    { ...legacy, times: 1, sends: 2 }
  ),

  line("wrong type", always(fault)),
  line("no type", always(fault)),
  line("not json", always(invalid), legacy),
  // The answer to `subscriptions/listen` is a frame like any other.
  line("not json", { ...asked(invalid), stream: whenever("none", "SIGIL_PROTOCOL_FAULT") }, modern),
  line("not utf-8", asked(invalid)),
  line("byte order mark", asked(ok)),
  line("batch", asked(invalid)),
  line("huge body", always(limit)),
  line("huge event", always(limit)),
  // What is nested too deep is refused where it is handed on, which is at a call.
  line("deep json", { start: ok, call: limit }),
  // No coding was asked for, so none is taken.
  line("gzip bomb", always(fault)),
  line("gzip, good", asked(fault)),
  line("gzip, broken", asked(fault)),
  line("unknown coding", asked(fault)),

  line("header flood", always(limit)),
  line("headers broken", always(fault)),
  line("two lengths", asked(fault)),
  line("not http", { ...always(fault), connect: fault }),
  // RFC 9110 section 15.2: taken and ignored, a few of them.
  line("interim 100", always(ok)),
  line("interim 103", always(ok)),
  line("interim for ever", asked(fault), { ms: 50 }),
  line("interim flood", asked(fault)),
  line("switching protocols", asked(lost)),

  line("as a stream", asked(ok)),
  line("as a stream, left open", asked(ok)),
  // Whether a request is open while the stream storms is a matter of luck.
  line("storm", {
    start: limit,
    call: { ...limit, lives: ["anew"] },
    stream: whenever("none", "SIGIL_LIMIT_EXCEEDED")
  }),
  line("duplicate", asked(ok)),
  line("unknown ids", asked(ok)),
  line("unknown id alone", asked(fault)),
  line("crossed", { next: fault }, { holds: true, times: 1, otherwise: "no other request is open" }),
  line("error with a null id", asked(remote)),
  line("envelope broken", asked(invalid))
]

/** Faults without measure. */
const floods: ReadonlySet<FaultName> = new Set<FaultName>([
  "endless body",
  "comment flood",
  "endless event",
  "huge body",
  "huge event",
  "deep json",
  "gzip bomb",
  "header flood",
  "interim flood",
  "storm"
])

/** Lists are read up to three times, a second and more apart; most rows are not about that and are not to wait. */
const patient: ReadonlySet<FaultName> = new Set<FaultName>(["html 500", "429 seconds", "429 date", "429 absurd"])

const isAside = (step: Step): boolean => step === "stream" || step === "delete"
const groupOf = (step: Step): Group | undefined =>
  START.some((one) => one === step) ? "start" : isAside(step) ? "aside" : undefined
const cellOf = ({ cells }: Line, step: Step): Cell | undefined => {
  const group = groupOf(step)
  return cells[step] ?? (group === undefined ? undefined : cells[group])
}

/** Whether the fault comes before the server is ready. */
export const strikesStart = (step: Step): boolean => step !== "call" && step !== "next" && !isAside(step)

const expectOf = (found: Cell, step: Step, deadlines: typeof LONG): Expect => {
  const starting = strikesStart(step)
  const codes = found.codes(starting)
  const failed = !codes.includes("none")
  const time = starting ? deadlines.startMs : deadlines.callMs
  return { codes, connectionLives: starting && failed ? ["down"] : found.lives, bound: time + SLACK_MS }
}

const rowOf = (about: Line, era: Era, step: Step, found: Cell): Row => {
  // A stream that never answers costs nobody a deadline, but the end of the session may have to wait for its own.
  const deadlines =
    found.late !== true
      ? LONG
      : strikesStart(step)
        ? { ...LONG, startMs: SHORT.startMs }
        : { ...LONG, callMs: SHORT.callMs }
  const { also, fault: name, sends } = about
  const { holds, ms, times } = about.more
  const declaration = about.more.declaration ?? (step === "list" && !patient.has(name) ? { retries: 0 } : undefined)
  const strike = { fault: name, ...(times === undefined ? {} : { times }), ...(ms === undefined ? {} : { ms }) }
  const script: Script = {
    ...(holds === undefined ? {} : { call: { fault: "late", ms: HELD_MS } }),
    ...Object.fromEntries([step, ...also].map((at) => [at, strike]))
  }
  return {
    era,
    step,
    fault: name,
    script,
    ...deadlines,
    ...(declaration === undefined ? {} : { declaration }),
    sends,
    holds: holds ?? false,
    flood: floods.has(name),
    expect: expectOf(found, step, deadlines)
  }
}

const cells = lines.flatMap((about) =>
  about.eras.flatMap((era) =>
    steps.filter((step) => exists(step, era)).map((step) => ({ about, era, step, found: cellOf(about, step) }))
  )
)

/** Every row, fault by fault, in the order of the moments. */
export const rows: ReadonlyArray<Row> = cells.flatMap(({ about, era, step, found }) =>
  found === undefined ? [] : [rowOf(about, era, step, found)]
)

/** Every cell that has no row. */
export const inapplicable: ReadonlyArray<Inapplicable> = cells.flatMap(({ about, era, step, found }) => {
  if (found !== undefined) return []
  const connecting = step === "connect" && !connectFaults.some((one) => one === about.fault)
  return [{ era, step, fault: about.fault, why: connecting ? "it needs a request" : about.otherwise }]
})

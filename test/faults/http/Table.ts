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
  CLOSE_MS,
  type Expect,
  type Inapplicable,
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
  readonly lives: boolean | "open"
  /** Runs into its deadline. */
  readonly late?: true
}

const cell = (
  start: ReadonlyArray<Outcome>,
  call: ReadonlyArray<Outcome>,
  lives: Cell["lives"],
  more: { readonly late?: true } = {}
): Cell => ({ codes: (starting) => (starting ? start : call), lives, ...more })

/** Tolerated. */
const ok = cell(["none"], ["none"], true)
/** One request waits for its deadline; a remote connection is kept (spec section 7, `on_timeout`). */
const late = cell(["SIGIL_START_TIMEOUT"], ["SIGIL_CALL_TIMEOUT"], true, { late: true })
/** One request is lost; the server is still there. */
const lost = cell(["SIGIL_START_FAILED"], ["SIGIL_CONNECTION_LOST"], true)
/** The same, at a server that is gone. */
const gone = cell(["SIGIL_START_FAILED"], ["SIGIL_CONNECTION_LOST"], "open")
/** What arrived is no MCP. Invalid frames end a connection (spec section 7), where there is one to end. */
const fault = cell(["SIGIL_PROTOCOL_FAULT", "SIGIL_START_FAILED"], ["SIGIL_PROTOCOL_FAULT"], "open")
/** What arrived is no HTTP, or breaks off: whether that is a fault or a loss is the HTTP client's word. */
const broken = cell(
  ["SIGIL_PROTOCOL_FAULT", "SIGIL_START_FAILED"],
  ["SIGIL_PROTOCOL_FAULT", "SIGIL_CONNECTION_LOST"],
  "open"
)
/** Too much. */
const limit = cell(["SIGIL_LIMIT_EXCEEDED"], ["SIGIL_LIMIT_EXCEEDED"], "open")
/** Too much of what an HTTP client bounds by itself. */
const overflow = cell(
  ["SIGIL_LIMIT_EXCEEDED", "SIGIL_PROTOCOL_FAULT", "SIGIL_START_FAILED"],
  ["SIGIL_LIMIT_EXCEEDED", "SIGIL_PROTOCOL_FAULT", "SIGIL_CONNECTION_LOST"],
  "open"
)
/** A status that refuses this one request. The specification names no code for it but that of section 1's exit 3. */
const refused = cell(
  ["SIGIL_START_FAILED"],
  ["SIGIL_CONNECTION_LOST", "SIGIL_PROTOCOL_FAULT", "SIGIL_REMOTE_ERROR", "SIGIL_NETWORK_REFUSED"],
  true
)
/** Sigil may wait and ask again, inside the deadline. */
const patient = cell(
  ["none", "SIGIL_START_FAILED", "SIGIL_START_TIMEOUT"],
  ["none", "SIGIL_CONNECTION_LOST", "SIGIL_PROTOCOL_FAULT", "SIGIL_REMOTE_ERROR", "SIGIL_CALL_TIMEOUT"],
  true
)
const redirected = cell(["SIGIL_REDIRECT_REFUSED"], ["SIGIL_REDIRECT_REFUSED"], true)
/** The server's own error. */
const remote = cell(["SIGIL_START_FAILED"], ["SIGIL_REMOTE_ERROR"], true)
/** Whether sigil takes it or not, it says so at once. */
const either = (one: Cell): Cell => ({ ...one, codes: (starting) => ["none", ...one.codes(starting)] })
const withDeadline = (one: Cell): Cell => ({
  ...one,
  codes: (starting) => [...one.codes(starting), ...late.codes(starting)],
  late: true
})

/** Moments of the start in which a request waits for its answer. */
const START = ["handshake", "list"] as const
type Group = "start" | "aside"

/** One fault with its cells. `start` stands for the handshake and the list, `aside` for the stream and the end. */
interface Line {
  readonly fault: FaultName
  readonly cells: { readonly [step in Step | Group]?: Cell }
  readonly otherwise: string
  readonly eras: ReadonlyArray<Era>
  /** Strikes these moments too. */
  readonly also: ReadonlyArray<Step>
  readonly times?: number
  readonly ms?: number
}
interface More {
  readonly otherwise?: string
  readonly eras?: ReadonlyArray<Era>
  readonly also?: ReadonlyArray<Step>
  readonly times?: number
  readonly ms?: number
}
const line = (name: FaultName, cells: Line["cells"], more: More = {}): Line => ({
  fault: name,
  cells,
  otherwise: "no answer of this kind belongs there",
  eras: ["legacy", "modern"],
  also: [],
  ...more
})
/** The same wherever an answer is awaited; what happens aside of that costs nobody anything. */
const always = (one: Cell): Line["cells"] => ({ start: one, call: one, aside: ok })
const asked = (one: Cell): Line["cells"] => ({ start: one, call: one })
const legacy: More = { eras: ["legacy"], otherwise: "it is about sessions" }

const lines: ReadonlyArray<Line> = [
  line("none", { ...always(ok), connect: ok, probe: ok, initialized: ok, next: ok }),

  line("black hole", { ...always(late), connect: late, probe: late, initialized: either(late) }),
  line("late", always(late), { ms: TOO_LATE_MS }),
  line("accepted", asked(broken)),
  line("no content", asked(broken)),
  line("slow headers", always(late), { ms: 50 }),
  line("trickle", asked(ok), { ms: 1 }),
  line("trickle", asked(late), { ms: TOO_LATE_MS }),
  line("endless body", always(limit)),
  line("endless comments", always(late), { ms: 50 }),
  // Comments are no messages, but they are bytes of this response.
  line("comment flood", always(withDeadline(limit))),
  line("endless event", always(limit)),

  line("refuse", { ...always(gone), connect: gone }),
  line("restart", { start: lost, call: lost, next: lost, aside: ok }),
  line("close before", { ...always(lost), connect: lost, probe: lost, initialized: either(lost) }),
  line("reset before", { ...always(lost), connect: lost, probe: lost, initialized: either(lost) }),
  line("reset in body", always(lost)),
  line("close in body", asked(broken)),
  line("close after", { ...asked(ok), next: ok }),
  line("http 1.0", asked(ok)),

  line("cut in event", always({ ...broken, lives: true })),
  line("cut in character", always({ ...broken, lives: true })),
  line("split character", asked(ok)),
  line("reset in event", always(lost)),
  line("no event", always({ ...broken, lives: true })),
  line("stream ends", { stream: ok }),
  line("stream ends, retry 0", { stream: ok }),
  line("stream ends, retry absurd", { stream: ok }),
  line("events of other kinds", asked(ok)),

  line("html 200", { ...always(fault), probe: either(fault) }),
  // Evidence of the older era at the probe; afterwards the session may be gone.
  line("html 404", { start: refused, call: either(refused), aside: ok, probe: ok }),
  line("html 500", { ...always(refused), probe: either(refused), initialized: either(refused) }),
  line("html 502", { ...always(refused), probe: either(refused) }),
  line("empty 200", asked(broken)),
  ...(["redirect 301", "redirect 302", "redirect 307", "redirect 308", "redirect to itself"] as const).map((name) =>
    line(name, { ...always(redirected), probe: redirected, initialized: redirected })
  ),
  line(
    "redirect nowhere",
    asked({ ...redirected, codes: (starting) => ["SIGIL_REDIRECT_REFUSED", ...refused.codes(starting)] })
  ),
  // The code of sign-in (exit 6) joins these when there is one.
  line("401", { ...always(refused), probe: refused }),
  line("401 bare", { ...always(refused), probe: refused }),
  line("403", { ...always(refused), probe: refused }),
  line("429 seconds", { ...asked(patient), aside: ok, probe: patient }, { times: 1 }),
  line("429 date", asked(patient), { times: 1 }),
  line("429 absurd", { ...asked(patient), aside: ok, probe: patient }),
  line("429 garbage", asked(patient)),
  line("gone", { start: refused, call: either(refused), aside: ok, probe: ok }),
  line("gone", { call: { ...refused, lives: false } }, { also: ["next"], otherwise: "it is about calls" }),
  line("500 with error", {
    start: remote,
    call: { ...remote, codes: () => [...remote.codes(false), ...refused.codes(false)] }
  }),

  line("session changed", { list: fault, call: either(fault) }, legacy),
  line("session invalid", { handshake: fault }, legacy),
  line("session too long", { handshake: fault }, legacy),
  // Not processed, so it is sent again in a new session (spec section 6).
  line(
    "session lost",
    { initialized: either(refused), list: either(refused), call: ok, next: ok, stream: ok, delete: ok },
    { ...legacy, times: 1 }
  ),

  line("wrong type", always(fault)),
  line("no type", always(fault)),
  line("not json", always(fault)),
  line("not utf-8", asked(fault)),
  line("byte order mark", asked(either(fault))),
  line("batch", asked(fault)),
  line("huge body", always(limit)),
  line("huge event", always(limit)),
  line("deep json", asked({ ...limit, lives: true })),
  line("gzip bomb", always(overflow)),
  // Only who asked for a coding must know it.
  line("gzip, good", asked(either(fault))),
  line("gzip, broken", asked(broken)),
  line("unknown coding", asked(either(fault))),

  line("header flood", always(overflow)),
  line("headers broken", always(broken)),
  line("two lengths", asked(broken)),
  line("not http", { ...always(broken), connect: broken }),
  line("interim 100", always(ok)),
  line("interim 103", always(ok)),
  line("interim for ever", asked(withDeadline(overflow)), { ms: 50 }),
  line("interim flood", asked(withDeadline(overflow))),
  line("switching protocols", asked(withDeadline(broken))),

  line("as a stream", asked(ok)),
  line("as a stream, left open", asked(ok)),
  line("storm", { start: limit, call: limit, stream: ok }),
  line("duplicate", asked(ok)),
  line("unknown ids", asked(ok)),
  line("unknown id alone", asked({ ...broken, lives: true })),
  line("crossed", { call: { ...broken, lives: true } }, { otherwise: "no other request is open" }),
  line("error with a null id", asked(remote)),
  line("envelope broken", asked(fault))
]

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
  const time = isAside(step)
    ? CLOSE_MS + deadlines.startMs + deadlines.callMs
    : starting
      ? deadlines.startMs
      : deadlines.callMs
  return { codes, connectionLives: starting && failed ? false : found.lives, bound: time + SLACK_MS }
}

const rowOf = (about: Line, era: Era, step: Step, found: Cell): Row => {
  // A stream that never answers costs nobody a deadline, but the end of the session may have to wait for its own.
  const deadlines =
    found.late !== true
      ? LONG
      : strikesStart(step)
        ? { ...LONG, startMs: SHORT.startMs }
        : { ...LONG, callMs: SHORT.callMs }
  const { fault: name, times, ms, also } = about
  const strike = { fault: name, ...(times === undefined ? {} : { times }), ...(ms === undefined ? {} : { ms }) }
  const script: Script = Object.fromEntries([step, ...also].map((at) => [at, strike]))
  return { era, step, fault: name, script, ...deadlines, expect: expectOf(found, step, deadlines) }
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

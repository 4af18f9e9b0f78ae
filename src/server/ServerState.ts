/**
 * What a server can be doing, and what each event makes of it: data and one pure function (spec section 7).
 *
 * The machine knows generations only by identity and does nothing itself: `transition` answers with the next state
 * and the commands that the supervisor carries out, each of which ends in exactly one event.
 *
 * Invariants, held for every order of events (`test/server/ServerState.test.ts`):
 * - at most one `Open` is under way, and every generation that was opened is closed exactly once;
 * - but for the overlap of a refresh no generation is opened before every earlier one is confirmed gone;
 * - a generation that ended never answers again;
 * - a cleanup that could not be confirmed ends in `Failed`, with nothing running.
 */
import * as RestartPolicy from "./RestartPolicy.ts"

/** A list that a server can change while it runs. */
export type Surface = "tools" | "resources" | "prompts"

/** Why a generation is opened. */
export type OpenKind = "asked" | "restart" | "refresh" | "restore"

/** Decisions of others that keep a server from running. */
export type Bar = "pending" | "disabled" | "needs_auth"

/**
 * What a failed start means for the next one: worth another attempt, final, final because something of it could not be
 * confirmed gone, or somebody has to decide.
 */
export type FailureKind = "passing" | "final" | "unclean" | Bar

/** How a live generation was lost. */
export interface Loss<F> {
  readonly failure: F
  readonly restart: boolean
}

/** What a server is doing. `G` is a generation, `F` a failure. */
export type State<G, F> =
  /** Nothing runs and nothing is wrong: it starts when it is asked for. */
  | { readonly _tag: "Deferred" }
  | { readonly _tag: "Activating"; readonly kind: OpenKind; readonly queued: boolean }
  | { readonly _tag: "Ready"; readonly generation: G; readonly stale: ReadonlySet<Surface> }
  | Refreshing<G, F>
  /** It ended by itself and is being cleaned up; `asked` remembers who wants it meanwhile. */
  | {
      readonly _tag: "Ending"
      readonly generation: G
      readonly loss: Loss<F>
      readonly asked: "nobody" | "call" | "explicit"
    }
  /** Waiting for the next attempt. */
  | { readonly _tag: "Restarting"; readonly dueAt: number; readonly failure: F }
  /** Down until asked. `wasReady`: it worked before, so a mere call does not start it again. */
  | { readonly _tag: "Failed"; readonly failure: F; readonly wasReady: boolean; readonly exhausted: boolean }
  | { readonly _tag: "Barred"; readonly bar: Bar; readonly failure: F }
  /** Everything is being closed on request. `asked`: somebody wants it again afterwards. */
  | {
      readonly _tag: "Stopping"
      readonly opening: boolean
      readonly closing: ReadonlyArray<G>
      readonly asked: boolean
      /** What could not be confirmed gone. */
      readonly incomplete: F | undefined
    }

/** A replacement under way. */
export interface Refreshing<G, F> {
  readonly _tag: "Refreshing"
  /** `overlap` opens first; `exclusive` closes first; `restore` is the second start after a failed exclusive one. */
  readonly plan: "overlap" | "exclusive" | "restore"
  readonly opening: boolean
  readonly queued: boolean
  /** The generation that answers calls now. */
  readonly current: G | undefined
  readonly closing: ReadonlyArray<G>
  /** How `current` was lost meanwhile. */
  readonly loss: Loss<F> | undefined
  /** Why the refresh failed. */
  readonly failure: { readonly value: F; readonly kind: FailureKind } | undefined
  /** A retirement could not be confirmed: whatever still runs goes too. */
  readonly broken: boolean
  /** Whether it worked before this refresh. */
  readonly wasReady: boolean
  readonly stale: ReadonlySet<Surface>
}

/** The state with what outlives it. */
export interface Machine<G, F> {
  readonly state: State<G, F>
  /** Whether the entry allows restarts. */
  readonly restarts: boolean
  /** Times of the restart attempts, ms. */
  readonly attempts: ReadonlyArray<number>
}

/** What can happen. */
export type Event<G, F> =
  /** Somebody wants it running; `explicit` is more than a mere call. */
  | { readonly _tag: "Ask"; readonly explicit: boolean; readonly now: number }
  | { readonly _tag: "TurnCame" }
  | { readonly _tag: "Opened"; readonly generation: G }
  | {
      readonly _tag: "OpenFailed"
      readonly failure: F
      readonly kind: FailureKind
      readonly now: number
      readonly jitter: number
    }
  /** A live generation ended by itself. */
  | { readonly _tag: "Ended"; readonly generation: G; readonly loss: Loss<F> }
  /** A generation is gone; `incomplete` says what could not be confirmed. */
  | {
      readonly _tag: "Closed"
      readonly generation: G
      readonly incomplete: F | undefined
      readonly now: number
      readonly jitter: number
    }
  | { readonly _tag: "Due"; readonly now: number }
  | { readonly _tag: "Refresh"; readonly exclusive: boolean }
  | { readonly _tag: "Changed"; readonly surface: Surface }
  | { readonly _tag: "Relisted"; readonly surface: Surface }
  /** Everything ends. `drain`: calls in flight get a moment; `again`: somebody wants it running afterwards. */
  | { readonly _tag: "Stop"; readonly drain?: boolean; readonly again?: boolean }

/** What the supervisor has to do. */
export type Command<G, F> =
  /** Ends in `Opened` or `OpenFailed`. */
  | { readonly _tag: "Open"; readonly kind: OpenKind }
  /** Hurries the open one to its end. */
  | { readonly _tag: "AbortOpen" }
  /** Ends in `Closed`. `drain`: calls in flight get a moment to finish. */
  | { readonly _tag: "Close"; readonly generation: G; readonly drain: boolean }
  /** Ends in `Due`, unless the state changes before. */
  | { readonly _tag: "Wake"; readonly at: number }
  /** Tells who waits for a refresh how it went. */
  | { readonly _tag: "RefreshDone"; readonly failure: F | undefined }

type Step<G, F> = readonly [Machine<G, F>, ReadonlyArray<Command<G, F>>]

const none: ReadonlySet<Surface> = new Set()
const deferred = { _tag: "Deferred" } as const

/** A server that nobody asked for yet. */
export const initial = <G, F>(restarts: boolean): Machine<G, F> => ({ state: deferred, restarts, attempts: [] })

/** The generation that may answer calls now. */
export const answering = <G, F>(state: State<G, F>): G | undefined =>
  state._tag === "Ready" ? state.generation : state._tag === "Refreshing" ? state.current : undefined

/** The state after one event, and what is to be done. Events that mean nothing in a state change nothing. */
export const transition = <G, F>(machine: Machine<G, F>, event: Event<G, F>): Step<G, F> => {
  const { state } = machine
  switch (state._tag) {
    case "Deferred":
      if (event._tag === "Ask") return open(machine, "asked")
      return event._tag === "Refresh" ? refreshFromNothing(machine, false) : [machine, []]
    case "Activating":
      return activating(machine, state, event)
    case "Ready":
      return ready(machine, state, event)
    case "Refreshing":
      return refreshing(machine, state, event)
    case "Ending":
      return ending(machine, state, event)
    case "Restarting":
      if (event._tag === "Due" || event._tag === "Ask") return attempt(machine, event.now)
      if (event._tag === "Refresh") return refreshFromNothing(machine, true)
      return event._tag === "Stop" ? [to(machine, deferred), []] : [machine, []]
    case "Failed":
      if (event._tag === "Ask" && (event.explicit || !state.wasReady)) return open(machine, "asked")
      if (event._tag === "Refresh") return refreshFromNothing(machine, state.wasReady)
      return event._tag === "Stop" ? [to(machine, deferred), []] : [machine, []]
    case "Barred":
      // The decision may have been taken since; admission knows.
      if (event._tag === "Ask") return open(machine, "asked")
      if (event._tag === "Refresh") return refreshFromNothing(machine, false)
      return event._tag === "Stop" ? [to(machine, deferred), []] : [machine, []]
    case "Stopping":
      return stopping(machine, state, event)
  }
}

const to = <G, F>(machine: Machine<G, F>, state: State<G, F>): Machine<G, F> => ({ ...machine, state })

const open = <G, F>(machine: Machine<G, F>, kind: OpenKind): Step<G, F> => [
  to(machine, { _tag: "Activating", kind, queued: true }),
  [{ _tag: "Open", kind }]
]

/** One restart attempt, now. */
const attempt = <G, F>(machine: Machine<G, F>, now: number): Step<G, F> =>
  open({ ...machine, attempts: [...RestartPolicy.recent(machine.attempts, now), now] }, "restart")

/** What follows a loss once everything is gone: an attempt later, or the end. */
const afterLoss = <G, F>(machine: Machine<G, F>, loss: Loss<F>, now: number, jitter: number): Step<G, F> => {
  const failed = (exhausted: boolean): Step<G, F> => [
    to(machine, { _tag: "Failed", failure: loss.failure, wasReady: true, exhausted }),
    []
  ]
  if (!machine.restarts || !loss.restart) return failed(false)
  const delay = RestartPolicy.delayBefore(machine.attempts, now, jitter)
  if (delay === undefined) return failed(true)
  const dueAt = now + delay
  return [to(machine, { _tag: "Restarting", dueAt, failure: loss.failure }), [{ _tag: "Wake", at: dueAt }]]
}

const failedStart = <G, F>(failure: F, kind: FailureKind, wasReady: boolean): State<G, F> =>
  kind === "passing" || kind === "final" || kind === "unclean"
    ? // What was left behind would run beside the next start, so a mere call does not cause one.
      { _tag: "Failed", failure, wasReady: wasReady || kind === "unclean", exhausted: false }
    : { _tag: "Barred", bar: kind, failure }

const stop = <G, F>(
  machine: Machine<G, F>,
  { again: asked = false, drain = false }: Extract<Event<G, F>, { _tag: "Stop" }>,
  opening: boolean,
  closing: ReadonlyArray<G>,
  close: ReadonlyArray<G>
): Step<G, F> => [
  to(machine, { _tag: "Stopping", opening, closing: [...closing, ...close], asked, incomplete: undefined }),
  [
    ...(opening ? [{ _tag: "AbortOpen" } as const] : []),
    ...close.map((generation) => ({ _tag: "Close", generation, drain }) as const)
  ]
]

const activating = <G, F>(
  machine: Machine<G, F>,
  state: Extract<State<G, F>, { _tag: "Activating" }>,
  event: Event<G, F>
): Step<G, F> => {
  switch (event._tag) {
    case "TurnCame":
      return [to(machine, { ...state, queued: false }), []]
    case "Opened":
      return [to(machine, { _tag: "Ready", generation: event.generation, stale: none }), []]
    case "OpenFailed": {
      const { failure, jitter, kind, now } = event
      // An attempt that failed is followed by the next; who asked for it hears of the failure all the same.
      if (state.kind === "restart" && kind === "passing") {
        return afterLoss(machine, { failure, restart: true }, now, jitter)
      }
      return [to(machine, failedStart(failure, kind, state.kind === "restart")), []]
    }
    case "Stop":
      return stop(machine, event, true, [], [])
    default:
      return [machine, []]
  }
}

const ready = <G, F>(
  machine: Machine<G, F>,
  state: Extract<State<G, F>, { _tag: "Ready" }>,
  event: Event<G, F>
): Step<G, F> => {
  const { generation } = state
  switch (event._tag) {
    case "Ended":
      if (event.generation !== generation) return [machine, []]
      return [
        to(machine, { _tag: "Ending", generation, loss: event.loss, asked: "nobody" }),
        [{ _tag: "Close", generation, drain: false }]
      ]
    case "Refresh": {
      const begun = { ...blank<G, F>(event.exclusive ? "exclusive" : "overlap", true), stale: state.stale }
      return event.exclusive
        ? [to(machine, { ...begun, closing: [generation] }), [{ _tag: "Close", generation, drain: true }]]
        : [to(machine, { ...begun, opening: true, current: generation }), [{ _tag: "Open", kind: "refresh" }]]
    }
    case "Changed":
      // Said again it is no news: a storm of announcements changes nothing.
      if (state.stale.has(event.surface)) return [machine, []]
      return [to(machine, { ...state, stale: new Set([...state.stale, event.surface]) }), []]
    case "Relisted":
      if (!state.stale.has(event.surface)) return [machine, []]
      return [to(machine, { ...state, stale: without(state.stale, event.surface) }), []]
    case "Stop":
      return stop(machine, event, false, [], [generation])
    default:
      return [machine, []]
  }
}

const without = (stale: ReadonlySet<Surface>, surface: Surface): ReadonlySet<Surface> =>
  new Set([...stale].filter((one) => one !== surface))

const blank = <G, F>(plan: Refreshing<G, F>["plan"], wasReady: boolean): Refreshing<G, F> => ({
  _tag: "Refreshing",
  plan,
  opening: false,
  queued: true,
  current: undefined,
  closing: [],
  loss: undefined,
  failure: undefined,
  broken: false,
  wasReady,
  stale: none
})

const refreshFromNothing = <G, F>(machine: Machine<G, F>, wasReady: boolean): Step<G, F> => [
  to(machine, { ...blank<G, F>("overlap", wasReady), opening: true }),
  [{ _tag: "Open", kind: "refresh" }]
]

const refreshing = <G, F>(machine: Machine<G, F>, state: Refreshing<G, F>, event: Event<G, F>): Step<G, F> => {
  switch (event._tag) {
    case "TurnCame":
      return [to(machine, { ...state, queued: false }), []]
    case "Changed":
      if (state.stale.has(event.surface)) return [machine, []]
      return [to(machine, { ...state, stale: new Set([...state.stale, event.surface]) }), []]
    case "Opened": {
      const { generation } = event
      if (state.broken) {
        const closing = [...state.closing, generation]
        return [to(machine, { ...state, opening: false, closing }), [{ _tag: "Close", generation, drain: false }]]
      }
      const old = state.current
      const next: Refreshing<G, F> = {
        ...state,
        opening: false,
        current: generation,
        loss: undefined,
        stale: none,
        closing: old === undefined ? state.closing : [...state.closing, old]
      }
      return settle(machine, next, old === undefined ? [] : [{ _tag: "Close", generation: old, drain: true }])
    }
    case "OpenFailed": {
      const failure = { value: event.failure, kind: event.kind }
      const clean = event.kind === "passing" || event.kind === "final"
      if (state.plan === "exclusive" && clean && !state.broken) {
        const restoring = { ...state, plan: "restore", queued: true, failure } as const
        return [to(machine, restoring), [{ _tag: "Open", kind: "restore" }]]
      }
      return settle(machine, { ...state, opening: false, failure: state.failure ?? failure }, [], event)
    }
    case "Ended": {
      const { generation, loss } = event
      if (generation !== state.current) return [machine, []]
      const next = { ...state, current: undefined, loss, closing: [...state.closing, generation] }
      return [to(machine, next), [{ _tag: "Close", generation, drain: false }]]
    }
    case "Closed":
      return retired(machine, state, event)
    case "Stop": {
      const close = state.current === undefined ? [] : [state.current]
      return stop(machine, event, state.opening, state.closing, close)
    }
    default:
      return [machine, []]
  }
}

/** A retirement is over. One that could not be confirmed takes the replacement with it: fail closed (R 5.8). */
const retired = <G, F>(
  machine: Machine<G, F>,
  state: Refreshing<G, F>,
  event: Extract<Event<G, F>, { _tag: "Closed" }>
): Step<G, F> => {
  const closing = state.closing.filter((one) => one !== event.generation)
  if (event.incomplete !== undefined) {
    const { current } = state
    const broken: Refreshing<G, F> = {
      ...state,
      current: undefined,
      closing: current === undefined ? closing : [...closing, current],
      loss: undefined,
      failure: { value: event.incomplete, kind: "final" },
      broken: true
    }
    return settle(
      machine,
      broken,
      [
        ...(state.opening ? [{ _tag: "AbortOpen" } as const] : []),
        ...(current === undefined ? [] : [{ _tag: "Close", generation: current, drain: false } as const])
      ],
      event
    )
  }
  const opens = state.plan === "exclusive" && !state.opening && state.current === undefined
  if (opens && state.loss === undefined && state.failure === undefined) {
    return [to(machine, { ...state, closing, opening: true }), [{ _tag: "Open", kind: "refresh" }]]
  }
  return settle(machine, { ...state, closing }, [], event)
}

/** Ends a refresh when nothing of it is under way any more. */
const settle = <G, F>(
  machine: Machine<G, F>,
  state: Refreshing<G, F>,
  commands: ReadonlyArray<Command<G, F>>,
  at?: { readonly now: number; readonly jitter: number }
): Step<G, F> => {
  if (state.opening || state.closing.length > 0) return [to(machine, state), commands]
  const { current, failure, loss, stale } = state
  const done: Command<G, F> = { _tag: "RefreshDone", failure: failure?.value ?? loss?.failure }
  if (current !== undefined) {
    return [to(machine, { _tag: "Ready", generation: current, stale }), [...commands, done]]
  }
  if (loss !== undefined && !state.broken && at !== undefined) {
    const [next, more] = afterLoss(machine, loss, at.now, at.jitter)
    return [next, [...commands, done, ...more]]
  }
  if (failure === undefined) return [to(machine, deferred), [...commands, done]]
  return [to(machine, failedStart(failure.value, failure.kind, state.wasReady)), [...commands, done]]
}

const ending = <G, F>(
  machine: Machine<G, F>,
  state: Extract<State<G, F>, { _tag: "Ending" }>,
  event: Event<G, F>
): Step<G, F> => {
  switch (event._tag) {
    case "Ask":
      if (event.explicit) return [to(machine, { ...state, asked: "explicit" }), []]
      return state.asked === "nobody" ? [to(machine, { ...state, asked: "call" }), []] : [machine, []]
    case "Refresh":
      return [to(machine, { ...state, asked: "explicit" }), []]
    case "Closed": {
      const { incomplete, jitter, now } = event
      if (incomplete !== undefined) {
        return [to(machine, { _tag: "Failed", failure: incomplete, wasReady: true, exhausted: false }), []]
      }
      if (state.asked === "explicit") return open(machine, "asked")
      const step = afterLoss(machine, state.loss, now, jitter)
      return state.asked === "call" && step[0].state._tag === "Restarting" ? attempt(machine, now) : step
    }
    case "Stop":
      return stop(machine, event, false, [state.generation], [])
    default:
      return [machine, []]
  }
}

const stopping = <G, F>(
  machine: Machine<G, F>,
  state: Extract<State<G, F>, { _tag: "Stopping" }>,
  event: Event<G, F>
): Step<G, F> => {
  const rest = (
    next: Extract<State<G, F>, { _tag: "Stopping" }>,
    commands: ReadonlyArray<Command<G, F>>
  ): Step<G, F> => {
    if (next.opening || next.closing.length > 0) return [to(machine, next), commands]
    if (next.incomplete !== undefined) {
      const failed = { _tag: "Failed", failure: next.incomplete, wasReady: true, exhausted: false } as const
      return [to(machine, failed), commands]
    }
    if (!next.asked) return [to(machine, deferred), commands]
    const [machineNext, more] = open(machine, "asked")
    return [machineNext, [...commands, ...more]]
  }
  switch (event._tag) {
    case "Ask":
    case "Refresh":
      return [to(machine, { ...state, asked: true }), []]
    case "Opened": {
      const { generation } = event
      const next = { ...state, opening: false, closing: [...state.closing, generation] }
      return rest(next, [{ _tag: "Close", generation, drain: false }])
    }
    case "OpenFailed":
      return rest({ ...state, opening: false }, [])
    case "Closed":
      return rest(
        {
          ...state,
          closing: state.closing.filter((one) => one !== event.generation),
          incomplete: state.incomplete ?? event.incomplete
        },
        []
      )
    case "Stop":
      return [to(machine, { ...state, asked: event.again ?? false }), []]
    default:
      return [machine, []]
  }
}

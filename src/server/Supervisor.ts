/**
 * Drives the state machine of one server: carries out its commands, tells it what happened, answers who waits.
 *
 * The supervisor owns every start: a caller that is interrupted only stops waiting, and a start that nobody waits
 * for any more is given up. Events are taken one at a time and never wait; what takes time runs in fibers of its own
 * and comes back as an event. Rules of the states: `ServerState.ts`.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Duration from "effect/Duration"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import { SECOND_MS } from "../base/Units.ts"
import type { Entry } from "../config/ServerDeclaration.ts"
import type { CleanupReport } from "../platform/CleanupReport.ts"
import type { Wire } from "../transport/Transport.ts"
import type * as Generation from "./Generation.ts"
import * as Relisting from "./Relisting.ts"
import { type ActivationError, incompleteCleanup, kindOf, leftBehind, stopped, unexpected } from "./StartFailure.ts"
import * as ServerState from "./ServerState.ts"
import { type ServerStatus, shownFailure, statusOf } from "./ServerStatus.ts"
import { downFor } from "./TerminalCause.ts"
import * as RestartPolicy from "./RestartPolicy.ts"

/** How long calls in flight on a generation that is replaced may go on. */
export const DRAIN_MS = 5 * SECOND_MS

/** How a server's last generation ended. */
export interface ServerCleanup {
  readonly server: string
  readonly report: CleanupReport
}

/** What whoever wants a server may add. */
export interface AskOptions {
  /** Sees the wire of the start that this causes or joins. */
  readonly onOpen?: Generation.OnOpen
  /** Somebody said yes to the network ask of this start. */
  readonly networkApproved?: boolean
  /** The start is to find out what to pin: pins are not compared. */
  readonly observePin?: boolean
}

/** One server under supervision. */
export interface Supervisor {
  /** The live generation; `undefined` when there is none. Costs nothing. */
  readonly live: () => Generation.Generation | undefined
  /** Makes it run, whatever it did before. Strict: any failure of the start is an error. */
  readonly activate: (options?: AskOptions) => Effect.Effect<Generation.Generation, ActivationError>
  /** The generation for a call: as `activate`, but a server that is down for good stays down and says why. */
  readonly acquire: (options?: AskOptions) => Effect.Effect<Generation.Generation, ActivationError>
  /** Replaces the live generation; succeeds when the old one is gone. */
  readonly refresh: (options?: AskOptions) => Effect.Effect<Generation.Generation, ActivationError>
  /** Ends everything of this server; it may be asked for again. */
  readonly stop: Effect.Effect<void>
  /**
   * Its entry is another one, or gone: ends what runs once its calls are done, and forgets earlier failures. Whoever
   * waits for a start gets one by the new entry (`again`), or hears that it was stopped. Begins at once, in the caller's
   * own step, and gives what waits for the end; starts nothing that nobody waits for.
   */
  readonly retire: (again: boolean) => Effect.Effect<Effect.Effect<void>>
  /** Ends everything for good. */
  readonly dispose: Effect.Effect<void>
  /** Reads changed lists again now; the old ones stay where that fails. */
  readonly settleLists: Effect.Effect<void>
  /** Something may be possible that was not before: no run is open any more. */
  readonly onIdle: () => void
  readonly status: () => ServerStatus
  /** The cleanups since they were last taken. */
  readonly takeCleanups: () => ReadonlyArray<ServerCleanup>
  /** The same, and they stay. */
  readonly peekCleanups: () => ReadonlyArray<ServerCleanup>
}

/** What a supervisor uses of its surroundings. */
export interface Surroundings {
  /** What goes on by itself runs here: without the span of whoever happened to ask first. */
  readonly runtime: Runtime.Runtime<never>
  /** One start: admission, the wait for its turn (`onTurn` when it came), the generation in the current scope. */
  readonly start: (
    name: string,
    options: {
      readonly networkApproved: boolean
      readonly observePin: boolean
      readonly onTurn: () => void
    } & Generation.OpenOptions
  ) => Effect.Effect<Generation.Generation, ActivationError, Scope.Scope>
  /** Its entry now; `undefined` when nothing declares it any more. */
  readonly entryOf: (name: string) => Entry | undefined
  /** From 0 to 1. */
  readonly jitter: () => number
  /** Whether no run is open. */
  readonly isIdle: () => boolean
  /** Called after every change of state. */
  readonly onChange: (name: string) => void
}

/** A generation with the scope that owns it. */
interface Held {
  readonly generation: Generation.Generation
  readonly scope: Scope.CloseableScope
}

interface Waiter {
  readonly explicit: boolean
  /** Waits for the end of a refresh, not for a running server. */
  refresh: boolean
  readonly resume: (outcome: Effect.Effect<Generation.Generation, ActivationError>) => void
}

type Event = ServerState.Event<Held, ActivationError>
type Command = ServerState.Command<Held, ActivationError>

/** A supervisor. Whoever makes it has to `dispose` of it: until then its fibers and generations live on. */
export const make = (name: string, around: Surroundings): Effect.Effect<Supervisor> =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const own = around.runtime
    const declaration = () => {
      const entry = around.entryOf(name)
      return entry?._tag === "Valid" ? entry.declaration : undefined
    }
    let machine = ServerState.initial<Held, ActivationError>(declaration()?.restart === "on_failure")
    const inbox: Array<Event> = []
    let taking = false
    const waiters = new Set<Waiter>()
    const observers = new Set<Generation.OnOpen>()
    let stopWaiters: Array<() => void> = []
    let cleanups: Array<ServerCleanup> = []
    /** Whose context the next start runs in: its span is the parent, its tracer listens. */
    let asker: Runtime.Runtime<never> | undefined
    let networkApproved = false
    let observePin = false
    let opening: Fiber.RuntimeFiber<void> | undefined
    let wire: Wire | undefined

    const now = (): number => clock.unsafeCurrentTimeMillis()
    /** Everything under way; none of it outlives `dispose`. */
    const fibers = new Set<Fiber.RuntimeFiber<void>>()
    let disposed = false
    const fork = (effect: Effect.Effect<void>, runtime = own): Fiber.RuntimeFiber<void> => {
      const fiber = Runtime.runFork(runtime)(Effect.interruptible(effect))
      fibers.add(fiber)
      fiber.addObserver(() => fibers.delete(fiber))
      return fiber
    }

    // Events

    const post = (event: Event): void => {
      inbox.push(event)
      if (taking) return
      taking = true
      for (let next = inbox.shift(); next !== undefined; next = inbox.shift()) {
        const before = machine.state
        const [after, commands] = ServerState.transition(machine, next)
        machine = after
        if (next._tag === "OpenFailed" && before._tag === "Activating") answerAll(Effect.fail(next.failure), false)
        if (next._tag === "Stop" && next.again !== true) answerAll(Effect.fail(stopped(name)), true)
        for (const command of commands) execute(command)
        answerSettled()
        if (machine.state._tag !== "Stopping") {
          const waiting = stopWaiters
          stopWaiters = []
          for (const resume of waiting) resume()
        }
        if (machine.state !== before) around.onChange(name)
      }
      taking = false
      lists.poke()
    }

    const execute = (command: Command): void => {
      switch (command._tag) {
        case "Open":
          opening = fork(open(command.kind), asker)
          asker = undefined
          return
        case "AbortOpen":
          if (opening !== undefined) fork(Fiber.interruptFork(opening))
          return
        case "Close":
          fork(Effect.uninterruptible(close(command.generation, command.drain)))
          return
        case "Wake": {
          const { at } = command
          const due = Effect.sync(() => {
            const { state } = machine
            if (state._tag === "Restarting" && state.dueAt === at) post({ _tag: "Due", now: now() })
          })
          fork(Effect.zipRight(clock.sleep(Duration.millis(Math.max(0, at - now()))), due))
          return
        }
        case "RefreshDone":
          for (const waiter of waiters) if (waiter.refresh) answer(waiter, refreshed(command.failure))
      }
    }

    // Commands

    const open = (kind: ServerState.OpenKind): Effect.Effect<void> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const approved = networkApproved
          networkApproved = false
          const observing = observePin
          observePin = false
          const exit = yield* around
            .start(name, {
              kind,
              networkApproved: approved,
              observePin: observing,
              onTurn: () => post({ _tag: "TurnCame" }),
              onOpen: (opened) => {
                wire = opened
                for (const observer of observers) observer(opened)
              }
            })
            .pipe(Scope.extend(scope), restore, Effect.exit)
          observers.clear()
          wire = undefined
          if (Exit.isSuccess(exit)) {
            const held = { generation: exit.value, scope }
            watch(held)
            return post({ _tag: "Opened", generation: held })
          }
          yield* Scope.close(scope, exit)
          const failure = Option.getOrElse(Cause.failureOption(exit.cause), () =>
            Cause.isInterruptedOnly(exit.cause) ? stopped(name) : unexpected(name, exit.cause)
          )
          const left = leftBehind(failure)
          if (left !== undefined) cleanups.push({ server: name, report: left })
          post({ _tag: "OpenFailed", failure, kind: kindOf(failure), now: now(), jitter: around.jitter() })
        })
      )

    /** Everything that a live generation tells by itself. */
    const watch = (held: Held): void => {
      const { connection, notices } = held.generation
      fork(Effect.asVoid(Effect.map(Deferred.await(connection.ended), () => lost(held))))
      notices.listen((notice) => {
        if (notice._tag !== "ListChanged" || !held.generation.lists.concerns(notice.surface)) return
        if (ServerState.answering(machine.state) !== held) return
        lists.changed(notice.surface)
        post({ _tag: "Changed", surface: notice.surface })
      })
    }
    const lost = (held: Held): void => {
      const terminal = held.generation.connection.terminal()
      if (terminal === undefined) return
      const restart = RestartPolicy.mayRestartAfter(terminal.end.reason)
      post({ _tag: "Ended", generation: held, loss: { failure: downFor(name, terminal), restart } })
    }

    const close = (held: Held, drain: boolean): Effect.Effect<void> =>
      Effect.gen(function* () {
        const { generation, scope } = held
        if (drain) {
          yield* Effect.interruptible(Effect.timeoutOption(whenIdle(generation, retire), DRAIN_MS))
          retire(generation)
        }
        yield* Scope.close(scope, Exit.void)
        const report = yield* Deferred.await(generation.cleanup)
        cleanups.push({ server: name, report })
        const incomplete = report.complete ? undefined : incompleteCleanup(name, report)
        post({ _tag: "Closed", generation: held, incomplete, now: now(), jitter: around.jitter() })
      })

    // Who waits

    const answer = (waiter: Waiter, outcome: Effect.Effect<Generation.Generation, ActivationError>): void => {
      waiters.delete(waiter)
      waiter.resume(outcome)
    }
    const answerAll = (outcome: Effect.Effect<never, ActivationError>, refreshes: boolean): void => {
      for (const waiter of waiters) if (refreshes || !waiter.refresh) answer(waiter, outcome)
    }
    const refreshed = (failure: ActivationError | undefined) => {
      const live = liveNow()
      if (failure !== undefined) return Effect.fail(failure)
      return live === undefined ? Effect.fail(stopped(name)) : Effect.succeed(live)
    }
    const answerSettled = (): void => {
      if (waiters.size === 0) return
      for (const waiter of waiters) {
        const outcome = waiter.refresh ? undefined : outcomeFor(waiter)
        if (outcome !== undefined) answer(waiter, outcome)
      }
    }
    /** What a waiter learns from the present state; `undefined` while it has to wait. */
    const outcomeFor = (waiter: Waiter): Effect.Effect<Generation.Generation, ActivationError> | undefined => {
      const { state } = machine
      const live = liveNow()
      if (live !== undefined) return Effect.succeed(live)
      switch (state._tag) {
        case "Failed":
          return Effect.fail(shownFailure(name, state))
        case "Barred":
          return Effect.fail(state.failure)
        case "Ending":
          // Nothing will come of waiting when no restart is allowed.
          return waiter.explicit || (state.loss.restart && machine.restarts)
            ? undefined
            : Effect.fail(state.loss.failure)
        default:
          return undefined
      }
    }
    const liveNow = (): Generation.Generation | undefined => {
      const { state } = machine
      const current =
        state._tag === "Ready" ? state.generation : state._tag === "Refreshing" ? state.current : undefined
      return current === undefined || current.generation.connection.terminal() !== undefined
        ? undefined
        : current.generation
    }
    /** The watcher of a generation tells of its end a moment later; whoever comes first must not meet a dead one. */
    const noticeLoss = (): void => {
      const current = ServerState.answering(machine.state)
      if (current !== undefined) lost(current)
    }
    const wait = (
      event: Event,
      explicit: boolean,
      options: AskOptions
    ): Effect.Effect<Generation.Generation, ActivationError> =>
      Effect.flatMap(Effect.runtime<never>(), (runtime) =>
        Effect.async((resume) => {
          const waiter: Waiter = { explicit, refresh: false, resume }
          noticeLoss()
          if (options.onOpen !== undefined) {
            if (wire !== undefined) options.onOpen(wire)
            else observers.add(options.onOpen)
          }
          asker = runtime
          networkApproved ||= options.networkApproved ?? false
          observePin ||= options.observePin ?? false
          waiters.add(waiter)
          // Decided before the event: what it sets going may be over before it returns.
          waiter.refresh = event._tag === "Refresh" && refreshStarts(machine.state._tag)
          post(event)
          asker = undefined
          return Effect.sync(() => {
            if (!waiters.delete(waiter)) return
            const { state } = machine
            // Nobody wants this start any more.
            if (waiters.size === 0 && state._tag === "Activating" && state.kind === "asked") post({ _tag: "Stop" })
          })
        })
      )

    const whenStopped: Effect.Effect<void> = Effect.async((resume) => {
      if (machine.state._tag !== "Stopping") return resume(Effect.void)
      stopWaiters.push(() => resume(Effect.void))
    })
    const stop = Effect.suspend(() => {
      post({ _tag: "Stop" })
      return whenStopped
    })
    const retireAll = (again: boolean): Effect.Effect<Effect.Effect<void>> =>
      Effect.sync(() => {
        machine = { ...machine, restarts: declaration()?.restart === "on_failure", attempts: [] }
        // A refresh that is given up is followed by a start, which is as good to whoever waits for it.
        if (again) for (const waiter of waiters) waiter.refresh = false
        post({ _tag: "Stop", drain: true, again: again && waiters.size > 0 })
        return whenStopped
      })

    const lists = Relisting.make({
      clock,
      fork,
      isIdle: around.isIdle,
      stale: () => {
        const { state } = machine
        return state._tag === "Ready" ? { generation: state.generation.generation, surfaces: state.stale } : undefined
      },
      done: (generation, surface) => {
        const { state } = machine
        if (state._tag !== "Ready" || state.generation.generation !== generation) return
        post({ _tag: "Relisted", surface })
      }
    })

    const dispose = Effect.suspend(() => {
      disposed = true
      return Effect.zipRight(
        stop,
        Effect.suspend(() => Fiber.interruptAll([...fibers]))
      )
    })

    const wanted =
      (explicit: boolean) =>
      (options: AskOptions = {}) =>
        Effect.suspend(() => {
          const live = liveNow()
          if (disposed) return Effect.fail(stopped(name))
          return live === undefined
            ? wait({ _tag: "Ask", explicit, now: now() }, explicit, options)
            : Effect.succeed(live)
        })

    return {
      live: liveNow,
      activate: wanted(true),
      acquire: wanted(false),
      refresh: (options = {}) =>
        Effect.suspend(() =>
          disposed
            ? Effect.fail(stopped(name))
            : wait({ _tag: "Refresh", exclusive: declaration()?.refresh === "exclusive" }, true, options)
        ),
      stop,
      retire: retireAll,
      dispose,
      settleLists: lists.settle,
      onIdle: lists.poke,
      status: () => {
        noticeLoss()
        return statusOf(name, machine.state, liveNow())
      },
      peekCleanups: () => cleanups,
      takeCleanups: () => {
        const taken = cleanups
        cleanups = []
        return taken
      }
    }
  })

const retire = ({ connection }: Generation.Generation): void =>
  connection.end({ reason: "retired", text: "The server was refreshed meanwhile." })

/** Acts in the very moment in which no request is open, so that none can slip in between. */
const whenIdle = (
  generation: Generation.Generation,
  act: (generation: Generation.Generation) => void
): Effect.Effect<void> =>
  Effect.flatMap(generation.connection.idle, () => {
    if (generation.connection.openRequests() > 0) return whenIdle(generation, act)
    act(generation)
    return Effect.void
  })

/** The states in which asking for a refresh starts or joins one; in the others the start under way is as good. */
const refreshStarts = (tag: ServerState.State<unknown, unknown>["_tag"]): boolean =>
  tag !== "Activating" && tag !== "Ending" && tag !== "Stopping"

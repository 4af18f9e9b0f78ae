/** The state machine of a server under random orders of events: what holds whatever happens when. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as RestartPolicy from "../../src/server/RestartPolicy.ts"
import * as ServerState from "../../src/server/ServerState.ts"

type Machine = ServerState.Machine<number, string>
type Event = ServerState.Event<number, string>

/** Carries out commands as a supervisor would, but only when it is told to, and checks each of them. */
class World {
  machine: Machine
  now = 0
  nextGeneration = 1
  opening = false
  aborted = false
  readonly running = new Set<number>()
  readonly ended = new Set<number>()
  readonly closing = new Set<number>()
  readonly closed = new Set<number>()
  due: number | undefined
  incomplete = false
  refreshesOpen = 0

  constructor(restarts: boolean) {
    this.machine = ServerState.initial(restarts)
  }

  tag(): string {
    return this.machine.state._tag
  }

  post(event: Event): void {
    const before = this.machine.state
    const [after, commands] = ServerState.transition(this.machine, event)
    this.machine = after
    for (const command of commands) {
      switch (command._tag) {
        case "Open": {
          assert.isFalse(this.opening, "one start at a time")
          const { state } = after
          const overlap = state._tag === "Refreshing" && state.plan === "overlap"
          assert.isTrue(this.running.size === 0 || overlap, "nothing is started beside what still runs")
          this.opening = true
          this.aborted = false
          break
        }
        case "AbortOpen":
          assert.isTrue(this.opening)
          this.aborted = true
          break
        case "Close":
          assert.isTrue(this.running.has(command.generation), "only what runs is closed")
          assert.isFalse(this.closing.has(command.generation), "and only once")
          this.closing.add(command.generation)
          break
        case "Wake":
          assert.isAtLeast(command.at, this.now)
          this.due = command.at
          break
        case "RefreshDone":
          assert.equal(before._tag, "Refreshing")
      }
    }
    this.check()
  }

  check(): void {
    const { state } = this.machine
    const answering = ServerState.answering(state)
    if (answering !== undefined) {
      assert.isTrue(this.running.has(answering), "what answers runs")
      assert.isFalse(this.closing.has(answering), "and is not on its way out")
    }
    assert.isAtMost(this.running.size, 2)
    if (["Deferred", "Failed", "Barred", "Restarting"].includes(state._tag)) {
      assert.equal(this.running.size, 0, `nothing runs in ${state._tag}`)
      assert.isFalse(this.opening)
    }
    if (state._tag === "Ready") assert.deepEqual([...this.running], [state.generation])
    assert.isAtMost(this.machine.attempts.length, RestartPolicy.MAX_ATTEMPTS)
  }

  opened(): void {
    if (!this.opening) return
    this.opening = false
    const generation = this.nextGeneration++
    this.running.add(generation)
    this.post({ _tag: "Opened", generation })
  }
  openFailed(kind: ServerState.FailureKind): void {
    if (!this.opening) return
    this.opening = false
    this.post({ _tag: "OpenFailed", failure: "start", kind, now: this.now, jitter: 0.5 })
  }
  end(pick: number, restart: boolean): void {
    const candidates = [...this.running].filter((one) => !this.ended.has(one))
    const generation = candidates[pick % Math.max(1, candidates.length)]
    if (generation === undefined) return
    this.ended.add(generation)
    this.post({ _tag: "Ended", generation, loss: { failure: "ended", restart } })
  }
  close(pick: number, complete: boolean): void {
    const candidates = [...this.closing]
    const generation = candidates[pick % Math.max(1, candidates.length)]
    if (generation === undefined) return
    this.closing.delete(generation)
    this.running.delete(generation)
    this.closed.add(generation)
    if (!complete) this.incomplete = true
    this.post({
      _tag: "Closed",
      generation,
      incomplete: complete ? undefined : "left behind",
      now: this.now,
      jitter: 0.5
    })
  }
  pass(ms: number): void {
    this.now += ms
    if (this.due !== undefined && this.due <= this.now) {
      this.due = undefined
      if (this.machine.state._tag === "Restarting") this.post({ _tag: "Due", now: this.now })
    }
  }
  /** Lets everything under way end well. */
  settle(): void {
    for (let turn = 0; turn < 20 && (this.opening || this.closing.size > 0); turn += 1) {
      if (this.closing.size > 0) this.close(0, true)
      else this.opened()
    }
    assert.isFalse(this.opening || this.closing.size > 0, "it comes to rest")
  }
}

type Move = (world: World) => void
const move: fc.Arbitrary<readonly [string, Move]> = fc.oneof(
  fc
    .boolean()
    .map((explicit): readonly [string, Move] => [
      explicit ? "activate" : "call",
      (world) => world.post({ _tag: "Ask", explicit, now: world.now })
    ]),
  fc.constant<readonly [string, Move]>(["turn", (world) => world.opening && world.post({ _tag: "TurnCame" })]),
  fc.constant<readonly [string, Move]>(["opened", (world) => world.opened()]),
  fc
    .constantFrom<ServerState.FailureKind>("passing", "final", "unclean", "pending", "disabled", "needs_auth")
    .map((kind): readonly [string, Move] => [`start fails: ${kind}`, (world) => world.openFailed(kind)]),
  fc
    .tuple(fc.nat(3), fc.boolean())
    .map(([pick, restart]): readonly [string, Move] => [`ends ${restart}`, (world) => world.end(pick, restart)]),
  fc
    .tuple(fc.nat(3), fc.integer({ min: 0, max: 9 }))
    .map(([pick, luck]): readonly [string, Move] => [
      luck === 0 ? "left behind" : "closed",
      (world) => world.close(pick, luck !== 0)
    ]),
  fc
    .boolean()
    .map((exclusive): readonly [string, Move] => [
      exclusive ? "refresh exclusive" : "refresh",
      (world) => world.post({ _tag: "Refresh", exclusive })
    ]),
  fc
    .constantFrom<ServerState.Surface>("tools", "resources", "prompts")
    .map((surface): readonly [string, Move] => [
      `${surface} change`,
      (world) => world.post({ _tag: "Changed", surface })
    ]),
  fc
    .constantFrom<ServerState.Surface>("tools", "resources", "prompts")
    .map((surface): readonly [string, Move] => [
      `${surface} read`,
      (world) => world.post({ _tag: "Relisted", surface })
    ]),
  fc
    .integer({ min: 1, max: 60_000 })
    .map((ms): readonly [string, Move] => [`${ms} ms pass`, (world) => world.pass(ms)]),
  fc
    .boolean()
    .map((again): readonly [string, Move] => [
      again ? "replaced" : "withdrawn",
      (world) => world.post({ _tag: "Stop", drain: true, again })
    ]),
  fc.constant<readonly [string, Move]>(["stop", (world) => world.post({ _tag: "Stop" })])
)

const moves = fc.array(move, { maxLength: 60 })

describe("the state machine of a server", () => {
  it("never runs two but in an overlap, closes each generation once, and answers only with a live one", () => {
    fc.assert(
      fc.property(fc.boolean(), moves, (restarts, list) => {
        const world = new World(restarts)
        for (const [, act] of list) act(world)
      }),
      { numRuns: 3_000 }
    )
  })

  it("starts once more after it was replaced, exactly when somebody waits", () => {
    fc.assert(
      fc.property(fc.boolean(), moves, fc.boolean(), (restarts, list, again) => {
        const world = new World(restarts)
        for (const [, act] of list) act(world)
        world.post({ _tag: "Stop", drain: true, again })
        // Nothing was under way that could be waited for.
        if (world.tag() !== "Stopping") return
        const before = world.nextGeneration
        if (world.opening) world.openFailed("final")
        world.settle()
        assert.include(["Deferred", "Failed", "Ready"], world.tag())
        if (world.tag() !== "Failed") assert.equal(world.nextGeneration - before, again ? 1 : 0)
        assert.equal(world.running.size, world.tag() === "Ready" ? 1 : 0)
      }),
      { numRuns: 1_000 }
    )
  })

  it("comes to rest with nothing running after a stop, wherever it was", () => {
    fc.assert(
      fc.property(fc.boolean(), moves, (restarts, list) => {
        const world = new World(restarts)
        for (const [, act] of list) act(world)
        world.post({ _tag: "Stop" })
        world.settle()
        assert.include(["Deferred", "Failed"], world.machine.state._tag)
        assert.equal(world.running.size, 0)
        assert.equal(world.closed.size, world.nextGeneration - 1, "every generation was closed")
      }),
      { numRuns: 2_000 }
    )
  })

  it("is ready again after whatever happened, when it is asked for and everything goes well", () => {
    fc.assert(
      fc.property(fc.boolean(), moves, (restarts, list) => {
        const world = new World(restarts)
        for (const [, act] of list) act(world)
        world.settle()
        world.post({ _tag: "Ask", explicit: true, now: world.now })
        world.settle()
        assert.equal(world.machine.state._tag, "Ready")
      }),
      { numRuns: 2_000 }
    )
  })

  it("starts nothing beside processes that could not be confirmed gone, until it is asked to", () => {
    const world = new World(true)
    world.post({ _tag: "Ask", explicit: false, now: 0 })
    world.opened()
    world.end(0, true)
    world.close(0, false)
    assert.deepInclude(world.machine.state, { _tag: "Failed", failure: "left behind" })
    world.post({ _tag: "Ask", explicit: false, now: 1 })
    assert.equal(world.machine.state._tag, "Failed")
    world.post({ _tag: "Ask", explicit: true, now: 1 })
    assert.equal(world.machine.state._tag, "Activating")
  })

  it("takes the replacement back when the old generation cannot be confirmed gone", () => {
    const world = new World(true)
    world.post({ _tag: "Ask", explicit: true, now: 0 })
    world.opened()
    world.post({ _tag: "Refresh", exclusive: false })
    world.opened()
    assert.equal(ServerState.answering(world.machine.state), 2)
    world.close(0, false)
    assert.isUndefined(ServerState.answering(world.machine.state))
    world.close(0, true)
    assert.deepInclude(world.machine.state, { _tag: "Failed", failure: "left behind" })
  })

  it("goes back to the old one by a second start when an exclusive refresh fails", () => {
    const world = new World(true)
    world.post({ _tag: "Ask", explicit: true, now: 0 })
    world.opened()
    world.post({ _tag: "Refresh", exclusive: true })
    assert.isUndefined(ServerState.answering(world.machine.state))
    world.close(0, true)
    world.openFailed("passing")
    assert.isTrue(world.opening)
    world.opened()
    assert.deepInclude(world.machine.state, { _tag: "Ready", generation: 2 })
  })

  it("brings the old one back whatever was wrong with the new one, but never beside something left behind", () => {
    for (const kind of ["final", "unclean"] as const) {
      const world = new World(true)
      world.post({ _tag: "Ask", explicit: true, now: 0 })
      world.opened()
      world.post({ _tag: "Refresh", exclusive: true })
      world.close(0, true)
      world.openFailed(kind)
      assert.equal(world.opening, kind === "final")
    }
  })

  it("takes no second announcement of one change for news", () => {
    const world = new World(true)
    world.post({ _tag: "Ask", explicit: true, now: 0 })
    world.opened()
    world.post({ _tag: "Changed", surface: "tools" })
    const { state } = world.machine
    world.post({ _tag: "Changed", surface: "tools" })
    assert.strictEqual(world.machine.state, state)
  })

  it("counts the attempts of five minutes and then leaves the server alone", () => {
    const world = new World(true)
    world.post({ _tag: "Ask", explicit: true, now: 0 })
    world.opened()
    world.end(0, true)
    world.close(0, true)
    const waits: Array<number> = []
    for (let turn = 0; world.machine.state._tag === "Restarting" && turn < 10; turn += 1) {
      const wait = (world.due ?? 0) - world.now
      waits.push(wait)
      world.pass(wait)
      world.openFailed("passing")
    }
    assert.deepEqual(waits, [250, 500, 1_000, 2_000, 4_000])
    assert.deepInclude(world.machine.state, { _tag: "Failed", exhausted: true })
    // Once the window is over a crash after an explicit start may be mended again.
    world.pass(RestartPolicy.WINDOW_MS)
    world.post({ _tag: "Ask", explicit: true, now: world.now })
    world.opened()
    world.end(0, true)
    world.close(0, true)
    assert.equal(world.machine.state._tag, "Restarting")
  })

  it("hurries a restart for a call, once, and does not start again what ended for good", () => {
    const world = new World(true)
    world.post({ _tag: "Ask", explicit: true, now: 0 })
    world.opened()
    world.end(0, true)
    world.close(0, true)
    world.post({ _tag: "Ask", explicit: false, now: 1 })
    assert.deepInclude(world.machine.state, { _tag: "Activating", kind: "restart" })
    world.opened()
    world.end(0, false)
    world.close(0, true)
    assert.deepInclude(world.machine.state, { _tag: "Failed", wasReady: true })
    world.post({ _tag: "Ask", explicit: false, now: 2 })
    assert.equal(world.machine.state._tag, "Failed")
  })
})

describe("the wait before a restart", () => {
  it("grows, is spread by a fifth, and has a limit", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 299_999 }), { maxLength: 6 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (attempts, jitter) => {
          const delay = RestartPolicy.delayBefore(attempts, 299_999, jitter)
          if (attempts.length >= RestartPolicy.MAX_ATTEMPTS) return assert.isUndefined(delay)
          const plain = Math.min(RestartPolicy.MAX_DELAY_MS, RestartPolicy.FIRST_DELAY_MS * 2 ** attempts.length)
          assert.isAtLeast(delay ?? 0, Math.floor(plain * 0.8))
          assert.isAtMost(delay ?? Infinity, Math.ceil(plain * 1.2))
        }
      )
    )
  })
})

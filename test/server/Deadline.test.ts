import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as Deadline from "../../src/server/Deadline.ts"

const never = (reasons: Array<string>) => () => (reason: string) => {
  reasons.push(reason)
}

describe("Deadline", () => {
  it.scoped("fires at the deadline, not before, and abandons the operation once", () =>
    Effect.gen(function* () {
      const deadlines = yield* Deadline.make
      const reasons: Array<string> = []
      const fiber = yield* Effect.fork(Effect.flip(Deadline.within(deadlines, 1_000, () => "late", never(reasons))))
      yield* TestClock.adjust(999)
      assert.deepEqual(reasons, [])
      yield* TestClock.adjust(1)
      assert.equal(yield* Fiber.join(fiber), "late")
      assert.deepEqual(reasons, ["timeout"])
      yield* TestClock.adjust(10_000)
      assert.deepEqual(reasons, ["timeout"])
    })
  )

  it.scoped("lets an earlier deadline overtake one that is already watched", () =>
    Effect.gen(function* () {
      const deadlines = yield* Deadline.make
      const order: Array<string> = []
      yield* Effect.fork(Deadline.within(deadlines, 60_000, () => order.push("late"), never([])))
      yield* TestClock.adjust(1)
      yield* Effect.fork(Deadline.within(deadlines, 10, () => order.push("early"), never([])))
      yield* TestClock.adjust(10)
      assert.deepEqual(order, ["early"])
      yield* TestClock.adjust(60_000)
      assert.deepEqual(order, ["early", "late"])
    })
  )

  it.scoped("watches again after a time without work", () =>
    Effect.gen(function* () {
      const deadlines = yield* Deadline.make
      const first = yield* Deadline.within<string, string>(
        deadlines,
        100,
        () => "late",
        (settle) => {
          settle(Effect.succeed("answer"))
          return () => assert.fail("an answered operation was abandoned")
        }
      )
      assert.equal(first, "answer")
      yield* TestClock.adjust(1_000)
      const fiber = yield* Effect.fork(Effect.flip(Deadline.within(deadlines, 50, () => "late", never([]))))
      yield* TestClock.adjust(50)
      assert.equal(yield* Fiber.join(fiber), "late")
    })
  )

  it.scoped("abandons with its own reason when it is interrupted", () =>
    Effect.gen(function* () {
      const deadlines = yield* Deadline.make
      const reasons: Array<string> = []
      const fiber = yield* Effect.fork(Deadline.within(deadlines, 1_000, () => "late", never(reasons)))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(fiber)
      assert.deepEqual(reasons, ["interrupted"])
      yield* TestClock.adjust(5_000)
      assert.deepEqual(reasons, ["interrupted"])
    })
  )
})

import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Proc from "../../src/platform/Proc.ts"

const line = (pid: number, name: string, state: string, numbers: ReadonlyArray<number>): string =>
  `${pid} (${name}) ${state} ${numbers.join(" ")}\n`

describe("parseStat", () => {
  it("reads any name, parentheses, spaces and line ends included", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4_194_304 }),
        fc.string({ maxLength: 15, unit: fc.constantFrom("a", ")", "(", " ", "\n", "1", "Z") }),
        fc.constantFrom("R", "S", "D", "Z", "T", "X"),
        fc.array(fc.nat(), { minLength: 49, maxLength: 49 }),
        (pid, name, state, numbers) => {
          assert.deepStrictEqual(Proc.parseStat(line(pid, name, state, numbers)), {
            pid,
            command: name,
            state,
            parent: numbers[0] ?? -1,
            group: numbers[1] ?? -1,
            session: numbers[2] ?? -1,
            startTime: numbers[18] ?? -1
          })
        }
      )
    )
  })

  it("refuses lines that lack fields", () => {
    for (const text of [
      "",
      "12",
      "12 (a) S",
      "12 (a) S 1 2 3",
      "x (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"
    ]) {
      assert.isUndefined(Proc.parseStat(text), text)
    }
  })
})

describe.runIf(process.platform === "linux")("this process", () => {
  it("is listed, alive, and its variables are found as whole entries only", () => {
    const own = Proc.readStat(process.pid)
    assert.isDefined(own)
    assert.strictEqual(own.parent, process.ppid)
    assert.isTrue(Proc.isSameAlive(process.pid, own.startTime))
    assert.isFalse(Proc.isSameAlive(process.pid, own.startTime + 1))
    assert.isTrue(Proc.list().some((entry) => entry.pid === process.pid))
    assert.include(Proc.commandLine(process.pid), "node")
  })

  it("an absent process is no error", () => {
    assert.isUndefined(Proc.readStat(2 ** 30))
    assert.strictEqual(Proc.commandLine(2 ** 30), "")
    assert.isFalse(Proc.environmentHas(2 ** 30, "A=1"))
  })
})

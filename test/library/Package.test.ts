/** The package as a user has it: packed, installed into an empty project, type-checked, run. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Consumer, examples, makeConsumer, tool } from "./Consumer.ts"

let consumer: Consumer
beforeAll(async () => {
  consumer = await makeConsumer()
})
afterAll(() => consumer?.dispose())

/** What each example prints. */
const printed: { readonly [example: string]: ReadonlyArray<string> } = {}

const read = (file: string): string => fs.readFileSync(path.join(consumer.installed, file), "utf8")

describe("the package", () => {
  it("type-checks in a strict project, its own declarations included, and each example runs", async () => {
    const checked = await consumer.node([tool("typescript/bin/tsc"), "-p", consumer.root])
    assert.equal(checked.stdout + checked.stderr, "")
    for (const [example, lines] of Object.entries(printed)) {
      const ran = await consumer.node([path.join(consumer.root, "out", `${example}.js`)])
      assert.deepEqual({ ...ran, stdout: ran.stdout.trimEnd().split("\n") }, { code: 0, stdout: [...lines], stderr: "" }, example)
    }
  })

  it("has every example in the list of this test", () => {
    const files = fs.readdirSync(examples).filter((file) => file.endsWith(".ts"))
    assert.deepEqual(
      files.map((file) => path.basename(file, ".ts")).sort(),
      Object.keys(printed).sort()
    )
  })
})

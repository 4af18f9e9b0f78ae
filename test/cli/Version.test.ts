import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import { VERSION } from "../../src/base/Version.ts"

describe("Version", () => {
  it("is the one of package.json", () => {
    const url = new URL("../../package.json", import.meta.url)
    assert.equal(VERSION, JSON.parse(fs.readFileSync(url, "utf8")).version)
  })
})

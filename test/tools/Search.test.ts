import { assert, describe, it } from "vitest"
import { partsOf, search } from "../../src/tools/Search.ts"

const tool = (
  name: string,
  description = "",
  properties: { readonly [key: string]: { readonly description: string } } = {}
) => ({
  server: "s",
  name,
  visibleName: `mcp__s__${name}`,
  description,
  inputSchema: { type: "object", properties }
})
const names = (query: string, tools = all): ReadonlyArray<string> =>
  search(tools, query).map(({ tool: found }) => found.name)

const all = [
  tool("read_file", "Reads a text file from disk.", { path: { description: "where it is" } }),
  tool("writeFile", "Stores text."),
  tool("list", "Lists what a directory holds, files too."),
  tool("search_issues", "Finds issues.", { repository: { description: "owner and name" } }),
  tool("天气", "查询天气预报")
]

describe("Search", () => {
  it("splits visible names at separators and at camel case", () => {
    assert.deepEqual(partsOf("mcp__srv__readFile_now"), ["srv", "read", "file", "now"])
  })

  it("ranks a hit in the name before one in parameters before one in the description", () => {
    assert.deepEqual(names("file"), ["read_file", "writeFile"])
    assert.equal(names("text")[0], "read_file")
    assert.deepEqual(names("repository"), ["search_issues"])
    const scores = search(all, "file").map(({ score }) => score)
    assert.deepEqual(scores, [14, 12])
  })

  it("demands words with a plus and only ranks the others", () => {
    assert.deepEqual(names("+file disk"), ["read_file", "writeFile"])
    assert.deepEqual(names("+disk file"), ["read_file"])
    assert.deepEqual(names("+nowhere file"), [])
  })

  it("takes names as they are, selections, and prefixes of visible names", () => {
    assert.deepEqual(names("list"), ["list"])
    assert.deepEqual(names("SELECT:list, mcp__s__writeFile, nothing"), ["writeFile", "list"])
    assert.deepEqual(names("mcp__s__read"), ["read_file"])
  })

  it("finds words of scripts without word boundaries", () => {
    assert.deepEqual(names("天气预报"), ["天气"])
  })

  it("takes characters of regular expressions as themselves and finds nothing for nothing", () => {
    assert.deepEqual(names("(a+)+$ .* ["), [])
    assert.deepEqual(names("   "), [])
  })
})

import * as fc from "fast-check"
import { canonicalize } from "json-canonicalize"
import { stringify } from "smol-toml"
import { assert, describe, it } from "vitest"
import { addToLists } from "../../src/config/EditLists.ts"
import { toJson } from "../../src/config/Located.ts"
import { accessLines, lackingAccess, loopbackHost } from "../../src/config/LoopbackAccess.ts"
import * as Toml from "../../src/config/Toml.ts"
import { left, right } from "./Support.ts"

const additions = { allowed_private_hosts: ["127.0.0.1"], allowed_private_cidrs: ["127.0.0.0/8"] }
const lines = 'allowed_private_hosts = ["127.0.0.1"]\nallowed_private_cidrs = ["127.0.0.0/8"]\n'

/** The new text, which says exactly what was meant; `undefined` when nothing was to be done. */
const added = (text: string, lists: typeof additions = additions): string | undefined => {
  const edited = right(addToLists(text, "f", "web", lists))
  if (edited === undefined) return undefined
  assert.strictEqual(canonicalize(toJson(right(Toml.parse(edited.text, "f")).root)), canonicalize(edited.expected))
  // A second time there is nothing left to do.
  assert.isUndefined(right(addToLists(edited.text, "f", "web", lists)))
  return edited.text
}

describe("texts added to lists of [web]", () => {
  const cases: ReadonlyArray<readonly [what: string, before: string, after: string]> = [
    ["an empty file", "", '[web]\nallowed_private_hosts = ["127.0.0.1"]\nallowed_private_cidrs = ["127.0.0.0/8"]\n'],
    [
      "a table without lists, its comments kept",
      '# a\n[web] # b\nnetwork_mode = "ask" # c\n\n# d\n[audit]\nsync = "always"\n',
      `# a\n[web] # b\nnetwork_mode = "ask" # c\n${lines}\n# d\n[audit]\nsync = "always"\n`
    ],
    ["an empty table at the end, without a line end", "[web]", `[web]\n${lines}`],
    [
      "lists that hold something",
      '[web]\nallowed_private_hosts = ["nas"] # mine\nallowed_private_cidrs = [ "10.0.0.0/8", ]\n',
      '[web]\nallowed_private_hosts = ["127.0.0.1", "nas"] # mine\nallowed_private_cidrs = [ "127.0.0.0/8", "10.0.0.0/8", ]\n'
    ],
    [
      "lists over several lines, each comment beside its element",
      '[web]\nallowed_private_hosts = [ # who\n  "nas", # home\n]\nallowed_private_cidrs = [\n]\n',
      '[web]\nallowed_private_hosts = [ # who\n  "127.0.0.1",\n  "nas", # home\n]\nallowed_private_cidrs = [\n  "127.0.0.0/8",\n]\n'
    ],
    [
      "empty lists",
      "[web]\nallowed_private_hosts = []\nallowed_private_cidrs = [ ]\n",
      '[web]\nallowed_private_hosts = ["127.0.0.1"]\nallowed_private_cidrs = [ "127.0.0.0/8"]\n'
    ],
    [
      "an inline table",
      'web = { network_mode = "ask" } # x\n',
      'web = { network_mode = "ask", allowed_private_hosts = ["127.0.0.1"], allowed_private_cidrs = ["127.0.0.0/8"] } # x\n'
    ],
    [
      "dotted keys",
      'web.network_mode = "ask" # x\n[audit]\n',
      `web.network_mode = "ask" # x\nweb.allowed_private_hosts = ["127.0.0.1"]\nweb.allowed_private_cidrs = ["127.0.0.0/8"]\n[audit]\n`
    ],
    [
      "a table of the table only",
      '[web.search_mcp]\nserver = "a"\ntool = "b"\n',
      `[web.search_mcp]\nserver = "a"\ntool = "b"\n\n[web]\nallowed_private_hosts = ["127.0.0.1"]\nallowed_private_cidrs = ["127.0.0.0/8"]\n`
    ]
  ]
  for (const [what, before, after] of cases)
    it(`go into ${what}`, () => {
      assert.strictEqual(added(before), after)
      if (before.includes("\n"))
        assert.strictEqual(added(before.replaceAll("\n", "\r\n")), after.replaceAll("\n", "\r\n"))
    })

  it("leave alone what is there already", () => {
    assert.isUndefined(added(`[web]\n${lines}`))
    assert.strictEqual(
      added('[web]\nallowed_private_hosts = ["127.0.0.1"]\n'),
      `[web]\nallowed_private_hosts = ["127.0.0.1"]\nallowed_private_cidrs = ["127.0.0.0/8"]\n`
    )
  })

  it("do not go where no list is, nor into a text that is no TOML", () => {
    for (const text of ['web = "x"\n', '[web]\nallowed_private_hosts = "nas"\n', "[web\n"])
      assert.include(
        ["SIGIL_CONFIG_INVALID", "SIGIL_CONFIG_UNREADABLE"],
        left(addToLists(text, "f", "web", additions)).code
      )
  })

  it("go into any table, whatever the lists hold", () => {
    const texts = fc.array(fc.string({ unit: "grapheme", maxLength: 8 }), { maxLength: 3 })
    const table = fc.record({ allowed_private_hosts: texts, blocked_domains: texts }, { requiredKeys: [] })
    fc.assert(
      fc.property(table, texts, texts, (web, hosts, cidrs) => {
        const text = right(
          addToLists(stringify({ web }), "f", "web", { allowed_private_hosts: hosts, allowed_private_cidrs: cidrs })
        )
        if (text === undefined) return
        assert.strictEqual(canonicalize(toJson(right(Toml.parse(text.text, "f")).root)), canonicalize(text.expected))
      })
    )
  })
})

describe("what admits a server of this machine", () => {
  it("is known by its name or address only", () => {
    const hosts: ReadonlyArray<readonly [string, string | undefined]> = [
      ["http://localhost:1/m", "localhost"],
      ["https://LocalHost./m", "localhost"],
      ["http://127.0.0.1:${PORT}/m", "127.0.0.1"],
      ["http://127.9.8.7", "127.9.8.7"],
      ["ws://[::1]:3/", "::1"],
      ["http://[::1]:${PORT:-4000}/m?x=${Y}", "::1"],
      ["http://${HOST}/m", undefined],
      ["http://localhost.example.test/", undefined],
      ["http://10.0.0.1/", undefined],
      ["no url", undefined]
    ]
    for (const [url, host] of hosts) assert.strictEqual(loopbackHost(url), host, url)
  })

  it("is the exact host and a network for each of its addresses, as far as they lack", () => {
    const none = { allowedPrivateHosts: [], allowedPrivateCidrs: [] }
    assert.deepEqual(lackingAccess(none, "127.0.0.1"), {
      allowed_private_hosts: ["127.0.0.1"],
      allowed_private_cidrs: ["127.0.0.0/8"]
    })
    assert.deepEqual(lackingAccess(none, "localhost"), {
      allowed_private_hosts: ["localhost"],
      allowed_private_cidrs: ["127.0.0.0/8", "::1/128"]
    })
    assert.deepEqual(
      lackingAccess({ allowedPrivateHosts: ["LOCALHOST"], allowedPrivateCidrs: ["127.0.0.1/32", "x"] }, "localhost"),
      { allowed_private_hosts: [], allowed_private_cidrs: ["::1/128"] }
    )
    const there = { allowedPrivateHosts: ["nas", "::1"], allowedPrivateCidrs: ["10.0.0.0/8"] }
    assert.deepEqual(accessLines(there, lackingAccess(there, "::1")), [
      "[web]",
      'allowed_private_cidrs = ["::1/128", "10.0.0.0/8"]'
    ])
  })
})

import * as fc from "fast-check"
import { canonicalize } from "json-canonicalize"
import { assert, describe, it } from "vitest"
import type { Json, JsonObject } from "../../src/base/Json.ts"
import { addToJson, removeFromJson, setTrustInJson } from "../../src/config/EditJson.ts"
import { addToToml, appendRule, type Edited, removeFromToml, setTrustInToml } from "../../src/config/EditToml.ts"
import * as JsonText from "../../src/config/JsonText.ts"
import { toJson } from "../../src/config/Located.ts"
import * as Toml from "../../src/config/Toml.ts"
import { left, right } from "./Support.ts"

const tomlValue = (text: string): Json => toJson(right(Toml.parse(text, "f")).root)
const jsonValue = (text: string): Json => toJson(right(JsonText.parse(text, "f")))
const exact = (edited: Edited | undefined, parse: (text: string) => Json): string => {
  if (edited === undefined) assert.fail("expected a change")
  assert.strictEqual(canonicalize(parse(edited.text)), canonicalize(edited.expected))
  return edited.text
}
const addToml = (text: string, name: string, fields: JsonObject) =>
  exact(right(addToToml(text, "f", { name, fields })), tomlValue)
const removeToml = (text: string, name: string) => exact(right(removeFromToml(text, "f", name)), tomlValue)
const addJson = (text: string, name: string, fields: JsonObject) =>
  exact(right(addToJson(text, "f", true, { name, fields })), jsonValue)
const removeJson = (text: string, name: string) => exact(right(removeFromJson(text, "f", true, name)), jsonValue)

const stdio = { transport: "stdio", command: "npx", args: ["-y", 'quo"te', "back\\slash"] }

const commented = [
  "# first",
  "[workspace]   # where",
  'root = "."',
  "",
  "# about one",
  "[[mcp_servers]] # head",
  "name = 'one'",
  'transport = "stdio"',
  'command = "a" # tail',
  "",
  "[mcp_servers.env]",
  'A = "1"',
  "",
  "# about two",
  '[["mcp_servers"]]',
  'name = "two"',
  'transport = "stdio"',
  'command = """b"""',
  "",
  "# last",
  "[audit]",
  'sync = "always"',
  ""
].join("\n")

describe("edits of TOML", () => {
  it("append and take away again leaves the very same text", () => {
    const added = addToml(commented, "three", { ...stdio, env: { K: "v", "odd key": "x" }, required: false })
    assert.isTrue(added.startsWith(commented))
    assert.strictEqual(removeToml(added, "three"), commented)
  })

  it("keeps the byte order mark and CRLF", () => {
    const text = `\ufeff${commented.replaceAll("\n", "\r\n")}`
    const added = addToml(text, "three", stdio)
    assert.isTrue(added.startsWith(text))
    assert.notMatch(added.slice(1), /[^\r]\n/)
    assert.strictEqual(removeToml(added, "three"), text)
  })

  it("removes an entry with its own tables, and no comment of anybody else", () => {
    const text = removeToml(commented, "one")
    for (const comment of ["# first", "# where", "# about one", "# about two", "# last"]) assert.include(text, comment)
    assert.notInclude(text, 'A = "1"')
    assert.include(removeToml(commented, "two"), 'A = "1"')
  })

  it("replaces an entry in its place", () => {
    const text = addToml(commented, "one", { transport: "stdio", command: "new" })
    assert.isBelow(text.indexOf('"new"'), text.indexOf("# about two"))
    assert.notInclude(text, 'A = "1"')
  })

  it("writes into an empty file and behind a line without an end", () => {
    assert.deepEqual(
      tomlValue(addToml("", "a", stdio)),
      tomlValue(
        'mcp_servers = [{ name = "a", transport = "stdio", command = "npx", args = ["-y", \'quo"te\', \'back\\slash\'] }]'
      )
    )
    assert.include(addToml("# x", "a", stdio), "# x\n\n[[mcp_servers]]")
  })

  it("refuses an inline list and a file that does not parse", () => {
    const inline = 'mcp_servers = [{ name = "a" }]\n'
    assert.strictEqual(left(addToToml(inline, "f", { name: "b", fields: stdio })).reason, "inline_list")
    assert.strictEqual(left(removeFromToml(inline, "f", "a")).reason, "inline_list")
    assert.strictEqual(left(addToToml("x = ", "f", { name: "b", fields: stdio })).code, "SIGIL_CONFIG_UNREADABLE")
  })

  it("says that there is nothing to remove", () => {
    assert.isUndefined(right(removeFromToml(commented, "f", "none")))
  })

  it("appends a rule as the last one, once", () => {
    const rule = { tool_name: "mcp__a__b", mode: "allow" }
    const once = exact(right(appendRule(commented, "f", rule)), tomlValue)
    assert.isTrue(once.startsWith(commented))
    assert.isUndefined(right(appendRule(once, "f", rule)))
    const twice = exact(right(appendRule(once, "f", { ...rule, mode: "deny" })), tomlValue)
    assert.isTrue(twice.startsWith(once))
    exact(right(appendRule('[permission]\nmode = "manual"\n[permission.tools]\nx = "ask"\n', "f", rule)), tomlValue)
  })

  const name = fc.string({
    minLength: 1,
    maxLength: 6,
    unit: fc.constantFrom("a", "b", '"', "'", "\\", "é", " ", "]", "#", "\n")
  })
  const text = fc.string({
    maxLength: 8,
    unit: fc.constantFrom("x", '"', "'", "\\", "\n", "\r", "#", "=", "𝒳", "\t", "]")
  })
  const fields = fc.record({
    command: text,
    args: fc.array(text, { maxLength: 3 }),
    env: fc.dictionary(fc.oneof(name, fc.constantFrom("__proto__", "constructor")), text, {
      maxKeys: 3,
      noNullPrototype: false
    }),
    required: fc.boolean()
  })

  it("any entry goes in and comes out, whatever its quoting; the others stay", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(name, fields), { maxLength: 4 }),
        name,
        fields,
        fc.constantFrom("", commented, "# only\n"),
        (others, own, value, start) => {
          const withOthers = others.reduce((current, [other, more]) => addToml(current, other, more), start)
          const before = right(removeFromToml(withOthers, "f", own))?.text ?? withOthers
          const added = addToml(before, own, value)
          assert.strictEqual(canonicalize(tomlValue(removeToml(added, own))), canonicalize(tomlValue(before)))
        }
      ),
      { numRuns: 150 }
    )
  })
})

const annotated = [
  "{",
  "  // top",
  '  "inputs": [],',
  '  "mcpServers": {',
  "    /* about a */",
  '    "a": { "command": "a" }, // tail a',
  '    "b": {',
  '      "command": "b" // inside b',
  "    } // tail b",
  "    // end",
  "  }",
  "}",
  ""
].join("\n")

describe("edits of JSON", () => {
  it("adds as the last one and touches nothing else", () => {
    const added = addJson(annotated, "c", stdio)
    for (const comment of ["// top", "/* about a */", "// tail a", "// inside b", "// tail b", "// end"])
      assert.include(added, comment)
    assert.include(added, '"a": { "command": "a" }, // tail a')
    assert.include(added, '    }, // tail b\n    "c": {\n      "transport"')
    assert.strictEqual(removeJson(added, "c"), annotated)
  })

  it("removes without touching comments of others", () => {
    const first = removeJson(annotated, "a")
    for (const comment of ["/* about a */", "// inside b", "// tail b", "// end"]) assert.include(first, comment)
    const second = removeJson(annotated, "b")
    assert.include(second, "// tail a")
    assert.notMatch(second, /\},\s*\/\/ tail a/)
    assert.deepEqual(JSON.parse(JSON.stringify(jsonValue(removeJson(first, "b")))), { inputs: [], mcpServers: {} })
  })

  it("keeps byte order mark, CRLF, tabs and the end of the file", () => {
    const text = '\ufeff{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"}\r\n\t}\r\n}'
    const added = addJson(text, "b", { command: "y", args: ["1"] })
    assert.strictEqual(
      added,
      '\ufeff{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"},\r\n\t\t"b": {\r\n\t\t\t"command": "y",\r\n\t\t\t"args": [\r\n\t\t\t\t"1"\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}'
    )
    assert.strictEqual(removeJson(added, "b"), text)
  })

  it.each([
    ['{"mcpServers":{"a":{"command":"x"}}}', '{"mcpServers":{"a":{"command":"x"}, "b": {"command":"y"}}}'],
    ['{"mcpServers":{"a":{"command":"x"},}}', '{"mcpServers":{"a":{"command":"x"}, "b": {"command":"y"},}}'],
    ['{"a":{"command":"x"}}', '{"a":{"command":"x"}, "b": {"command":"y"}}'],
    [
      '{\n  "mcpServers": {\n    "a": {}, // c\n  },\n}\n',
      '{\n  "mcpServers": {\n    "a": {}, // c\n    "b": {\n      "command": "y"\n    },\n  },\n}\n'
    ],
    ['{\n  "mcpServers": {\n    "a": {} // c\n    , // d\n  }\n}\n', undefined],
    ['{ "x": 1 }', '{ "x": 1, "mcpServers": {"b":{"command":"y"}} }'],
    ["{}\n", '{\n  "mcpServers": {\n    "b": {\n      "command": "y"\n    }\n  }\n}\n'],
    ["", '{\n  "mcpServers": {\n    "b": {\n      "command": "y"\n    }\n  }\n}\n'],
    ["{ // c\n}", undefined]
  ])("adds to %j", (text, expected) => {
    const added = addJson(text, "b", { command: "y" })
    if (expected !== undefined) assert.strictEqual(added, expected)
    for (const comment of text.match(/\/\/ ./g) ?? []) assert.include(added, comment)
  })

  it("replaces in place, and drops what was there twice", () => {
    assert.strictEqual(
      addJson('{"mcpServers":{"a":{"x":1},"b":{}}}', "a", { command: "y" }),
      '{"mcpServers":{"a":{"command":"y"},"b":{}}}'
    )
    assert.strictEqual(
      addJson('{"mcpServers":{"a":1,"b":{},"a":2}}', "a", { command: "y" }),
      '{"mcpServers":{"b":{},"a":{"command":"y"}}}'
    )
  })

  it("refuses what does not parse or is no object", () => {
    for (const text of ["{", "[]", '{"mcpServers":[]}']) left(addToJson(text, "f", true, { name: "b", fields: {} }))
  })

  const name = fc.oneof(fc.string({ minLength: 1, maxLength: 4 }), fc.constantFrom("__proto__", "constructor", "a"))
  const noise = fc.constantFrom("", " ", "\n", "\r\n", "/* c */", "// c\n", "\t", "\n\n  // d\n  ")
  const doc = fc
    .tuple(
      fc.uniqueArray(name, { maxLength: 4 }),
      fc.array(noise, { minLength: 24, maxLength: 24 }),
      fc.boolean(),
      fc.boolean()
    )
    .map(([names, gaps, last, wrapped]) => {
      let index = 0
      const gap = () => gaps[index++ % gaps.length] ?? ""
      const body = names
        .map(
          (key, position) =>
            `${gap()}${JSON.stringify(key)}${gap()}:${gap()}{"command":${gap()}"x"}${gap()}${position < names.length - 1 || last ? "," : ""}`
        )
        .join("")
      const map = `{${body}${gap()}}`
      return {
        names,
        text: wrapped
          ? `${gap()}{${gap()}"mcpServers":${map}${gap()}}${gap()}`
          : `${gap()}{ "k": 1,${gap()}"mcp_servers"${gap()}:${gap()}${map}}`
      }
    })
  const commentsIn = (text: string): number => (text.match(/\/\* c \*\/|\/\/ [cd]\r?\n/g) ?? []).length

  it("any layout: an entry goes in and comes out exactly, and no comment outside it is lost", () => {
    fc.assert(
      fc.property(doc, name, ({ names, text }, own) => {
        const before = names.includes(own) ? (right(removeFromJson(text, "f", true, own))?.text ?? text) : text
        assert.isUndefined(right(removeFromJson(before, "f", true, own)))
        const added = addJson(before, own, { command: "y", args: ["z"] })
        assert.strictEqual(commentsIn(added), commentsIn(before))
        const removed = removeJson(added, own)
        assert.strictEqual(commentsIn(removed), commentsIn(before))
        assert.strictEqual(canonicalize(jsonValue(removed)), canonicalize(jsonValue(before)))
      }),
      { numRuns: 500 }
    )
  })
})

describe("pins in files", () => {
  const pinned = {
    transport_fingerprint: `sha256:${"0".repeat(64)}`,
    protocol_version: "2025-11-25",
    server_name: 'odd "name"',
    server_version: "1.0"
  }
  const members = { pin_version: true, pinned }
  const other = { ...members, pinned: { ...pinned, server_version: "2.0" } }
  const pinToml = (text: string, name: string, values: JsonObject = members) =>
    exact(right(setTrustInToml(text, "f", name, values)), tomlValue)
  const pinJson = (text: string, name: string, values: JsonObject = members) =>
    exact(right(setTrustInJson(text, "f", true, name, values)), jsonValue)

  const head = '[[mcp_servers]] # one\nname = "one"\ncommand = "a" # keep\n'
  const tail = '\n# two\n[[mcp_servers]]\nname = "two"\n\n[audit]\nsync = "always" # last\n'
  it.each([
    ["nothing", head],
    ["a table", `${head}\n[mcp_servers.trust] # t\napproval_default = "allow" # keep too\n`],
    [
      "a table before another",
      `${head}\n[mcp_servers.trust]\ntrust_class = "official"\n\n[mcp_servers.env]\nA = "1" # e\n`
    ],
    ["an inline table", `${head}trust = { approval_default = "allow" } # inline\n`],
    ["dotted keys", `${head}trust.approval_default = "allow" # dotted\nrequired = false\n`],
    ["only the inner table", `${head}\n[mcp_servers.trust.pinned]\nserver_name = "x"\n`]
  ])("are set in TOML where trust is %s, and set again", (_, entry) => {
    for (const text of [entry, entry + tail, tail.trimStart() + entry]) {
      const once = pinToml(text, "one")
      for (const comment of text.match(/#.*/g) ?? []) assert.include(once, comment)
      const twice = pinToml(once, "one", other)
      for (const comment of text.match(/#.*/g) ?? []) assert.include(twice, comment)
      assert.strictEqual(pinToml(twice, "one", other), twice)
    }
  })

  it.each([
    ["nothing", '{\n  // all\n  "mcpServers": {\n    "one": { "command": "a" }, // c\n    "two": {}\n  }\n}\n'],
    ["an object", '{"mcpServers":{"one":{"command":"a","trust":{"approval_default":"ask"/*k*/}},"two":{}}}'],
    [
      "an object in camel case",
      '{\n"one": {\n  "command": "a",\n  "trust": {\n    "pinVersion": false, // p\n  },\n}}'
    ],
    ["no object", '{"one":{"command":"a","trust":null}}']
  ])("are set in JSON where trust is %s, and set again", (_, text) => {
    const once = pinJson(text, "one")
    for (const comment of text.match(/\/\/.*|\/\*.*?\*\//g) ?? []) assert.include(once, comment)
    const twice = pinJson(once, "one", other)
    assert.strictEqual(pinJson(twice, "one", other), twice)
  })

  const pin = (version: string) => ({
    pin_version: true,
    pinned: { ...pinned, server_name: "n", server_version: version }
  })
  const print = pinned.transport_fingerprint
  it.each([
    [
      "a table",
      `${head}
[mcp_servers.trust] # trust
# before
pin_version = true # on

# above
[mcp_servers.trust.pinned] # pinned
# keep
  transport_fingerprint = "${print}" # fp
protocol_version = "2025-11-25"
# between
server_name = "n"
server_version = "1" # version
# below
`
    ],
    [
      "a table with an inline pin",
      `${head}\n[mcp_servers.trust]\n# keep\npinned = { server_version = "1", server_name = "n", protocol_version = "2025-11-25", transport_fingerprint = "${print}" } # pin\npin_version = true # on\n`
    ],
    [
      "an inline table",
      `${head}trust = {pinned={ server_version = "1",server_name = 'n', protocol_version = "2025-11-25", transport_fingerprint = "${print}"},  pin_version = true} # all\n`
    ],
    [
      "dotted keys",
      `${head}# a\ntrust.pinned.server_version = "1" # b\n"trust".pinned.server_name = "n"\n\n# c\ntrust . pinned . protocol_version = "2025-11-25"\ntrust.pin_version = true # d\ntrust.pinned.transport_fingerprint = "${print}" # e\n# f\n`
    ],
    [
      "dotted keys and an inline pin",
      `${head}trust.pin_version = true # d\ntrust.pinned = { server_version = "1", server_name = "n", protocol_version = "2025-11-25", transport_fingerprint = "${print}" } # e\n# f\n`
    ]
  ])("that are renewed change their values and nothing else, in TOML as %s", (_, entry) => {
    for (const text of [entry, entry + tail, entry.replaceAll("\n", "\r\n")]) {
      const renewed = pinToml(text, "one", pin("2"))
      assert.strictEqual(renewed, text.replace('"1"', '"2"'))
    }
  })

  it.each([
    ["a table", `[mcp_servers.trust.pinned] # p\n# keep\nserver_version = "1" # v\n`],
    ["an inline table", `[mcp_servers.trust]\npinned = { server_version = "1" } # p\n`],
    ["an empty inline table", `[mcp_servers.trust]\npinned = {} # p\n`],
    ["dotted keys", `[mcp_servers.trust]\n  pinned.server_version = "1" # p\n# keep\n`]
  ])("that lack values get them beside the others, in TOML as %s", (_, more) => {
    for (const text of [`${head}\n${more}`, `${head}\n${more}${tail}`, `${head}\n${more}`.trimEnd()]) {
      const done = pinToml(text, "one", pin("2"))
      for (const line of text.match(/#.*/g) ?? []) assert.include(done, line)
      assert.strictEqual(pinToml(done, "one", pin("2")), done)
      assert.strictEqual(done.match(/pinned/g)?.length, more.includes(" pinned.") ? 4 : 1)
    }
  })

  it.each([
    [
      "snake case",
      `{
  "mcpServers": {
    "one": {
      "command": "a",
      "trust": { // trust
        "pinned": {
          // keep
          "transport_fingerprint": "${print}", // fp
          "protocol_version": /* p */ "2025-11-25",
          "server_version": "1", // version
          /* n */ "server_name": "n",
        }, // end
        "pin_version": true
      }
    }
  }
}
`
    ],
    [
      "camel case",
      `{"one":{"trust":{"pinVersion":true,"pinned":{"serverVersion":"1"/*v*/,"serverName":"n","protocolVersion":"2025-11-25",\n// fp\n"transportFingerprint":"${print}"}}}}`
    ]
  ])("that are renewed change their values and nothing else, in JSON in %s", (_, text) => {
    assert.strictEqual(pinJson(text, "one", pin("2")), text.replace('"1"', '"2"'))
  })

  it("are not set where the file has no such server", () => {
    assert.isUndefined(right(setTrustInToml(head, "f", "three", members)))
    assert.isUndefined(right(setTrustInJson('{"one":{}}', "f", true, "three", members)))
  })
})

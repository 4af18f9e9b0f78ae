import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Argv from "../../src/cli/Argv.ts"
import type { OptionSpec } from "../../src/cli/CommandSpec.ts"
import { commands, groups } from "../../src/cli/Commands.ts"
import { globalOptions, noGlobals } from "../../src/cli/GlobalOptions.ts"

const table: Argv.Table = { commands, groups }
const read = (...argv: ReadonlyArray<string>): Argv.CommandLine => Argv.parse(argv, table)

/** The request in a form that can be compared. */
const shown = ({ globals, request }: Argv.CommandLine) => {
  switch (request._tag) {
    case "Run":
      return {
        globals,
        run: request.command.shape.path.join(" "),
        values: [...request.given.values].sort(([left], [right]) => (left < right ? -1 : 1)),
        words: request.given.words,
        tail: request.given.tail,
        dashes: request.given.dashes
      }
    case "Refused":
      return { globals, code: request.error.code, text: request.error.text, candidates: request.error.candidates ?? [] }
    case "Help":
      return { globals, help: request.path.join(" ") }
    default:
      return { globals, other: request._tag }
  }
}

const run = (...argv: ReadonlyArray<string>) => {
  const { request } = read(...argv)
  if (request._tag !== "Run") throw new Error(`Refused or help: ${JSON.stringify(shown(read(...argv)))}`)
  return { command: request.command.shape.path.join(" "), ...request.given }
}

/** Words that look like ours, and any others. */
const anyWord = fc.oneof(
  fc.constantFrom("--json", "--help", "-h", "-d", "--version", "--", "-", "", "--config", "--cwd=x", "--scope", "help"),
  fc.string()
)
const plainWord = fc.stringMatching(/^[a-z][a-z0-9.]{0,8}$/)

const globalTokens = fc.oneof(
  fc.constantFrom(["--json"], ["--debug"], ["-d"], ["--strict-mcp-config"]),
  fc
    .tuple(fc.constantFrom("config", "cwd", "mcp-config"), fc.string())
    .chain(([name, value]) => fc.constantFrom([`--${name}`, value], [`--${name}=${value}`]))
)

/** Words of one command line; globals may stand before, between and after them. */
const lines = fc.constantFrom<ReadonlyArray<ReadonlyArray<string>>>(
  [["mcp"]],
  [["mcp"], ["list"], ["--status"], ["--timeout", "3"]],
  [["mcp"], ["get"], ["fs"]],
  [["mcp"], ["add"], ["--env", "A=1"], ["fs"], ["--scope=user"], ["https://x.example/mcp"], ["--force"]],
  [["mcp"], ["call"], ["fs"], ["read"], ["path=/tmp"], ["--timeout=2"], ["-n=5"], ["-"]],
  [["errors"], ["SIGIL_USAGE"]],
  [["doctor"], ["--probe"]]
)

describe("Argv", () => {
  it("keeps every word of a server's COMMAND as typed", () => {
    fc.assert(
      fc.property(plainWord, plainWord, fc.array(anyWord), (name, command, tail) => {
        const given = run("mcp", "add", name, command, ...tail)
        assert.deepEqual(given.words, [name, command])
        assert.deepEqual(given.tail, tail)
        assert.isFalse(given.dashes)
        assert.deepEqual(read("mcp", "add", name, command, ...tail).globals, noGlobals)
      })
    )
  })

  it("takes any word for COMMAND after --", () => {
    fc.assert(
      fc.property(plainWord, anyWord, fc.array(anyWord), (name, command, tail) => {
        const { globals } = read("--json", "mcp", "add", "-d", name, "--", command, ...tail)
        const given = run("--json", "mcp", "add", "-d", name, "--", command, ...tail)
        assert.deepEqual(given.words, [name, command])
        assert.deepEqual(given.tail, tail)
        assert.isTrue(given.dashes)
        assert.deepEqual(globals, { ...noGlobals, json: true, debug: true })
      })
    )
  })

  it("reads global options the same wherever they stand", () => {
    fc.assert(
      fc.property(lines, fc.array(fc.tuple(globalTokens, fc.nat()), { maxLength: 4 }), (line, globals) => {
        const front = [...globals.flatMap(([tokens]) => tokens), ...line.flat()]
        // The order among the global options stays: it matters for those that repeat.
        const places = globals.map(([, place]) => place % (line.length + 1)).sort((left, right) => left - right)
        const spread = [
          ...line.flatMap((tokens, index) => [
            ...globals.flatMap(([global], nth) => (places[nth] === index ? global : [])),
            ...tokens
          ]),
          ...globals.flatMap(([global], nth) => (places[nth] === line.length ? global : []))
        ]
        assert.deepEqual(shown(Argv.parse(spread, table)), shown(Argv.parse(front, table)))
      })
    )
  })

  it("reads --option value and --option=value alike", () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        assert.deepEqual(
          shown(read("mcp", "add", "--env", value, "fs", "npx")),
          shown(read("mcp", "add", `--env=${value}`, "fs", "npx"))
        )
      })
    )
  })

  it("keeps arguments of a tool, whatever they begin with", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^-?[^=\s-][^=\s]{0,6}$/), fc.string(), (key, value) => {
        fc.pre(key !== "-d" && key !== "-h")
        assert.deepEqual(run("mcp", "call", "s", "t", `${key}=${value}`).words, ["s", "t", `${key}=${value}`])
      })
    )
  })

  it("never throws, and never runs what it refused", () => {
    fc.assert(
      fc.property(fc.array(anyWord), (argv) => {
        const { request } = Argv.parse(argv, table)
        assert.include(["Version", "Help", "Bare", "Run", "Refused"], request._tag)
      })
    )
  })

  it("declares a server as typed", () => {
    const given = run("mcp", "add", "fs", "npx", "-y", "pkg", "/tmp")
    assert.equal(given.command, "mcp add")
    assert.deepEqual(given.words, ["fs", "npx"])
    assert.deepEqual(given.tail, ["-y", "pkg", "/tmp"])
  })

  it("takes its own flags before COMMAND only", () => {
    const given = run("mcp", "add", "--scope", "user", "fs", "--env", "A=1", "npx", "--env", "B=2")
    assert.deepEqual(
      [...given.values],
      [
        ["scope", ["user"]],
        ["env", ["A=1"]]
      ]
    )
    assert.deepEqual(given.tail, ["--env", "B=2"])
  })

  it("goes on reading options after a URL, which has no arguments", () => {
    const given = run("mcp", "add", "docs", "HTTPS://x.example/mcp", "--header", "A=b", "--header=C=d")
    assert.deepEqual(given.values.get("header"), ["A=b", "C=d"])
    assert.deepEqual(given.tail, [])
    assert.deepEqual(run("mcp", "add", "x", "--", "https://x", "--header").tail, ["--header"])
  })

  it("keeps the last value of an option that does not repeat", () => {
    assert.deepEqual(run("mcp", "list", "--timeout", "1", "--timeout", "2").values.get("timeout"), ["2"])
  })

  it("gives an option its next word, whatever that looks like", () => {
    assert.deepEqual(read("mcp", "list", "--config", "--json").globals, { ...noGlobals, config: "--json" })
  })

  it("knows aliases and what a group stands for", () => {
    for (const word of ["remove", "rm", "delete"]) assert.equal(run("mcp", word, "fs").command, "mcp remove")
    assert.equal(run("mcp", "ls").command, "mcp list")
    assert.equal(run("mcp").command, "mcp list")
    assert.equal(run("mcp", "--status").command, "mcp list")
  })

  it("ends options at --", () => {
    const given = run("mcp", "call", "s", "--yes", "t", "--", "--json", "--", "-x")
    assert.deepEqual(given.words, ["s", "t", "--json", "--", "-x"])
    assert.deepEqual([...given.values.keys()], ["yes"])
    assert.isFalse(read("mcp", "call", "s", "t", "--", "--json").globals.json)
  })

  it("takes a slip for an option, one dash for an argument", () => {
    assert.equal(read("mcp", "call", "s", "t", "--ful=1").request._tag, "Refused")
    assert.deepEqual(run("mcp", "call", "s", "t", "-ful=1", "--", "--ful=1").words, ["s", "t", "-ful=1", "--ful=1"])
  })

  it("gives help for what was named so far", () => {
    const about = (...argv: ReadonlyArray<string>) => {
      const { request } = read(...argv)
      return request._tag === "Help" ? request.path.join(" ") : request._tag
    }
    assert.equal(about("--help"), "")
    assert.equal(about("help"), "")
    assert.equal(about("mcp", "-h"), "mcp")
    assert.equal(about("help", "mcp", "add"), "mcp add")
    assert.equal(about("mcp", "rm", "--help"), "mcp remove")
    assert.equal(about("mcp", "add", "--nonsense", "--help"), "mcp add")
    assert.equal(about("mcp", "add", "fs", "npx", "--help"), "Run")
    assert.equal(about("mcp", "nonsense", "--help"), "Refused")
    assert.equal(about("mcp", "add", "--version"), "Version")
    assert.equal(about(), "Bare")
    assert.equal(about("--json"), "Bare")
  })

  const refusals: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
    ["mcp lst", "SIGIL_UNKNOWN_COMMAND", ["sigil mcp list"]],
    ["list", "SIGIL_UNKNOWN_COMMAND", ["sigil mcp list", "sigil artifact list"]],
    ["rm fs", "SIGIL_UNKNOWN_COMMAND", ["sigil mcp remove", "sigil artifact rm"]],
    ["docter", "SIGIL_UNKNOWN_COMMAND", ["sigil doctor"]],
    ["zzzzzz", "SIGIL_UNKNOWN_COMMAND", []],
    ["mcp add --scop user fs npx", "SIGIL_UNKNOWN_OPTION", ["--scope"]],
    ["mcp get fs --jsno", "SIGIL_UNKNOWN_OPTION", ["--json"]],
    ["mcp call s t --timout=3", "SIGIL_UNKNOWN_OPTION", ["--timeout"]],
    ["mcp call s t --x", "SIGIL_UNKNOWN_OPTION", []],
    ["--wizard", "SIGIL_UNKNOWN_OPTION", []],
    ["mcp list --completions sh", "SIGIL_UNKNOWN_OPTION", []],
    ["mcp list --status=yes", "SIGIL_USAGE", []],
    ["mcp list --config", "SIGIL_USAGE", []],
    ["-x", "SIGIL_UNKNOWN_OPTION", []]
  ]
  for (const [line, code, candidates] of refusals) {
    it(`refuses '${line}'`, () => {
      const { request } = read(...line.split(" "))
      if (request._tag !== "Refused") return assert.fail(request._tag)
      assert.equal(request.error.code, code)
      assert.deepEqual(request.error.candidates ?? [], candidates)
    })
  }

  it("still sees --json when something else is wrong", () => {
    assert.isTrue(read("mcp", "lst", "--json").globals.json)
    assert.isTrue(read("mcp", "list", "--nonsense", "--json").globals.json)
    assert.isFalse(read("mcp", "lst", "--", "--json").globals.json)
  })
})

describe("The table of commands", () => {
  it("has no option that hides a global one", () => {
    const letters = Object.values<OptionSpec>(globalOptions).flatMap(({ short }) => short ?? [])
    for (const { shape } of commands) {
      for (const [name, { short }] of Object.entries(shape.options)) {
        assert.notProperty(globalOptions, name, shape.path.join(" "))
        if (short !== undefined) assert.notInclude(letters, short)
      }
    }
  })

  it("lets only the last argument be optional with others after it, or take all words", () => {
    for (const { shape } of commands) {
      const at = shape.args.findIndex(({ repeated }) => repeated === true)
      assert.isTrue(at === -1 || at === shape.args.length - 1, shape.path.join(" "))
      const optional = shape.args.findIndex((one) => one.optional === true)
      if (optional >= 0) assert.isTrue(shape.args.slice(optional).every((one) => one.optional === true))
    }
  })

  it("names every command and alias once", () => {
    const names = commands.flatMap(({ shape }) =>
      [shape.path.at(-1) ?? "", ...(shape.aliases ?? [])].map((word) => [...shape.path.slice(0, -1), word].join(" "))
    )
    assert.equal(new Set(names).size, names.length)
  })

  it("gives examples that are accepted", () => {
    for (const { shape } of commands) {
      for (const { line } of shape.examples) {
        const words = line
          .replace(/^.*\| /, "")
          .split(" ")
          .slice(1)
        assert.equal(run(...words).command, shape.path.join(" "), line)
      }
    }
  })
})

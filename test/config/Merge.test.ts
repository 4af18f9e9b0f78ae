import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { ConfigError } from "../../src/config/ConfigError.ts"
import { merge } from "../../src/config/Merge.ts"
import { type Entry, nameOf, type Scope, scopes } from "../../src/config/ServerDeclaration.ts"
import { broken, jsonEntry, valid } from "./Support.ts"

const template = valid(jsonEntry('{"command":"x"}'))
let line = 0
const entry = (scope: Scope, name: string, command: string, more: object = {}): Entry => {
  line += 1
  return {
    _tag: "Valid",
    declaration: {
      ...template,
      scope,
      name,
      source: { file: `/${scope}`, line, column: 1 },
      endpoint: { _tag: "stdio", command, args: [], inheritEnv: [], publicEnv: [], env: {} },
      ...more
    }
  }
}
const brokenEntry = (scope: Scope, name: string): Entry => ({
  _tag: "Broken",
  broken: {
    name,
    scope,
    source: { file: `/${scope}`, line: 1, column: 1 },
    error: new ConfigError({ code: "SIGIL_CONFIG_INVALID", reason: "x", text: "x" })
  }
})
const names = (entries: ReadonlyArray<Entry>) => entries.map(nameOf)

describe("merge", () => {
  it("gives a name to its highest scope", () => {
    const entries = scopes.toReversed().map((scope) => entry(scope, "a", scope))
    const { servers, shadowed } = merge(entries)
    assert.deepEqual(
      servers.map((server) => valid(server).scope),
      ["cli"]
    )
    assert.deepEqual(
      shadowed.map(({ scope, why, by }) => [scope, why, by.scope]),
      scopes.slice(1).map((scope) => [scope, "name", "cli"])
    )
  })

  it("a broken or disabled entry still claims its name", () => {
    for (const user of [brokenEntry("user", "a"), entry("user", "a", "x", { enabled: false })]) {
      const { servers, shadowed } = merge([entry("project", "a", "y"), user])
      assert.deepEqual(servers, [user])
      assert.lengthOf(shadowed, 1)
    }
  })

  it("a name twice in one scope is broken, the rest runs", () => {
    const { servers } = merge([
      entry("user", "a", "x"),
      entry("user", "b", "y"),
      entry("user", "a", "z"),
      entry("project", "a", "q")
    ])
    assert.deepEqual(names(servers), ["a", "b"])
    assert.strictEqual(broken(servers[0]).error.code, "SIGIL_DUPLICATE_NAME")
  })

  it("one launch in two scopes runs once, two names in one scope are two servers", () => {
    const { servers, shadowed } = merge([entry("project", "p", "x"), entry("user", "b", "x"), entry("user", "a", "x")])
    assert.deepEqual(names(servers), ["b", "a"])
    assert.deepEqual(
      shadowed.map(({ name, why, by }) => [name, why, by.name]),
      [["p", "signature", "a"]]
    )
  })

  it("compares launches after expansion", () => {
    const entries = [entry("user", "a", "${X}"), entry("project", "p", "srv")]
    assert.lengthOf(merge(entries).servers, 2)
    const expanded = merge(entries, ({ endpoint }) =>
      endpoint._tag === "stdio" ? endpoint.command.replace("${X}", "srv") : undefined
    )
    assert.deepEqual(names(expanded.servers), ["a"])
  })

  it("an entry that lost its name never claims its launch", () => {
    const { servers } = merge([entry("user", "a", "x"), entry("local", "a", "y"), entry("project", "b", "y")])
    assert.deepEqual(names(servers), ["a", "b"])
  })

  it("a URL is one launch whatever the transport", () => {
    const remote = (transport: "sse" | "streamable_http") => ({
      endpoint: { _tag: "remote", transport, url: "https://h/", headers: {}, envHeaders: {}, clientCapabilities: [] }
    })
    const { shadowed } = merge([
      entry("user", "a", "", remote("sse")),
      entry("local", "b", "", remote("streamable_http"))
    ])
    assert.deepEqual(
      shadowed.map(({ why }) => why),
      ["signature"]
    )
  })

  const anyEntry = fc.tuple(
    fc.constantFrom(...scopes),
    fc.constantFrom("a", "b", "c", "__proto__"),
    fc.constantFrom("x", "y", undefined)
  )
  const build = (facts: ReadonlyArray<readonly [Scope, string, string | undefined]>): ReadonlyArray<Entry> =>
    facts.map(([scope, name, command]) =>
      command === undefined ? brokenEntry(scope, name) : entry(scope, name, command)
    )

  it("does not depend on the order inside a scope, and loses nothing", () => {
    fc.assert(
      fc.property(
        fc.array(anyEntry, { maxLength: 12 }).chain((facts) =>
          fc.tuple(
            fc.constant(build(facts)),
            fc.shuffledSubarray(
              facts.map((_, index) => index),
              { minLength: facts.length }
            )
          )
        ),
        ([entries, order]) => {
          const shuffled = order.flatMap((index) => entries[index] ?? [])
          const view = ({ servers, shadowed }: ReturnType<typeof merge>) => ({
            servers: servers
              .map((server) => [
                nameOf(server),
                server._tag,
                server._tag === "Valid" ? server.declaration.source.line : 0
              ])
              .toSorted(),
            shadowed: shadowed.map(({ name, scope, by, why }) => [scope, name, by.scope, by.name, why]).toSorted()
          })
          assert.deepEqual(view(merge(shuffled)), view(merge(entries)))
        }
      ),
      { numRuns: 300 }
    )
  })

  it("every name is served at most once, by the highest scope that declares it unless its launch is taken", () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 12 }).map(build), (entries) => {
        const { servers, shadowed } = merge(entries)
        assert.strictEqual(new Set(names(servers)).size, servers.length)
        for (const server of servers) {
          const scope = server._tag === "Valid" ? server.declaration.scope : server.broken.scope
          const declaring = entries
            .filter((other) => nameOf(other) === nameOf(server))
            .map((other) => (other._tag === "Valid" ? other.declaration.scope : other.broken.scope))
          assert.strictEqual(
            scope,
            scopes.find((candidate) => declaring.includes(candidate))
          )
        }
        for (const name of new Set(names(entries)))
          assert.isTrue(
            names(servers).includes(name) || shadowed.some((lost) => lost.name === name && lost.why === "signature")
          )
      }),
      { numRuns: 300 }
    )
  })

  it("is what its rules say, put down one by one, over all scopes", () => {
    const scopeOf = (one: Entry): Scope => (one._tag === "Valid" ? one.declaration.scope : one.broken.scope)
    const rank = (scope: Scope) => scopes.indexOf(scope)
    const signature = (one: Entry | undefined) =>
      one?._tag === "Valid" && one.declaration.endpoint._tag === "stdio" ? one.declaration.endpoint.command : undefined
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 14 }).map(build), (entries) => {
        const declaring = (name: string) => entries.filter((one) => nameOf(one) === name)
        const ownerOf = (name: string) => scopes.find((scope) => declaring(name).some((one) => scopeOf(one) === scope))
        /** The one entry that stands for a name; nothing when its scope has it twice, which claims no launch. */
        const stands = (name: string) => {
          const [first, second] = declaring(name).filter((one) => scopeOf(one) === ownerOf(name))
          return second === undefined ? first : undefined
        }
        const all = [...new Set(names(entries))]
        const higher = (name: string, than: string) => {
          const [a, b] = [ownerOf(name), ownerOf(than)]
          return a !== undefined && b !== undefined && rank(a) < rank(b)
        }
        const holders = (name: string): ReadonlyArray<string> => {
          const wanted = signature(stands(name))
          if (wanted === undefined) return []
          const having = all.filter(
            (other) => higher(other, name) && signature(stands(other)) === wanted && holders(other).length === 0
          )
          const top = having.filter((other) => !having.some((more) => higher(more, other)))
          return top.toSorted()
        }
        const { servers, shadowed } = merge(entries)
        assert.deepEqual(names(servers).toSorted(), all.filter((name) => holders(name).length === 0).toSorted())
        for (const server of servers) {
          const expected = stands(nameOf(server))
          if (expected === undefined) assert.strictEqual(broken(server).error.code, "SIGIL_DUPLICATE_NAME")
          else assert.strictEqual(server, expected)
        }
        const byName = entries.flatMap((one) => {
          const owner = ownerOf(nameOf(one))
          return owner === scopeOf(one) ? [] : [[nameOf(one), scopeOf(one), "name", nameOf(one), owner]]
        })
        const bySignature = all.flatMap((name) => {
          const [holder] = holders(name)
          return holder === undefined ? [] : [[name, ownerOf(name), "signature", holder, ownerOf(holder)]]
        })
        assert.deepEqual(
          shadowed.map(({ by, name, scope, why }) => [name, scope, why, by.name, by.scope]).toSorted(),
          [...byName, ...bySignature].toSorted()
        )
      }),
      { numRuns: 500 }
    )
  })
})

import { assert, describe, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import { MAX_NO_PROXY_RULES, routeOf } from "../../src/net/Proxy.ts"

const target = { host: "mcp.example.com", port: 443, encrypted: true }
const shown = (
  variables: { readonly [name: string]: string },
  to: { readonly host: string; readonly port: number; readonly encrypted: boolean } = target
): string => {
  const route = routeOf(to, (name) => variables[name])
  if (route._tag === "Refuse") return route.reason
  return route._tag === "direct" ? "direct" : route.proxy.origin
}

describe("the proxy of a connection", () => {
  it("is what the variable of the scheme says, then ALL_PROXY, upper case first", () => {
    assert.strictEqual(shown({}), "direct")
    assert.strictEqual(shown({ HTTPS_PROXY: "http://a:1", ALL_PROXY: "http://b:2" }), "http://a:1")
    assert.strictEqual(shown({ https_proxy: "http://a:1" }), "http://a:1")
    assert.strictEqual(shown({ HTTPS_PROXY: "http://a:1", https_proxy: "http://b:2" }), "http://a:1")
    assert.strictEqual(shown({ HTTPS_PROXY: "", https_proxy: "http://b:2" }), "http://b:2")
    assert.strictEqual(shown({ all_proxy: "https://b:2/" }), "https://b:2")
    assert.strictEqual(shown({ HTTP_PROXY: "http://a:1" }), "direct")
    assert.strictEqual(shown({ HTTP_PROXY: "http://a:1" }, { ...target, encrypted: false }), "http://a:1")
    assert.strictEqual(shown({ HTTPS_PROXY: "proxy.corp:3128" }), "http://proxy.corp:3128")
  })

  it("that cannot be used is refused, not passed by", () => {
    for (const bad of ["socks5://a:1", "ftp://a", "http://", "::::"])
      assert.strictEqual(shown({ HTTPS_PROXY: bad }), "proxy_invalid", bad)
  })

  it("keeps its password out of what is shown", () => {
    const route = routeOf(target, (name) => (name === "HTTPS_PROXY" ? "http://me:s%40crt@a:1" : undefined))
    if (route._tag !== "proxy_remote") return assert.fail(route._tag)
    assert.strictEqual(route.proxy.origin, "http://a:1")
    assert.notInclude(JSON.stringify(route), "crt")
    const { authorization } = route.proxy
    if (authorization === undefined) return assert.fail("no authorization")
    assert.strictEqual(Redacted.value(authorization), `Basic ${Buffer.from("me:s@crt").toString("base64")}`)
  })

  it("is passed by for what NO_PROXY names", () => {
    const proxied = { HTTPS_PROXY: "http://a:1" }
    const table: ReadonlyArray<readonly [string, string, string]> = [
      ["mcp.example.com", "mcp.example.com", "direct"],
      ["EXAMPLE.com", "mcp.example.com", "direct"],
      [".example.com", "mcp.example.com", "direct"],
      ["*.example.com", "mcp.example.com", "direct"],
      ["ample.com", "mcp.example.com", "http://a:1"],
      ["*", "mcp.example.com", "direct"],
      ["x, mcp.example.com:443", "mcp.example.com", "direct"],
      ["mcp.example.com:8443", "mcp.example.com", "http://a:1"],
      ["10.0.0.0/8", "10.1.2.3", "direct"],
      ["10.0.0.0/8", "11.1.2.3", "http://a:1"],
      ["3", "10.1.2.3", "http://a:1"],
      ["::1", "::1", "direct"],
      ["[::1]:443", "::1", "direct"],
      ["", "mcp.example.com", "http://a:1"]
    ]
    for (const [rule, host, expected] of table)
      assert.strictEqual(shown({ ...proxied, NO_PROXY: rule }, { ...target, host }), expected, `${rule} ${host}`)
    assert.strictEqual(shown({ ...proxied, NO_PROXY: "a ".repeat(MAX_NO_PROXY_RULES) }), "http://a:1")
    assert.strictEqual(shown({ ...proxied, NO_PROXY: "a ".repeat(MAX_NO_PROXY_RULES + 1) }), "proxy_invalid")
  })
})

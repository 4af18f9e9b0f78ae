import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { isIPv4 } from "node:net"
import { classify, liesIn } from "../../src/net/AddressClass.ts"
import { type Destination, judgeAddresses, judgeUrl, MAX_ADDRESSES } from "../../src/net/Destination.ts"
import type { DestinationRules } from "../../src/net/DestinationRules.ts"

const none: DestinationRules = {
  allowedPrivateHosts: [],
  allowedPrivateCidrs: [],
  blockedDomains: [],
  allowedDomains: []
}
const local: DestinationRules = {
  ...none,
  allowedPrivateHosts: ["localhost", "127.0.0.1", "::1", "intra.example"],
  allowedPrivateCidrs: ["127.0.0.0/8", "::1/128", "10.1.0.0/16", "fd12::/16"]
}

const reasonOf = (url: string, rules = none, more: { credentials?: boolean; proxied?: boolean } = {}): string => {
  const verdict = judgeUrl(url, { credentials: false, rules, ...more })
  return verdict._tag === "Refuse" ? verdict.reason : "allowed"
}
const to = (host: string, encrypted = true): Destination => ({
  origin: `https://${host}`,
  host,
  port: 443,
  encrypted,
  literal: false
})
const addressReason = (addresses: ReadonlyArray<string>, rules = none, destination = to("intra.example")): string => {
  const verdict = judgeAddresses(destination, addresses, rules)
  return verdict._tag === "Refuse" ? verdict.reason : "allowed"
}

/** Forbidden IPv4 blocks: base, prefix length. */
const forbidden4: ReadonlyArray<readonly [string, number]> = [
  ["0.0.0.0", 8],
  ["127.0.0.0", 8],
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["169.254.0.0", 16],
  ["100.64.0.0", 10],
  ["192.0.0.0", 24],
  ["198.18.0.0", 15],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
  ["168.63.129.16", 32]
]
const number4 = (text: string): number => text.split(".").reduce((sum, part) => sum * 256 + Number(part), 0)
const text4 = (value: number): string =>
  [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255].map(String).join(".")
const inBlock = ([base, bits]: readonly [string, number]): fc.Arbitrary<string> =>
  fc.integer({ min: 0, max: 2 ** (32 - bits) - 1 }).map((offset) => text4(number4(base) + offset))
const anyForbidden4 = fc.constantFrom(...forbidden4).chain(inBlock)
const anyIpv4 = fc.integer({ min: 0, max: 2 ** 32 - 1 }).map(text4)
const groups = (address: string): string => {
  const value = number4(address)
  return `${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}`
}
/** Every way known to put an IPv4 address into an IPv6 one. */
const embeddings: ReadonlyArray<(address: string) => string> = [
  (address) => `::ffff:${address}`,
  (address) => `::FFFF:${groups(address)}`,
  (address) => `0:0:0:0:0:ffff:${groups(address)}`,
  (address) => `::${address}`,
  (address) => `::ffff:0:${address}`,
  (address) => `64:ff9b::${address}`,
  (address) => `64:ff9b:1::${groups(address)}`,
  (address) => `2002:${groups(address)}::`,
  (address) => `2002:${groups(address)}:1:2:3:4:5`,
  (address) => `2001:0:${groups(address)}::`,
  (address) => `2001:0:808:808:0:0:${groups(text4(number4(address) ^ 0xffffffff))}`,
  (address) => `2a00:1450::5efe:${address}`,
  (address) => `2a00:1450::200:5efe:${groups(address)}`
]

describe("the class of an address", () => {
  it("no embedding of a forbidden IPv4 address is public", () => {
    fc.assert(
      fc.property(anyForbidden4, fc.constantFrom(...embeddings), (address, embed) => {
        assert.notStrictEqual(classify(address).class, "public")
        assert.notStrictEqual(classify(embed(address)).class, "public")
        assert.notStrictEqual(addressReason(["93.184.216.34", embed(address)]), "allowed")
      }),
      { numRuns: 1000 }
    )
  })

  it("a mapped address is its IPv4 address", () => {
    fc.assert(
      fc.property(anyIpv4, (address) => {
        assert.deepStrictEqual(classify(`::ffff:${address}`), classify(address))
        assert.deepStrictEqual(classify(`::ffff:${groups(address)}`), classify(address))
      })
    )
  })

  it("what is neither plain IPv4 nor plain IPv6 is invalid", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!isIPv4(text) && !text.includes(":"))
        assert.strictEqual(classify(text).class, "invalid")
      })
    )
  })

  it("no metadata, link-local, multicast or other special address is admitted by any rules", () => {
    const all = { ...none, allowedPrivateHosts: ["intra.example"], allowedPrivateCidrs: ["0.0.0.0/0", "::/0"] }
    for (const address of [
      "169.254.169.254",
      "169.254.170.2",
      "100.100.100.200",
      "::ffff:169.254.169.254",
      "64:ff9b::a9fe:a9fe",
      "fd00:ec2::254",
      "fe80::1",
      "fe80::1%eth0",
      "febf::1",
      "fec0::1",
      "ff02::1",
      "::",
      "0.0.0.0",
      "2001:db8::1",
      "255.255.255.255",
      "::127.0.0.1",
      "::7f00:1",
      "2002:7f00:1::",
      "64:ff9b::127.0.0.1",
      "4000::1",
      "2130706433",
      "0x7f.1",
      "0177.0.0.1",
      ""
    ])
      assert.strictEqual(addressReason([address], all), "address_forbidden", address)
  })

  it("public addresses are public", () => {
    for (const address of [
      "93.184.216.34",
      "8.8.8.8",
      "172.32.0.1",
      "100.128.0.1",
      "192.0.1.1",
      "198.20.0.1",
      "2606:4700::1111",
      "2a00:1450:4001:81b::200e",
      "64:ff9b::808:808",
      "2002:808:808::1"
    ])
      assert.strictEqual(classify(address).class, "public", address)
  })

  it("a network holds addresses of its own family, mapped ones as IPv4", () => {
    assert.isTrue(liesIn("::ffff:127.0.0.1", "127.0.0.0/8"))
    assert.isTrue(liesIn("fd12::1", "fd12::/16"))
    assert.isFalse(liesIn("127.0.0.1", "::/0"))
    assert.isFalse(liesIn("::1", "0.0.0.0/0"))
    for (const network of ["127.0.0.1", "127.0.0.0/33", "all", "", "127.0.0.0/-1"])
      assert.isFalse(liesIn("127.0.0.1", network), network)
  })
})

describe("a URL, before anything is resolved", () => {
  const table: ReadonlyArray<
    readonly [string, string, DestinationRules?, { credentials?: boolean; proxied?: boolean }?]
  > = [
    ["https://mcp.example.com/mcp", "allowed"],
    ["https://mcp.example.com:8443/mcp", "allowed"],
    ["wss://mcp.example.com/ws", "allowed"],
    ["https://93.184.216.34/", "allowed"],
    ["https://[2606:4700::1111]/", "allowed"],
    ["https://bücher.example/", "allowed"],
    // Scheme and form
    ["ftp://mcp.example.com/", "url_invalid"],
    ["file:///etc/passwd", "url_invalid"],
    ["mcp.example.com", "url_invalid"],
    ["https://user:pw@mcp.example.com/", "url_invalid"],
    ["https://mcp.example.com/#part", "url_invalid"],
    ["https://[fe80::1%25eth0]/", "url_invalid"],
    // This machine by name
    ["https://localhost/", "host_local"],
    ["https://LOCALHOST./", "host_local"],
    ["https://a.localhost:3000/", "host_local", local],
    ["https://%6c%6fcalhost/", "host_local"],
    ["https://ｌｏｃａｌｈｏｓｔ/", "host_local"],
    ["http://localhost:3000/", "host_local"],
    ["http://localhost:3000/", "allowed", local],
    ["http://localhost:3000/", "credentials_unencrypted", local, { credentials: true }],
    ["https://localhost:3000/", "allowed", local, { credentials: true }],
    // This machine by address, in every spelling
    ["http://127.0.0.1:3000/", "address_private"],
    ["http://127.0.0.1:3000/", "allowed", local],
    ["http://2130706433/", "allowed", local],
    ["http://2130706433/", "address_private"],
    ["http://0x7f000001/", "address_private"],
    ["http://0177.0.0.1/", "address_private"],
    ["http://127.1/", "address_private"],
    ["http://127.0.0.1./", "address_private"],
    ["http://127。0。0。1/", "address_private"],
    ["http://[::1]/", "address_private"],
    ["http://[::1]/", "allowed", local],
    ["https://[::ffff:127.0.0.1]/", "address_private"],
    ["https://[::ffff:7f00:1]/", "address_private"],
    ["https://[::127.0.0.1]/", "address_forbidden", local],
    ["https://[64:ff9b::7f00:1]/", "address_forbidden", local],
    ["https://0/", "address_forbidden", local],
    ["https://127.0.0.2/", "address_private", local],
    // Private networks
    ["https://10.1.2.3/", "address_private"],
    ["https://192.168.1.1/", "address_private", local],
    ["https://[fd12::1]/", "address_private"],
    ["http://10.1.2.3/", "not_encrypted", { ...local, allowedPrivateHosts: ["10.1.2.3"] }],
    ["https://10.1.2.3/", "allowed", { ...local, allowedPrivateHosts: ["10.1.2.3"] }],
    // Metadata services
    ["https://metadata.google.internal/", "address_forbidden"],
    [
      "https://Metadata.Google.Internal./",
      "address_forbidden",
      { ...local, allowedPrivateHosts: ["metadata.google.internal"] }
    ],
    ["http://169.254.169.254/latest/", "address_forbidden", { ...local, allowedPrivateCidrs: ["0.0.0.0/0"] }],
    ["http://0xa9fea9fe/", "address_forbidden"],
    [
      "https://[fd00:ec2::254]/",
      "address_forbidden",
      { ...local, allowedPrivateHosts: ["fd00:ec2::254"], allowedPrivateCidrs: ["::/0"] }
    ],
    // Without TLS
    ["http://mcp.example.com/", "not_encrypted"],
    ["ws://mcp.example.com/", "not_encrypted"],
    ["http://intra.example/", "allowed", local],
    ["ws://intra.example/", "allowed", local],
    ["http://93.184.216.34/", "not_encrypted"],
    // Lists
    ["https://evil.example/", "domain_blocked", { ...none, blockedDomains: ["evil.example"] }],
    ["https://a.b.EVIL.example./", "domain_blocked", { ...none, blockedDomains: ["*.evil.example"] }],
    ["https://notevil.example/", "allowed", { ...none, blockedDomains: ["evil.example"] }],
    ["https://xn--bcher-kva.example/", "domain_blocked", { ...none, blockedDomains: ["bücher.example"] }],
    ["https://mcp.example.com/", "domain_not_allowed", { ...none, allowedDomains: ["example.org"] }],
    ["https://mcp.example.com/", "allowed", { ...none, allowedDomains: ["example.com"] }],
    [
      "https://mcp.example.com/",
      "domain_blocked",
      { ...none, allowedDomains: ["example.com"], blockedDomains: ["mcp.example.com"] }
    ],
    // Through a proxy
    ["https://mcp.example.com/", "allowed", none, { proxied: true, credentials: true }],
    ["https://localhost/", "proxy_private", local, { proxied: true }],
    ["https://intra.example/", "proxy_private", local, { proxied: true }],
    ["https://10.1.2.3/", "proxy_private", none, { proxied: true }],
    ["http://mcp.example.com/", "proxy_private", none, { proxied: true }],
    ["https://169.254.169.254/", "address_forbidden", none, { proxied: true }],
    ["https://metadata.google.internal/", "address_forbidden", none, { proxied: true }]
  ]
  for (const [url, expected, rules, more] of table)
    it(`${url} ${JSON.stringify(more ?? {})} ${rules === undefined ? "" : "with rules "}is ${expected}`, () => {
      assert.strictEqual(reasonOf(url, rules, more), expected)
    })

  it("a refusal shows the host and the lines that would admit it, and no path or query", () => {
    const verdict = judgeUrl("http://localhost:3000/secret?key=hidden", {
      credentials: false,
      rules: { ...none, allowedPrivateHosts: ["other"] }
    })
    if (verdict._tag !== "Refuse") return assert.fail("it was allowed")
    assert.include(verdict.text, "'localhost'")
    assert.include(verdict.fix, 'allowed_private_hosts = ["other", "localhost"]')
    assert.include(verdict.fix, 'allowed_private_cidrs = ["127.0.0.0/8", "::1/128"]')
    assert.notMatch(verdict.text + verdict.fix, /secret|hidden/)
  })

  it("the lines that a refusal shows do admit", () => {
    for (const [url, addresses] of [
      ["http://127.0.0.1:9/", ["127.0.0.1"]],
      ["http://[::1]:9/", ["::1"]],
      ["https://10.9.8.7/", ["10.9.8.7"]],
      ["https://localhost/", ["127.0.0.1", "::1"]],
      ["https://nas.example/", ["192.168.7.7", "fd77::7"]]
    ] as const) {
      const first = judgeUrl(url, { credentials: false, rules: none })
      const refusal = first._tag === "Refuse" ? first : judgeAddresses(first.destination, addresses, none)
      if (refusal._tag !== "Refuse") return assert.fail(url)
      const list = (key: string): Array<string> =>
        JSON.parse(new RegExp(`${key} = (\\[.*?"\\])`).exec(refusal.fix)?.[1] ?? "[]")
      const rules = {
        ...none,
        allowedPrivateHosts: list("allowed_private_hosts"),
        allowedPrivateCidrs: list("allowed_private_cidrs")
      }
      const second = judgeUrl(url, { credentials: false, rules })
      if (second._tag === "Refuse") return assert.fail(`${url}: ${second.text}`)
      assert.strictEqual(judgeAddresses(second.destination, addresses, rules)._tag, "Allow", url)
    }
    return undefined
  })
})

describe("the addresses of a host", () => {
  it("all have to pass", () => {
    assert.strictEqual(addressReason(["93.184.216.34", "2606:4700::1111"]), "allowed")
    assert.strictEqual(addressReason(["93.184.216.34", "10.1.0.1"]), "address_private")
    assert.strictEqual(addressReason(["93.184.216.34", "10.1.0.1"], local), "allowed")
    assert.strictEqual(addressReason(["10.1.0.1", "10.2.0.1"], local), "address_private")
    assert.strictEqual(addressReason(["10.1.0.1"], local, to("other.example")), "address_private")
    assert.strictEqual(addressReason(["10.1.0.1"], { ...local, allowedPrivateCidrs: [] }), "address_private")
  })

  it("without TLS only this machine passes", () => {
    assert.strictEqual(addressReason(["127.0.0.1"], local, to("intra.example", false)), "allowed")
    assert.strictEqual(addressReason(["10.1.0.1"], local, to("intra.example", false)), "not_encrypted")
    assert.strictEqual(
      addressReason(["127.0.0.1", "93.184.216.34"], local, to("intra.example", false)),
      "not_encrypted"
    )
  })

  it("none, or too many, are refused", () => {
    const many = Array.from({ length: MAX_ADDRESSES + 1 }, (_, index) => `93.184.216.${index}`)
    assert.strictEqual(addressReason([]), "address_count")
    assert.strictEqual(addressReason(many), "address_count")
    assert.strictEqual(addressReason(many.slice(1)), "allowed")
  })
})

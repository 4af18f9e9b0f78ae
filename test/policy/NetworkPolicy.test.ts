import { assert, describe, it } from "@effect/vitest"
import { atSpawn, type Confinement, effectOf } from "../../src/policy/NetworkPolicy.ts"

const modes = ["allow", "ask", "deny"] as const
const both = [false, true] as const

/** Every confinement there is. */
const confinements: ReadonlyArray<Confinement> = [
  { _tag: "Local" },
  { _tag: "Unavailable", why: "None here.", fix: "Install it." },
  { _tag: "Unavailable", why: "None here.", fix: undefined },
  ...both.flatMap((networkProven) =>
    both.flatMap((processTreeProven) =>
      (["denied", "shared"] as const).map((network) => ({
        _tag: "Sandbox" as const,
        network,
        networkProven,
        processTreeProven
      }))
    )
  )
]

/** R section 6.6 once more, as a table of words instead of nested decisions. */
const naive = (mode: (typeof modes)[number], approved: boolean, confinement: Confinement): string => {
  const words =
    confinement._tag === "Sandbox"
      ? [confinement.network, confinement.networkProven ? "net" : "-", confinement.processTreeProven ? "tree" : "-"]
      : [confinement._tag]
  const isolated = words.join(" ") === "denied net tree"
  if (mode === "allow" || (mode === "ask" && approved)) return isolated ? "spawn none" : "spawn unknown"
  if (mode === "ask") return "network_approval_required"
  const table: { readonly [words: string]: string } = {
    "denied net tree": "spawn none",
    "denied net -": "process_isolation_unavailable",
    "denied - tree": "network_isolation_unavailable",
    "denied - -": "network_isolation_unavailable"
  }
  return table[words.join(" ")] ?? (words[0] === "shared" ? "backend_receipt_invalid" : "network_isolation_unavailable")
}

describe("NetworkPolicy", () => {
  it("agrees with the naive formulation on every combination", () => {
    let cases = 0
    for (const mode of modes)
      for (const approved of both)
        for (const confinement of confinements) {
          cases += 1
          const found = atSpawn(mode, approved, confinement)
          const said = found._tag === "Spawn" ? `spawn ${found.effect}` : found.reason
          assert.equal(said, naive(mode, approved, confinement), JSON.stringify({ mode, approved, confinement }))
          if (found._tag === "Spawn") assert.equal(found.effect, effectOf(confinement))
          else assert.include(found.fix, "network_mode")
        }
    assert.equal(cases, 3 * 2 * 11)
  })

  it("says what to install where the system lacks it, in the system's own words where it has any", () => {
    const fixOf = (confinement: Confinement): string => {
      const found = atSpawn("deny", true, confinement)
      return found._tag === "Refuse" ? found.fix : ""
    }
    assert.include(fixOf({ _tag: "Local" }), "Install bubblewrap")
    assert.match(fixOf({ _tag: "Unavailable", why: "No.", fix: "Do this." }), /^Do this\. Or /)
  })
})

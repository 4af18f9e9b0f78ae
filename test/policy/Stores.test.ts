import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Locations from "../../src/config/Locations.ts"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import * as ApprovalStore from "../../src/policy/ApprovalStore.ts"
import { decide } from "../../src/policy/ProjectApproval.ts"
import * as Toggles from "../../src/policy/Toggles.ts"

const identity = "/home/me/app"
const subject = { identity, name: "db", fingerprint: "sha256:1", place: "" }
const question = { ...subject, coverable: true }

/** The stores over a fresh state directory, which is given to the test. */
const withHome = <A, E>(
  use: (paths: Locations.Paths) => Effect.Effect<A, E, ApprovalStore.ApprovalStore | Toggles.Toggles>
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "sigil-stores-"))),
    (home) => {
      const locations = Locations.layer().pipe(
        Layer.provide(HostEnvironment.layerTest({ variables: { SIGIL_HOME: home }, cwd: home, homeDirectory: home }))
      )
      const stores = Layer.provideMerge(Layer.mergeAll(ApprovalStore.layer, Toggles.layer), locations)
      return Effect.flatMap(Locations.Locations, use).pipe(Effect.provide(stores))
    },
    (home) => Effect.sync(() => fs.rmSync(home, { recursive: true, force: true }))
  )

const write = (file: string, text: string): void => {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text, { mode: 0o600 })
}

describe("ApprovalStore", () => {
  it.scopedLive("stores answers in the form that is documented, for the user only", () =>
    withHome((paths) =>
      Effect.gen(function* () {
        const store = yield* ApprovalStore.ApprovalStore
        yield* store.decide([subject, { ...subject, name: "web" }], "approved")
        yield* store.decide([{ ...subject, name: "web" }], "rejected")
        yield* store.approveAll(identity)
        yield* store.approveAll(identity)
        const file = JSON.parse(fs.readFileSync(paths.approvals, "utf8"))
        assert.deepEqual(file.approved, ["/home/me/app:db"])
        assert.deepEqual(file.rejected, ["/home/me/app:web"])
        assert.deepEqual(file.approveAllProjects, [identity])
        assert.deepEqual(file.fingerprints, { "/home/me/app:db": "sha256:1" })
        assert.equal(fs.statSync(paths.approvals).mode & 0o777, 0o600)
        assert.equal(decide(yield* store.read, question)._tag, "Approved")
      })
    )
  )

  it.scopedLive("gives no answer from a damaged file, and never writes over one", () =>
    withHome((paths) =>
      Effect.gen(function* () {
        const store = yield* ApprovalStore.ApprovalStore
        assert.equal(decide(yield* store.read, question)._tag, "Pending")
        const damaged = [
          "",
          "{",
          "[]",
          "null",
          '{"approved":"x"}',
          '{"approved":[1]}',
          '{"approved":["/home/me/app:db"],"fingerprints":[]}'
        ]
        for (const text of damaged) {
          write(paths.approvals, text)
          for (const attempt of [store.read, store.decide([subject], "approved"), store.approveAll(identity)]) {
            const error = yield* Effect.flip(Effect.asVoid(attempt))
            assert.deepEqual([error.reason, error.where?.file], ["damaged", paths.approvals], text)
            assert.include(error.fix, "move it away")
          }
          assert.equal(fs.readFileSync(paths.approvals, "utf8"), text)
        }
        fs.rmSync(paths.approvals)
        yield* store.decide([subject], "approved")
        assert.equal(decide(yield* store.read, question)._tag, "Approved")
      })
    )
  )

  it.scopedLive("does not count a file that others may write, until its user says that it is sound", () =>
    withHome((paths) =>
      Effect.gen(function* () {
        const store = yield* ApprovalStore.ApprovalStore
        yield* store.decide([subject], "approved")
        const before = fs.readFileSync(paths.approvals, "utf8")
        for (const mode of [0o666, 0o620, 0o602]) {
          fs.chmodSync(paths.approvals, mode)
          for (const attempt of [store.read, store.decide([subject], "rejected")])
            assert.equal((yield* Effect.flip(Effect.asVoid(attempt))).reason, "untrusted_file", mode.toString(8))
        }
        assert.equal(fs.readFileSync(paths.approvals, "utf8"), before)
        fs.chmodSync(paths.approvals, 0o644)
        assert.equal(decide(yield* store.read, question)._tag, "Approved")
      })
    )
  )

  it.scopedLive("loses no answer of writers at the same time", () =>
    withHome(() =>
      Effect.gen(function* () {
        const store = yield* ApprovalStore.ApprovalStore
        const names = Array.from({ length: 12 }, (_, index) => `s${index}`)
        yield* Effect.forEach(names, (name) => store.decide([{ ...subject, name }], "approved"), {
          concurrency: "unbounded"
        })
        assert.sameMembers(
          [...(yield* store.read).approved],
          names.map((name) => `${identity}:${name}`)
        )
      })
    )
  )

  it.scopedLive("reads files without the newer keys, and drops the old global flag", () =>
    withHome((paths) =>
      Effect.gen(function* () {
        const store = yield* ApprovalStore.ApprovalStore
        write(paths.approvals, JSON.stringify({ approved: ["/home/me/app:db"], rejected: [], approveAll: true }))
        assert.equal(decide(yield* store.read, question)._tag, "Pending")
        assert.equal(decide(yield* store.read, { ...question, name: "other" })._tag, "Pending")
        yield* store.decide([subject], "approved")
        assert.notProperty(JSON.parse(fs.readFileSync(paths.approvals, "utf8")), "approveAll")
      })
    )
  )

  it.effect("does the same in memory", () =>
    Effect.gen(function* () {
      const store = yield* ApprovalStore.ApprovalStore
      yield* store.decide([subject], "approved")
      assert.equal(decide(yield* store.read, question)._tag, "Approved")
      yield* store.decide([subject], "rejected")
      assert.equal(decide(yield* store.read, question)._tag, "Rejected")
      yield* store.approveAll(identity)
      assert.equal(decide(yield* store.read, { ...question, name: "other" })._tag, "Approved")
    }).pipe(Effect.provide(ApprovalStore.layerMemory()))
  )
})

describe("Toggles", () => {
  const scenario = Effect.gen(function* () {
    const toggles = yield* Toggles.Toggles
    const state = (name: string) => Effect.map(toggles.read(identity), (read) => Toggles.stateOf(read, name))
    assert.isUndefined(yield* state("db"))
    yield* toggles.set(identity, "db", false)
    assert.isFalse(yield* state("db"))
    yield* toggles.set(identity, "db", true)
    assert.isTrue(yield* state("db"))
    yield* toggles.set(identity, "__proto__", false)
    assert.isFalse(yield* state("__proto__"))
    assert.isUndefined(yield* state("constructor"))
    assert.isUndefined(Toggles.stateOf(yield* toggles.read("/srv/other"), "db"))
    return yield* toggles.read(identity)
  })

  it.scopedLive("keeps a name in one list of the project's own file", () =>
    withHome((paths) =>
      Effect.gen(function* () {
        const read = yield* scenario
        const file = paths.mcpState(identity)
        assert.deepEqual(JSON.parse(fs.readFileSync(file, "utf8")), read)
        assert.deepEqual(read, { disabledMcpServers: ["__proto__"], enabledMcpServers: ["db"] })
        assert.equal(fs.statSync(file).mode & 0o777, 0o600)
        const toggles = yield* Toggles.Toggles
        assert.equal(yield* toggles.set(identity, "db", false), file)
      })
    )
  )

  it.scopedLive("takes a damaged file for no switches, and keeps it", () =>
    withHome((paths) =>
      Effect.gen(function* () {
        const toggles = yield* Toggles.Toggles
        for (const text of ["{", '{"disabledMcpServers":"db"}', "7"]) {
          write(paths.mcpState(identity), text)
          assert.isUndefined(Toggles.stateOf(yield* toggles.read(identity), "db"), text)
          assert.equal((yield* Effect.flip(toggles.set(identity, "db", false))).reason, "damaged")
          assert.equal(fs.readFileSync(paths.mcpState(identity), "utf8"), text)
        }
      })
    )
  )

  it.effect("does the same in memory", () => Effect.asVoid(Effect.provide(scenario, Toggles.layerMemory)))
})

import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll } from "vitest"
import { isVisible, layoutOf, type LayoutRequest, mountAt } from "../../src/platform/SandboxLayout.ts"

/** A tree of directories two levels deep; every path of a request is one of them. */
const names = ["a", "b"]
let base = ""
let places: ReadonlyArray<string> = []
beforeAll(() => {
  base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-layout-")))
  const below = (folder: string, depth: number): ReadonlyArray<string> =>
    depth === 0 ? [folder] : [folder, ...names.flatMap((name) => below(path.join(folder, name), depth - 1))]
  places = below(base, 3)
  for (const place of places) fs.mkdirSync(place, { recursive: true })
  fs.symlinkSync(path.join(base, "a", "b"), path.join(base, "link"))
})
afterAll(() => fs.rmSync(base, { recursive: true, force: true }))

const request = (more: Partial<LayoutRequest> = {}): LayoutRequest => ({
  workspace: path.join(base, "a"),
  workspaceAccess: "writable",
  cwd: path.join(base, "a"),
  network: "denied",
  homeDirectory: path.join(base, "b"),
  readablePaths: [],
  writablePaths: [],
  temporary: [],
  privateDirectories: [],
  privateFiles: [],
  sockets: [],
  ...more
})
const made = (more: Partial<LayoutRequest> = {}) => {
  const layout = layoutOf(request(more))
  return Either.isRight(layout) ? layout.right.mounts : assert.fail(layout.left.text)
}
const faultOf = (more: Partial<LayoutRequest>) => {
  const layout = layoutOf(request(more))
  return Either.isLeft(layout) ? layout.left.reason : assert.fail("there is a layout")
}
const kindAt = (more: Partial<LayoutRequest>, ...parts: ReadonlyArray<string>) =>
  mountAt(made(more), path.join(base, ...parts))?.kind

describe("the layout of a sandbox", () => {
  it("never shows a directory of sigil, whatever else it shows; else the workspace can be worked in", () => {
    const place = fc.nat({ max: 14 }).map((index) => () => places[index] ?? base)
    const some = fc.array(place, { maxLength: 3 })
    fc.assert(
      fc.property(place, place, place, some, some, some, fc.boolean(), (workspace, cwd, home, read, write, own, ro) => {
        const given = request({
          workspace: workspace(),
          workspaceAccess: ro ? "read-only" : "writable",
          cwd: cwd(),
          homeDirectory: home(),
          readablePaths: read.map((at) => at()),
          writablePaths: write.map((at) => at()),
          privateDirectories: own.map((at) => at())
        })
        const layout = layoutOf(given)
        if (Either.isLeft(layout)) return
        const { mounts } = layout.right
        const below = (inner: string, outer: string): boolean => inner === outer || inner.startsWith(`${outer}/`)
        for (const target of places) {
          const private_ = given.privateDirectories.some((directory) => below(target, directory))
          const shown = [given.workspace, given.cwd, ...given.readablePaths, ...given.writablePaths]
          // Everything here stands in a hidden place, so what is visible was asked for.
          const visible = !private_ && shown.some((one) => below(target, one))
          assert.equal(isVisible(mounts, target), visible, JSON.stringify({ given, mounts, target }))
          if (!visible) continue
          const writable = [...given.writablePaths, ...(ro ? [] : [given.workspace])]
          const kind = mountAt(mounts, target)?.kind
          if (!writable.some((one) => below(target, one))) assert.equal(kind, "read", JSON.stringify({ given, target }))
        }
        assert.isTrue(isVisible(mounts, given.workspace) && isVisible(mounts, given.cwd))
      }),
      { numRuns: 2_000 }
    )
  })

  it("lets the workspace and the named places be written, without a second mount for a part of them", () => {
    assert.equal(kindAt({}, "a"), "write")
    assert.equal(kindAt({ workspaceAccess: "read-only" }, "a"), "read")
    // A server that runs could put a link in the place of the part before it is mounted.
    const part = path.join(base, "a", "b")
    for (const more of [{ readablePaths: [part] }, { writablePaths: [part, path.join(part, "a")] }])
      assert.deepEqual(made(more), made())
    assert.equal(kindAt({ writablePaths: ["~/a"] }, "b", "a"), "write")
    assert.equal(kindAt({ readablePaths: ["~/nothing"] }, "b", "nothing"), "directory")
  })

  it("shows the directory that a server starts in, but only for reading", () => {
    assert.equal(kindAt({ cwd: path.join(base, "b", "a") }, "b", "a"), "read")
    assert.equal(kindAt({ cwd: path.join(base, "a", "a") }, "a", "a"), "write")
  })

  it("pins what stands between a writable place and a directory of sigil", () => {
    const mounts = made({ privateDirectories: [path.join(base, "a", "a", "b")] })
    const own = mounts.filter((mount) => mount.path.startsWith(path.join(base, "a", "a")))
    assert.deepEqual(own, [
      { kind: "pin", path: path.join(base, "a", "a") },
      { kind: "cover", path: path.join(base, "a", "a", "b") }
    ])
  })

  it("is refused where it could not keep its promise", () => {
    const home = path.join(base, "a", "a")
    assert.equal(faultOf({ homeDirectory: home }), "sandbox_too_wide")
    assert.equal(faultOf({ homeDirectory: home, workspaceAccess: "read-only" }), "sandbox_too_wide")
    assert.equal(faultOf({ workspace: "/" }), "sandbox_too_wide")
    assert.equal(faultOf({ workspace: path.join(base, "nothing") }), "sandbox_path_missing")
    assert.equal(faultOf({ privateFiles: [path.join(base, "a", "sigil.toml")] }), "sandbox_exposes_state")
    assert.equal(faultOf({ privateDirectories: [base] }), "sandbox_hides_path")
    // A link that the server can write could lead elsewhere at the next start.
    const more = { workspace: base, privateDirectories: [path.join(base, "link")], homeDirectory: "/nonexistent" }
    assert.equal(faultOf({ ...more, cwd: base }), "sandbox_exposes_state")
  })

  describe("with symbolic links", () => {
    const inWorkspace = (...parts: ReadonlyArray<string>) => path.join(base, "a", ...parts)
    const outside = (...parts: ReadonlyArray<string>) => path.join(base, "b", ...parts)
    /** Makes links for one test: each a place and what it leads to. */
    const linked = (links: ReadonlyArray<readonly [string, string]>, use: () => void): void => {
      for (const [place, to] of links) fs.symlinkSync(to, place)
      try {
        use()
      } finally {
        for (const [place] of links) fs.rmSync(place)
      }
    }

    it("refuses a path through one that stands where servers write, wherever it leads and however it is reached", () => {
      const links = [
        [inWorkspace("out"), outside("a")],
        [inWorkspace("stay"), "b"],
        [inWorkspace("nowhere"), outside("nothing")],
        [inWorkspace("round"), inWorkspace("round")],
        [outside("chain"), inWorkspace("out")],
        [outside("a", "cached"), outside("b")]
      ] as const
      linked(links, () => {
        const written = [
          inWorkspace("out"),
          inWorkspace("out", "a"),
          inWorkspace("out", "nothing"),
          inWorkspace("stay"),
          inWorkspace("nowhere"),
          inWorkspace("round"),
          outside("chain"),
          path.join(base, "b", "chain", "b")
        ]
        for (const place of written) {
          for (const workspaceAccess of ["writable", "read-only"] as const) {
            assert.equal(faultOf({ workspaceAccess, writablePaths: [place] }), "sandbox_path_unsafe", place)
            assert.equal(faultOf({ workspaceAccess, readablePaths: [place] }), "sandbox_path_unsafe", place)
          }
        }
        // Another writable path is a place of servers as well.
        const open = [outside("a")]
        assert.equal(faultOf({ writablePaths: [...open, outside("a", "cached")] }), "sandbox_path_unsafe")
        const readablePaths = [outside("a", "cached")]
        assert.equal(faultOf({ writablePaths: open, readablePaths }), "sandbox_path_unsafe")
        // So is the directory that a server starts in, unless it is shown anyhow.
        assert.equal(faultOf({ cwd: inWorkspace("out") }), "sandbox_path_unsafe")
        assert.equal(kindAt({ cwd: inWorkspace("stay") }, "a", "b"), "write")
      })
    })

    it("says which setting to change and to what", () => {
      linked([[inWorkspace("cache"), outside("a")]], () => {
        const layout = layoutOf(request({ writablePaths: [inWorkspace("cache")] }))
        if (Either.isRight(layout)) assert.fail("there is a layout")
        assert.equal(layout.left.field, "execution.writable_paths")
        for (const part of [inWorkspace("cache"), outside("a")]) assert.include(layout.left.text, `'${part}'`)
        assert.include(layout.left.fix, "real path")
      })
    })

    it("mounts what other links lead to, and never the link", () => {
      linked([[outside("cache"), outside("a")]], () => {
        const given = { writablePaths: ["~/cache"], homeDirectory: outside() }
        assert.equal(kindAt(given, "b", "a"), "write")
        assert.isFalse(made(given).some((mount) => mount.path === outside("cache")))
        assert.equal(kindAt({ readablePaths: ["~/cache/a"] }, "b", "a", "a"), "read")
        const own = { ...given, privateDirectories: [outside("a", "b")] }
        assert.equal(kindAt(own, "b", "a", "b"), "cover")
      })
    })

    it("uncovers no hidden place as a whole", () => {
      for (const to of [outside(), "/tmp", "/"]) {
        linked([[path.join(base, "wide"), to]], () => {
          assert.equal(faultOf({ writablePaths: [path.join(base, "wide")] }), "sandbox_too_wide", to)
          assert.equal(faultOf({ readablePaths: [path.join(base, "wide")] }), "sandbox_too_wide", to)
        })
      }
      assert.equal(faultOf({ writablePaths: ["/tmp/.."] }), "sandbox_too_wide")
    })

    it("refuses a workspace that a server could have turned", () => {
      linked([[outside("project"), inWorkspace()]], () => {
        const given = {
          workspaceWritten: outside("project"),
          writablePaths: [outside()],
          homeDirectory: "/nonexistent"
        }
        assert.equal(faultOf(given), "sandbox_path_unsafe")
        assert.equal(faultOf({ ...given, workspace: outside("project") }), "sandbox_path_unsafe")
      })
      // Without a link yet: what is read-only would have to be mounted from where a server could put one.
      const below = { workspace: outside("a"), cwd: outside("a"), writablePaths: [outside()] }
      const given = { ...below, homeDirectory: "/nonexistent" }
      assert.equal(faultOf({ ...given, workspaceAccess: "read-only" }), "sandbox_path_unsafe")
      assert.equal(kindAt(given, "b", "a"), "write")
      assert.equal(faultOf({ writablePaths: [outside()], readablePaths: [outside("a")] }), "sandbox_path_unsafe")
    })

    it("covers no directory of sigil by a name that a server could turn", () => {
      linked(
        [
          [inWorkspace("own"), outside("a")],
          [outside("state"), inWorkspace("own")]
        ],
        () => assert.equal(faultOf({ privateDirectories: [outside("state")] }), "sandbox_exposes_state")
      )
    })
  })

  it("covers sockets that act for the user", () => {
    const socket = path.join(base, "a", "agent")
    fs.writeFileSync(socket, "")
    assert.equal(kindAt({ sockets: [socket] }, "a", "agent"), "cover_file")
    fs.rmSync(socket)
  })
})

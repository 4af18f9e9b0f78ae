import * as fc from "fast-check"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { make, projectKey, workspaceId } from "../../src/config/Locations.ts"
import { projectIdentity } from "../../src/config/ProjectIdentity.ts"

let base = ""
const git = (cwd: string, ...args: ReadonlyArray<string>): void => {
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], { cwd, stdio: "ignore" })
}
const identity = (launchDirectory: string): string =>
  projectIdentity({ launchDirectory, home: path.join(base, "home/.sigil"), homeDirectory: path.join(base, "home") })
const at = (...names: ReadonlyArray<string>): string => path.join(base, ...names)

beforeAll(() => {
  base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-identity-")))
  for (const name of ["home/.sigil/projects", "main/sub/deep", "plain/sub", "forged", "stolen"])
    fs.mkdirSync(at(name), { recursive: true })
  git(at("main"), "init", "-q")
  git(at("main"), "commit", "-q", "--allow-empty", "-m", "x")
  git(at("main"), "worktree", "add", "-q", at("linked"), "-b", "other")
  fs.mkdirSync(at("linked/sub"))
  git(base, "init", "-q", "--bare", at("bare.git"))
  git(at("main"), "push", "-q", at("bare.git"), "HEAD:refs/heads/main")
  git(at("bare.git"), "worktree", "add", "-q", at("from-bare"), "main")
  fs.symlinkSync(at("main/sub"), at("link"))
  // An archive whose `.git` file points into somebody else's repository.
  fs.writeFileSync(at("forged/.git"), `gitdir: ${at("main/.git/worktrees/linked")}\n`)
  // The same with a git directory of its own that names the other repository as its common one.
  fs.mkdirSync(at("stolen/fake"))
  fs.writeFileSync(at("stolen/.git"), "gitdir: ./fake\n")
  fs.writeFileSync(at("stolen/fake/commondir"), at("main/.git"))
  fs.writeFileSync(at("stolen/fake/gitdir"), at("stolen/.git"))
})
afterAll(() => fs.rmSync(base, { recursive: true, force: true }))

describe("project identity", () => {
  it("is the main checkout for its sub-directories and linked worktrees", () => {
    for (const place of ["main", "main/sub/deep", "linked", "linked/sub", "link"])
      assert.strictEqual(identity(at(place)), at("main"))
  })
  it("is the repository itself for a worktree of a bare one", () => {
    assert.strictEqual(identity(at("from-bare")), at("bare.git"))
  })
  it("is the launch directory outside git", () => {
    assert.strictEqual(identity(at("plain/sub")), at("plain/sub"))
  })
  it("is the home directory inside the config home", () => {
    assert.strictEqual(identity(at("home/.sigil/projects")), at("home"))
    assert.strictEqual(identity(at("home/.sigil")), at("home"))
  })
  it("is not borrowed from a repository that does not know the directory", () => {
    assert.strictEqual(identity(at("forged")), at("forged"))
    assert.strictEqual(identity(at("stolen")), at("stolen"))
  })
})

describe("locations", () => {
  const host = (variables: { readonly [name: string]: string }, cwd = "/w") => ({
    get: (name: string) => variables[name],
    cwd,
    homeDirectory: "/home/u",
    platform: "linux" as const
  })
  it("follow the three homes and the command line", () => {
    const plain = make(host({ SIGIL_HOME: " " }))
    assert.deepEqual(
      [plain.sigilToml, plain.approvals, plain.eras, plain.locks, plain.launchDirectory],
      [
        "/home/u/.sigil/sigil.toml",
        "/home/u/.sigil/state/mcp-approvals.json",
        "/home/u/.sigil/cache/eras.json",
        "/home/u/.sigil/state/locks",
        "/w"
      ]
    )
    const moved = make(host({ SIGIL_HOME: "/h", SIGIL_STATE_HOME: "state", SIGIL_CACHE_HOME: "/c" }), {
      configPath: "my.toml",
      cwd: "d"
    })
    assert.deepEqual(
      [moved.sigilToml, moved.settingsJson, moved.mcpState("/p"), moved.eras, moved.launchDirectory],
      ["/w/my.toml", "/h/settings.json", `/w/state/projects/${projectKey("/p")}/mcp-state.json`, "/c/eras.json", "/w/d"]
    )
    assert.strictEqual(moved.mcpLocalJson("/a/b"), `/h/projects/${projectKey("/a/b")}/mcp.local.json`)
    assert.match(moved.auditLog("/a/b"), /^\/w\/state\/workspaces\/b-[0-9a-f]{16}\/audit\.jsonl$/)
  })
  it.each([
    ["/a/b", "a-b"],
    ["/", "default"],
    ["/a//b-/", "a-b"],
    ["/..", "default"]
  ])("the key of %s is %s", (identityPath, key) => {
    assert.match(projectKey(identityPath), new RegExp(`^${key.replaceAll(".", "\\.")}-[0-9a-f]{16}$`))
  })
  it("near names differ: private files of one project are never another's", () => {
    assert.notStrictEqual(projectKey("/a/b"), projectKey("/a-b"))
    assert.notStrictEqual(projectKey("/a b"), projectKey("/a-b"))
    assert.notStrictEqual(projectKey("/a b"), projectKey("/a\tb"))
  })
  it("keys and workspace ids are always one safe directory name", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("/", "\\", ".", "-", " ", "a", "é", ":") }), (text) => {
        for (const name of [projectKey(text), workspaceId(text)]) assert.match(name, /^(?!\.{1,2}$)[A-Za-z0-9._-]+$/)
      })
    )
  })
})

/**
 * Symbolic links and the paths of `[execution]`, with real bubblewrap: a link that a server or a repository made shows
 * a server nothing. Where the system has no sandbox nothing is started at all.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { makeProject, type Project, repository } from "../support/Command.ts"

const servers = path.join(repository, "test", "support", "servers")
let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
  fs.writeFileSync(path.join(project.home, "secret"), "s")
})
afterEach(() => project.dispose())

/** The settings of the user; the server may make links. */
const configured = (paths: {
  readonly writable?: ReadonlyArray<string>
  readonly readable?: ReadonlyArray<string>
}): void => {
  project.write(
    path.join(project.home, ".sigil", "sigil.toml"),
    [
      '[execution]\nstrategy = "sandbox"',
      `readable_paths = ${JSON.stringify([servers, ...(paths.readable ?? [])])}`,
      `writable_paths = ${JSON.stringify(paths.writable ?? [])}`,
      '[[mcp_servers]]\nname = "prying"\ntransport = "stdio"',
      `command = ${JSON.stringify(process.execPath)}`,
      `args = [${JSON.stringify(path.join(servers, "prying.mjs"))}]`,
      '[mcp_servers.trust]\napproval_default = "allow"'
    ].join("\n")
  )
}

/** One call: what the server said, or what sigil refused it with. */
const act = async (name: string, args: { readonly [key: string]: string }) => {
  const { stdout } = await project.run(["--json", "mcp", "call", "prying", name, "--args", JSON.stringify(args)])
  const document = JSON.parse(stdout)
  return { said: document.content?.[0]?.text, error: document.error }
}
const noSandbox = (error: { readonly reason?: string } | undefined): boolean =>
  error?.reason === "bubblewrap_missing" || error?.reason === "refused"

/** The refusal of the start for what a path of the settings leads to. */
const refusedFor = async (reason: string, field: string, secret = path.join(project.home, "secret")) => {
  const { error, said } = await act("read", { path: secret })
  assert.isUndefined(said)
  assert.deepInclude(error, { code: "SIGIL_ISOLATION_UNAVAILABLE", reason })
  assert.equal(error.where.field, field)
  assert.notInclude(error.message, "bwrap")
  assert.notInclude(error.fix, "local")
  assert.isFalse(fs.existsSync(path.join(project.home, "made")))
}

describe("a writable path of the workspace that does not exist", () => {
  it("is nothing that a server of one run can turn to the home directory for the next", async () => {
    const cache = path.join(project.root, "cache")
    configured({ writable: [cache] })
    const first = await act("link", { path: cache, to: project.home })
    if (noSandbox(first.error)) return
    assert.equal(first.said, "ok")
    assert.equal(fs.readlinkSync(cache), project.home)
    await refusedFor("sandbox_path_unsafe", "execution.writable_paths")
    // Not written through the link either, whatever the start is refused with.
    const { error } = await act("write", { path: path.join(cache, "made") })
    assert.equal(error.reason, "sandbox_path_unsafe")
    assert.isFalse(fs.existsSync(path.join(project.home, "made")))
    // A real directory is what it says, and its links show nothing.
    fs.rmSync(cache)
    fs.mkdirSync(cache)
    assert.equal((await act("link", { path: path.join(cache, "in"), to: project.home })).said, "ok")
    assert.equal((await act("read", { path: path.join(cache, "in", "secret") })).said, "ENOENT")
  })

  it("is no link that the repository ships", async () => {
    fs.mkdirSync(path.join(project.root, "deep"))
    fs.symlinkSync(project.home, path.join(project.root, "deep", "cache"))
    configured({ writable: [path.join(project.root, "deep", "cache")] })
    const { error } = await act("read", { path: path.join(project.home, "secret") })
    if (noSandbox(error)) return
    await refusedFor("sandbox_path_unsafe", "execution.writable_paths")
    configured({ readable: [path.join(project.root, "deep", "cache", ".ssh")] })
    await refusedFor("sandbox_path_unsafe", "execution.readable_paths")
  })
})

describe("a link outside of where servers write", () => {
  it("shows no hidden place as a whole, and the reason is the true one", async () => {
    const link = path.join(path.dirname(project.home), "link")
    for (const to of [project.home, "/tmp", "/"]) {
      fs.symlinkSync(to, link)
      configured({ writable: [link] })
      const { error } = await act("read", { path: path.join(project.home, "secret") })
      if (noSandbox(error)) return
      await refusedFor("sandbox_too_wide", "execution.writable_paths")
      fs.rmSync(link)
    }
  })

  it("is as good as what it leads to", async () => {
    const real = path.join(path.dirname(project.home), "disk")
    fs.mkdirSync(real)
    fs.symlinkSync(real, path.join(project.home, ".cache"))
    configured({ writable: ["~/.cache"] })
    const written = await act("write", { path: path.join(real, "made") })
    if (noSandbox(written.error)) return
    assert.equal(written.said, "ok")
    assert.equal(fs.readFileSync(path.join(real, "made"), "utf8"), "by the server")
    assert.equal((await act("read", { path: path.join(project.home, "secret") })).said, "ENOENT")
  })
})

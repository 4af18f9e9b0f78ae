/** Completions in shells that not every machine has; `.ci/run` installs them and runs `npm run test:shells`. */
import { spawnSync } from "node:child_process"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { makeProject, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const script = async (shell: string): Promise<string> => {
  const { stdout, code } = await project.run(["completions", shell])
  assert.equal(code, 0)
  return project.write(`sigil.${shell}`, stdout)
}

describe("completions", () => {
  for (const shell of ["zsh", "fish"]) {
    it(`are accepted by ${shell}`, async () => {
      const file = await script(shell)
      const check = shell === "zsh" ? ["-f", "-n", file] : ["--no-config", "-n", file]
      const ran = spawnSync(shell, check, { encoding: "utf8" })
      assert.isUndefined(ran.error, `${shell} is installed`)
      assert.equal(ran.status, 0, ran.stderr)
    })
  }

  it("complete in fish", async () => {
    const file = await script("fish")
    const command = `source ${file}; complete -C 'sigil mcp ca'; complete -C 'sigil mcp add --scope u'`
    const ran = spawnSync("fish", ["--no-config", "-c", command], { encoding: "utf8" })
    assert.match(ran.stdout, /^call\t/m)
    assert.match(ran.stdout, /^user/m)
  })

  it("complete in zsh", async () => {
    const file = await script("zsh")
    // The functions of zsh's own completion are replaced by ones that print what they are given.
    const stubs = `compdef() { :; }; _describe() { print -l -- "\${candidates[@]%%:*}"; }; _files() { :; }`
    const complete = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
      const list = words.map((word) => `'${word}'`).join(" ")
      const ran = spawnSync(
        "zsh",
        ["-f", "-c", `${stubs}; source ${file}; words=(${list}); CURRENT=${words.length}; _sigil`],
        {
          encoding: "utf8"
        }
      )
      assert.equal(ran.status, 0, ran.stderr)
      return ran.stdout.trim().split("\n")
    }
    assert.include(complete(["sigil", "mcp", "ca"]), "call")
    assert.deepEqual(complete(["sigil", "mcp", "add", "--scope", "u"]), ["project", "user", "local"])
  })
})

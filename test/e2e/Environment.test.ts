/** What a server can see of its host's environment: little, and what was granted. */
import * as fs from "node:fs"
import * as path from "node:path"
import { spawnSync } from "node:child_process"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { bin, inline, makeProject, odd, type Project } from "../support/Command.ts"

let project: Project & { readonly dispose: () => void }
beforeEach(() => {
  project = makeProject()
})
afterEach(() => project.dispose())

const secrets = {
  SSH_AUTH_SOCK: "/run/agent.sock",
  OPENAI_API_KEY: "sk-test-0123456789abcdef",
  HTTPS_PROXY: "http://proxy.invalid:3128",
  AWS_SECRET_ACCESS_KEY: "aws-test-secret-value"
}

const seen = async (more: object, env: { readonly [name: string]: string } = secrets) => {
  const { document, code } = await project.document(
    "call",
    [...inline("odd", [odd, "environment"], more), "mcp", "call", "odd", "environment"],
    { env }
  )
  assert.equal(code, 0)
  return JSON.parse(String(document.content[0]?.["text"])) as { readonly [name: string]: string }
}

describe("the environment of a server", () => {
  it("has none of HOME, agents, keys and proxies of the parent", async () => {
    const environment = await seen({})
    assert.deepEqual(
      Object.keys(environment).filter((name) => !["PATH", "LANG", "TZ", "TMPDIR"].includes(name)),
      ["SIGIL_GENERATION"]
    )
  })

  it("has a granted variable, whose value is hidden in what is shown", async () => {
    const environment = await seen({ inheritEnv: ["OPENAI_API_KEY", "HOME"] })
    assert.equal(environment["OPENAI_API_KEY"], "[hidden]")
    assert.equal(environment["HOME"], project.home)
    assert.notProperty(environment, "SSH_AUTH_SOCK")
  })

  it("has what its entry sets, templates expanded", async () => {
    const environment = await seen({ env: { MODE: "fast", WHERE: "${PLACE:-here}" } })
    assert.equal(environment["MODE"], "fast")
    assert.equal(environment["WHERE"], "here")
  })

  it("is refused before any process when grants are missing, all names together", async () => {
    const file = path.join(project.root, "messages")
    const config = inline("odd", [odd, "plain", file], { inheritEnv: ["NOT_SET_A", "NOT_SET_B"] })
    const { document, code, stderr } = await project.document("error", [...config, "mcp", "call", "odd", "echo"])
    assert.equal(code, 2)
    assert.equal(stderr, "")
    assert.equal(document.error.code, "SIGIL_MISSING_GRANT")
    assert.equal(document.error.reason, "configuration_invalid")
    assert.include(document.error.message, "NOT_SET_A, NOT_SET_B")
    assert.isFalse(fs.existsSync(file))
  })

  it("is refused before any process when a grant is not UTF-8", () => {
    const file = path.join(project.root, "messages")
    const config = inline("odd", [odd, "plain", file], { inheritEnv: ["BROKEN"] })
    // Node cannot pass such bytes to a child; a shell can.
    const ran = spawnSync(
      "sh",
      [
        "-c",
        `BROKEN=$(printf '\\377\\376') exec "$0" "$@"`,
        process.execPath,
        bin(),
        "--json",
        ...config,
        "mcp",
        "call",
        "odd",
        "echo"
      ],
      { encoding: "utf8", cwd: project.root, env: { PATH: process.env["PATH"], HOME: project.home } }
    )
    assert.equal(ran.status, 2)
    const { error } = JSON.parse(ran.stdout)
    assert.equal(error.reason, "configuration_invalid")
    assert.include(error.message, "not valid UTF-8: BROKEN")
    assert.isFalse(fs.existsSync(file))
  })
})

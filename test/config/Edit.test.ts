import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { assert, describe } from "vitest"
import { isCredentialName, literalCredentials, looksLikeCredential } from "../../src/config/Credentials.ts"
import { addServer, appendPermissionRule, type EditTarget, removeServer, targetOf } from "../../src/config/Edit.ts"
import * as Toml from "../../src/config/Toml.ts"
import { toJson } from "../../src/config/Located.ts"
import { right } from "./Support.ts"

const directory = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-edit-")))),
  (base) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
)
const targets = Effect.map(directory, (base) => {
  const target = (kind: EditTarget["kind"], scope: EditTarget["scope"]): EditTarget => ({
    file: path.join(base, kind),
    scope,
    kind
  })
  return {
    toml: target("sigil.toml", "user"),
    settings: target("settings.json", "user"),
    project: target(".mcp.json", "project"),
    local: target("mcp.local.json", "local")
  }
})
const text = (target: EditTarget): string => fs.readFileSync(target.file, "utf8")
const mode = (target: EditTarget): number => fs.statSync(target.file).mode & 0o777

describe("adding and removing servers", () => {
  it.scopedLive("writes new files with the mode of their scope", () =>
    Effect.gen(function* () {
      const { toml, settings, project, local } = yield* targets
      assert.isTrue(
        yield* addServer(toml, {
          name: "a",
          fields: { transport: "stdio", command: "x", required: false, cwd: undefined }
        })
      )
      assert.isTrue(yield* addServer(settings, { name: "a", fields: { transport: "stdio", command: "x" } }))
      assert.isTrue(yield* addServer(project, { name: "a", fields: { command: "x", args: ["--", "-y"] } }))
      assert.isTrue(yield* addServer(local, { name: "a", fields: { command: "x" } }))
      assert.deepEqual([toml, settings, project, local].map(mode), [0o600, 0o600, 0o644, 0o600])
      assert.strictEqual(
        text(toml),
        '[[mcp_servers]]\nname = "a"\ntransport = "stdio"\ncommand = "x"\nrequired = false\n'
      )
      assert.strictEqual(
        text(project),
        '{\n  "mcpServers": {\n    "a": {\n      "command": "x",\n      "args": [\n        "--",\n        "-y"\n      ]\n    }\n  }\n}\n'
      )
      assert.isTrue(yield* removeServer(project, "a"))
      assert.isTrue(yield* removeServer(toml, "a"))
      assert.strictEqual(text(toml), "")
    })
  )

  it.scopedLive("refuses a name that is taken, unless forced", () =>
    Effect.gen(function* () {
      for (const target of Object.values(yield* targets)) {
        const fields = { transport: "stdio", command: "x" }
        yield* addServer(target, { name: "a", fields })
        const before = text(target)
        const error = yield* Effect.flip(addServer(target, { name: "a", fields: { ...fields, command: "y" } }))
        assert.strictEqual(error.code, "SIGIL_NAME_TAKEN")
        assert.strictEqual(text(target), before)
        yield* addServer(target, { name: "a", fields: { ...fields, command: "y" } }, { force: true })
        assert.strictEqual(text(target), before.replace('"x"', '"y"'))
      }
    })
  )

  it.scopedLive("leaves a file alone that does not parse, or an entry that could not be used", () =>
    Effect.gen(function* () {
      const { toml, project, settings } = yield* targets
      for (const target of [toml, project, settings]) {
        fs.writeFileSync(target.file, "{ =")
        const error = yield* Effect.flip(addServer(target, { name: "a", fields: { command: "x" } }))
        assert.strictEqual(error.code, "SIGIL_CONFIG_UNREADABLE")
        assert.strictEqual((yield* Effect.flip(removeServer(target, "a"))).code, "SIGIL_CONFIG_UNREADABLE")
        assert.strictEqual(text(target), "{ =")
        fs.rmSync(target.file)
        assert.strictEqual(
          (yield* Effect.flip(addServer(target, { name: "a", fields: { args: [] } }))).code,
          "SIGIL_CONFIG_INVALID"
        )
        assert.strictEqual(
          (yield* Effect.flip(addServer(target, { name: "builtin:a", fields: { command: "x" } }))).code,
          "SIGIL_CONFIG_INVALID"
        )
        assert.isFalse(fs.existsSync(target.file))
      }
      assert.strictEqual(
        (yield* Effect.flip(addServer(project, { name: "a", fields: { command: "x", inherit_env: ["A"] } }))).code,
        "SIGIL_SCOPE_REFUSED"
      )
    })
  )

  it.scopedLive("says near names when there is nothing to remove", () =>
    Effect.gen(function* () {
      const { project } = yield* targets
      yield* addServer(project, { name: "files", fields: { command: "x" } })
      const error = yield* Effect.flip(removeServer(project, "file"))
      assert.strictEqual(error.code, "SIGIL_UNKNOWN_SERVER")
      assert.deepEqual(error.candidates, ["files"])
    })
  )

  it.scopedLive("takes prototype names", () =>
    Effect.gen(function* () {
      for (const target of Object.values(yield* targets)) {
        yield* addServer(target, { name: "a", fields: { transport: "stdio", command: "x" } })
        const before = text(target)
        yield* addServer(target, { name: "__proto__", fields: { transport: "stdio", command: "x" } })
        assert.include(text(target), "__proto__")
        yield* removeServer(target, "__proto__")
        assert.strictEqual(text(target), before)
      }
    })
  )

  it.scopedLive("refuses a literal credential in the project, and names the variable", () =>
    Effect.gen(function* () {
      const { project, local } = yield* targets
      const entry = { name: "a", fields: { command: "x", env: { GITHUB_TOKEN: "abc123def" } } }
      const error = yield* Effect.flip(addServer(project, entry))
      assert.strictEqual(error.code, "SIGIL_LITERAL_CREDENTIAL")
      assert.include(error.fix ?? "", "${GITHUB_TOKEN}")
      assert.notInclude(JSON.stringify([error.text, error.fix, error.details]), "abc123def")
      assert.isFalse(fs.existsSync(project.file))
      assert.isTrue(yield* addServer(local, entry))
      assert.isTrue(
        yield* addServer(project, { name: "a", fields: { command: "x", env: { GITHUB_TOKEN: "${GITHUB_TOKEN}" } } })
      )
    })
  )

  it.scopedLive("two writers at once lose nothing", () =>
    Effect.gen(function* () {
      const { project, toml } = yield* targets
      const names = ["a", "b", "c", "d", "e", "f"]
      for (const target of [project, toml]) {
        yield* Effect.forEach(
          names,
          (name) => addServer(target, { name, fields: { transport: "stdio", command: name } }),
          { concurrency: "unbounded" }
        )
        for (const name of names) assert.isTrue(yield* removeServer(target, name))
      }
    })
  )

  it.scopedLive("appends permission rules", () =>
    Effect.gen(function* () {
      const { toml } = yield* targets
      assert.isTrue(yield* appendPermissionRule(toml.file, { tool_name: "mcp__a__b", mode: "allow" }))
      assert.isFalse(yield* appendPermissionRule(toml.file, { tool_name: "mcp__a__b", mode: "allow" }))
      assert.isTrue(yield* appendPermissionRule(toml.file, { tool_name: "mcp__a__c", mode: "deny" }))
      assert.strictEqual(
        JSON.stringify(toJson(right(Toml.parse(text(toml), "f")).root)),
        '{"permission":{"rules":[{"tool_name":"mcp__a__b","mode":"allow"},{"tool_name":"mcp__a__c","mode":"deny"}]}}'
      )
      assert.strictEqual(mode(toml), 0o600)
    })
  )

  it("knows the file of each scope", () => {
    const paths = {
      sigilToml: "/h/sigil.toml",
      settingsJson: "/h/settings.json",
      mcpLocalJson: (identity: string) => `/h${identity}/mcp.local.json`
    }
    const facts = { launchDirectory: "/p/", projectIdentity: "/i" }
    assert.deepEqual(
      [
        targetOf("user", paths, facts),
        targetOf("user", paths, { ...facts, settings: true }),
        targetOf("local", paths, facts),
        targetOf("project", paths, facts)
      ].map(({ file, scope, kind }) => [file, scope, kind]),
      [
        ["/h/sigil.toml", "user", "sigil.toml"],
        ["/h/settings.json", "user", "settings.json"],
        ["/h/i/mcp.local.json", "local", "mcp.local.json"],
        ["/p/.mcp.json", "project", ".mcp.json"]
      ]
    )
  })
})

describe("literal credentials", () => {
  it.each([
    { env: { API_KEY: "x1y2z3" } },
    { env: { OPENAI_APIKEY: "x1y2z3" } },
    { env: { DB_PASSWORD: "hunter2" } },
    { env: { ANY: `sk-${"a1".repeat(10)}` } },
    { env: { ANY: `ghp_${"a1".repeat(18)}` } },
    { env: { ANY: `github_pat_${"a1".repeat(18)}` } },
    { env: { ANY: `xoxb-${"12".repeat(8)}` } },
    { env: { ANY: "AKIAIOSFODNN7EXAMPLE" } },
    { env: { ANY: `AIza${"a1".repeat(18)}` } },
    { headers: { Authorization: "Bearer abc" } },
    { args: ["--api-key=abc123"] },
    { args: ["--token", "abc123"] },
    { args: ["--header", "Authorization: Bearer abc"] },
    { args: ["postgres://u:p@h/db"] },
    { args: ["TOKEN=abc"] },
    { url: "https://h/?api_key=abc123" }
  ])("finds it in %j", (fields) => {
    assert.lengthOf(literalCredentials(fields), 1)
  })

  it.each([
    { env: { API_KEY: "${API_KEY}", MAX_TOKENS: "4096", USE_TOKEN: "true", PASSWORD_FILE: "/run/x", SECRET: "" } },
    { env: { TOKEN_URL: "https://h/oauth", SECRET_NAME: "prod" } },
    { env: { KEYBOARD: "us", MONKEY: "x", GOOGLE_APPLICATION_CREDENTIALS: "/home/u/c.json" } },
    { headers: { Authorization: "Bearer ${TOKEN}", "X-Client": "sigil" } },
    {
      args: [
        "--token",
        "--verbose",
        "-y",
        "@scope/pkg",
        "/tmp",
        "--key-file=/x",
        "https://h/path",
        "--max-tokens",
        "100"
      ]
    },
    { args: ["--token", "${TOKEN}", "--api-key=${KEY:-}"] },
    { url: "https://h/?q=1" }
  ])("finds none in %j", (fields) => {
    assert.deepEqual(literalCredentials(fields), [])
  })

  it("templates are never credentials", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Z_]{1,12}$/), fc.stringMatching(/^[A-Z_]{1,12}$/), (name, variable) => {
        assert.deepEqual(
          literalCredentials({ env: { [name]: `\${${variable}}` }, args: [`--${name}=\${${variable}}`] }),
          []
        )
        assert.isFalse(looksLikeCredential(name))
        assert.strictEqual(isCredentialName(name), isCredentialName(name.toLowerCase()))
      })
    )
  })
})

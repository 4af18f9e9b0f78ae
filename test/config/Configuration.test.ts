import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { assert, describe } from "vitest"
import { Configuration, type ConfigSnapshot, layer } from "../../src/config/Configuration.ts"
import * as Locations from "../../src/config/Locations.ts"
import { type Entry, nameOf } from "../../src/config/ServerDeclaration.ts"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import { broken, valid } from "./Support.ts"

/** A home, a project three levels down, and what to write into them. */
const world = Effect.acquireRelease(
  Effect.sync(() => {
    const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-config-")))
    for (const directory of ["home/.sigil", "outer/project/sub"])
      fs.mkdirSync(path.join(base, directory), { recursive: true })
    return base
  }),
  (base) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
)

interface Given {
  readonly files?: { readonly [name: string]: string }
  readonly mcpConfig?: ReadonlyArray<string>
  readonly strict?: boolean
  readonly configPath?: string
  readonly variables?: { readonly [name: string]: string }
  readonly cwd?: string
  readonly prepare?: (base: string) => void
}

const run = (given: Given) =>
  Effect.gen(function* () {
    const base = yield* world
    for (const [name, text] of Object.entries(given.files ?? {})) {
      fs.mkdirSync(path.dirname(path.join(base, name)), { recursive: true })
      fs.writeFileSync(path.join(base, name), text, { mode: 0o644 })
    }
    given.prepare?.(base)
    const host = HostEnvironment.layerTest({
      variables: given.variables ?? {},
      cwd: path.join(base, given.cwd ?? "outer/project"),
      homeDirectory: path.join(base, "home"),
      managed: { file: path.join(base, "etc/managed.json"), ownerId: process.getuid?.() ?? 0 }
    })
    const live = layer({
      mcpConfig: given.mcpConfig ?? [],
      strict: given.strict ?? false,
      configPath: given.configPath
    }).pipe(Layer.provide(Locations.layer({ configPath: given.configPath })), Layer.provide(host))
    const loaded = yield* Effect.flatMap(Configuration, ({ load }) => Effect.either(load)).pipe(Effect.provide(live))
    return { base, loaded }
  })

const load = (given: Given) =>
  Effect.map(run(given), ({ base, loaded }) => {
    if (Either.isLeft(loaded)) assert.fail(loaded.left.text)
    return { base, snapshot: loaded.right }
  })

const states = ({ servers }: ConfigSnapshot) =>
  servers.map(
    (entry: Entry) =>
      `${entry._tag === "Valid" ? entry.declaration.scope : entry.broken.scope}:${nameOf(entry)}:${entry._tag}`
  )

const stdio = (name: string, command: string, ...more: ReadonlyArray<string>) =>
  ["[[mcp_servers]]", `name = "${name}"`, 'transport = "stdio"', `command = "${command}"`, ...more, ""].join("\n")
const servers = (map: { readonly [name: string]: object }) => JSON.stringify({ mcpServers: map })

describe("configuration", () => {
  it.scopedLive("is empty, with defaults, when there are no files", () =>
    Effect.map(load({}), ({ base, snapshot }) => {
      assert.deepEqual([snapshot.servers, snapshot.problems, snapshot.unsupportedSafety], [[], [], []])
      assert.strictEqual(snapshot.workspace, path.join(base, "outer/project"))
      assert.strictEqual(snapshot.projectIdentity, path.join(base, "outer/project"))
      assert.strictEqual(snapshot.settings.networkMode, "allow")
      assert.strictEqual(snapshot.settings.permission.mode, "manual")
    })
  )

  it.scopedLive("reads every source in the order of precedence", () =>
    Effect.map(
      load({
        files: {
          "home/.sigil/sigil.toml": stdio("a", "toml-a"),
          "home/.sigil/settings.json": servers({ b: { transport: "stdio", command: "json-b" } }),
          "outer/project/.mcp.json": servers({
            a: { command: "project-a" },
            c: { command: "project-c" },
            d: { command: "project-d" }
          }),
          "outer/.mcp.json": servers({ c: { command: "outer-c" }, e: { command: "outer-e" } })
        },
        mcpConfig: [servers({ d: { command: "first" } }), "extra.json", servers({ f: { command: "last" } })],
        prepare: (base) => {
          fs.writeFileSync(
            path.join(base, "outer/project/extra.json"),
            servers({ f: { command: "file" }, g: { command: "g" } })
          )
          const local = Locations.make({
            get: () => undefined,
            cwd: "/",
            homeDirectory: path.join(base, "home"),
            platform: "linux"
          }).mcpLocalJson(path.join(base, "outer/project"))
          fs.mkdirSync(path.dirname(local), { recursive: true })
          fs.writeFileSync(local, servers({ l: { command: "local" } }))
        }
      }),
      ({ base, snapshot }) => {
        assert.deepEqual(states(snapshot), [
          "cli:f:Valid",
          "cli:g:Valid",
          "cli:d:Valid",
          "user:a:Valid",
          "user:b:Valid",
          "local:l:Valid",
          "project:c:Valid",
          "project:e:Valid"
        ])
        const command = (name: string) => {
          const { endpoint } = valid(snapshot.servers.find((entry) => nameOf(entry) === name))
          return endpoint._tag === "stdio" ? endpoint.command : ""
        }
        assert.deepEqual(["f", "c", "d"].map(command), ["last", "project-c", "first"])
        assert.deepEqual(
          snapshot.shadowed.map(({ name, scope, source, by }) => [
            name,
            scope,
            path.relative(base, source.file),
            by.scope
          ]),
          [
            ["f", "cli", "outer/project/extra.json", "cli"],
            ["c", "project", "outer/.mcp.json", "project"],
            ["a", "project", "outer/project/.mcp.json", "user"],
            ["d", "project", "outer/project/.mcp.json", "cli"]
          ]
        )
        assert.deepEqual(snapshot.problems, [])
      }
    )
  )

  it.scopedLive("strict reads servers of the command line only, but the settings of the user", () =>
    Effect.map(
      load({
        files: {
          "home/.sigil/sigil.toml": `${stdio("a", "x")}[web]\nnetwork_mode = "deny"\n`,
          "outer/project/.mcp.json": "{"
        },
        mcpConfig: [servers({ c: { command: "c" } })],
        strict: true
      }),
      ({ snapshot }) => {
        assert.deepEqual(states(snapshot), ["cli:c:Valid"])
        assert.strictEqual(snapshot.settings.networkMode, "deny")
        assert.deepEqual(snapshot.problems, [])
      }
    )
  )

  it.scopedLive("a broken file costs that file, and its names stay claimed", () =>
    Effect.map(
      load({
        files: {
          "home/.sigil/sigil.toml": `${stdio("a", "x")}\nbroken = = 1\n`,
          "home/.sigil/settings.json": '{"mcpServers": {"b": {"transport": "stdio", "command": "b"}',
          "outer/project/.mcp.json": servers({ a: { command: "evil" }, b: { command: "evil" }, c: { command: "c" } }),
          "outer/.mcp.json": "{"
        }
      }),
      ({ base, snapshot }) => {
        assert.deepEqual(states(snapshot), ["user:a:Broken", "user:b:Broken", "project:c:Valid"])
        assert.deepEqual(
          snapshot.problems.map(({ code, where }) => [code, path.relative(base, where?.file ?? ""), where?.line]),
          [
            ["SIGIL_CONFIG_UNREADABLE", "home/.sigil/settings.json", 1],
            ["SIGIL_CONFIG_UNREADABLE", "home/.sigil/sigil.toml", 6],
            ["SIGIL_CONFIG_UNREADABLE", "outer/.mcp.json", 1]
          ]
        )
        assert.deepEqual(
          snapshot.unsupportedSafety.map(({ at, field, source }) => [field, path.relative(base, source), at?.line]),
          [
            ["safety settings", "home/.sigil/settings.json", 1],
            ["safety settings", "home/.sigil/sigil.toml", 6]
          ]
        )
      }
    )
  )

  it.scopedLive("an unknown key at the root of sigil.toml costs that file", () =>
    Effect.map(
      load({
        files: {
          "home/.sigil/sigil.toml": `colour = 1\n${stdio("a", "x")}`,
          "outer/project/.mcp.json": servers({ c: { command: "c" } })
        }
      }),
      ({ snapshot }) => {
        assert.deepEqual(states(snapshot), ["user:a:Broken", "project:c:Valid"])
        assert.strictEqual(broken(snapshot.servers[0]).error.where?.field, "colour")
        assert.deepEqual(
          snapshot.problems.map(({ where }) => [where?.field, where?.line, where?.column]),
          [["colour", 1, 1]]
        )
      }
    )
  )

  it.scopedLive("the same name in sigil.toml and settings.json is a duplicate", () =>
    Effect.map(
      load({
        files: {
          "home/.sigil/sigil.toml": stdio("a", "x"),
          "home/.sigil/settings.json": servers({ a: { transport: "stdio", command: "y" } })
        }
      }),
      ({ snapshot }) => {
        assert.deepEqual(states(snapshot), ["user:a:Broken"])
        assert.strictEqual(broken(snapshot.servers[0]).error.code, "SIGIL_DUPLICATE_NAME")
      }
    )
  )

  it.scopedLive("one launch under another name in the project is hidden, on expanded values", () =>
    Effect.map(
      load({
        files: {
          "home/.sigil/sigil.toml": stdio("mine", "${SRV}"),
          "outer/project/.mcp.json": servers({ theirs: { command: "srv" } })
        },
        variables: { SRV: "srv" }
      }),
      ({ snapshot }) => {
        assert.deepEqual(states(snapshot), ["user:mine:Valid"])
        assert.deepEqual(
          snapshot.shadowed.map(({ why }) => why),
          ["signature"]
        )
      }
    )
  )

  it.scopedLive("a file that everybody may write is not used", () =>
    Effect.map(
      load({
        files: { "outer/project/.mcp.json": servers({ c: { command: "c" } }) },
        prepare: (base) => fs.chmodSync(path.join(base, "outer/project/.mcp.json"), 0o666)
      }),
      ({ snapshot }) => {
        assert.deepEqual(snapshot.servers, [])
        assert.strictEqual(snapshot.problems[0]?.reason, "untrusted_file")
      }
    )
  )

  it.scopedLive("a path that is no regular file is a problem, not a hang", () =>
    Effect.map(load({ prepare: (base) => fs.mkdirSync(path.join(base, "outer/project/.mcp.json")) }), ({ snapshot }) =>
      assert.strictEqual(snapshot.problems[0]?.code, "SIGIL_CONFIG_UNREADABLE")
    )
  )

  for (const [what, given] of [
    ["a missing --config file", { configPath: "none.toml" }],
    ["a missing --mcp-config file", { mcpConfig: ["none.json"] }],
    ["an --mcp-config value that is not JSON", { mcpConfig: ["{,"] }],
    ["a launch directory that does not exist", { cwd: "none" }]
  ] as const satisfies ReadonlyArray<readonly [string, Given]>)
    it.scopedLive(`fails for ${what}`, () =>
      Effect.map(run(given), ({ loaded }) => {
        if (Either.isRight(loaded)) assert.fail()
        assert.strictEqual(loaded.left.code, "SIGIL_CONFIG_UNREADABLE")
      })
    )

  it.scopedLive("--config replaces sigil.toml and keeps settings.json", () =>
    Effect.map(
      load({
        configPath: "my.toml",
        files: {
          "home/.sigil/sigil.toml": stdio("a", "x"),
          "home/.sigil/settings.json": servers({ b: { transport: "stdio", command: "b" } }),
          "outer/project/my.toml": `${stdio("m", "y")}[workspace]\nroot = "sub"\n`
        }
      }),
      ({ base, snapshot }) => {
        assert.deepEqual(states(snapshot), ["user:m:Valid", "user:b:Valid"])
        assert.strictEqual(snapshot.workspace, path.join(base, "outer/project/sub"))
        assert.strictEqual(snapshot.launchDirectory, path.join(base, "outer/project"))
      }
    )
  )

  it.scopedLive("the user's switches say how far a project may go", () =>
    Effect.map(
      load({
        files: {
          "home/.sigil/sigil.toml":
            '[mcp]\nproject_remote = "approved"\nproject_walk = "cwd"\nstdout_noise = "skip"\n[agent]\ntool_timeout_secs = 5\n' +
            stdio("t", "t"),
          "outer/project/.mcp.json": servers({
            r: { url: "https://h/" },
            s: { command: "s", cwd: "../.." },
            l: { command: "l", cwd: "link" }
          }),
          "outer/.mcp.json": servers({ o: { command: "o" } })
        },
        prepare: (base) => fs.symlinkSync(base, path.join(base, "outer/project/link"))
      }),
      ({ snapshot }) => {
        assert.deepEqual(states(snapshot), ["user:t:Valid", "project:r:Valid", "project:s:Broken", "project:l:Broken"])
        assert.strictEqual(valid(snapshot.servers[0]).toolTimeoutMs, 5_000)
        assert.strictEqual(valid(snapshot.servers[0]).stdoutNoise, "skip")
        assert.strictEqual(broken(snapshot.servers[3]).error.code, "SIGIL_SCOPE_REFUSED")
      }
    )
  )

  it.scopedLive("the environment raises deadlines of JSON entries, never lowers them", () =>
    Effect.map(
      load({
        files: {
          "home/.sigil/sigil.toml": stdio("t", "t"),
          "outer/project/.mcp.json": servers({ a: { command: "a" }, b: { command: "b", timeout: 900_000 } })
        },
        variables: { MCP_TIMEOUT: "45000", SIGIL_MCP_TOOL_TIMEOUT: "200000.7", MCP_TOOL_TIMEOUT: "1" }
      }),
      ({ snapshot }) =>
        assert.deepEqual(
          snapshot.servers.map((entry) => [valid(entry).startupTimeoutMs, valid(entry).toolTimeoutMs]),
          [
            [10_000, 30_000],
            [45_000, 200_000],
            [900_000, 900_000]
          ]
        )
    )
  )

  const safety: ReadonlyArray<readonly [what: string, file: string, text: string, field: string]> = [
    ["a faulty mcpPolicy", "home/.sigil/settings.json", '{"mcpPolicy":[]}', "mcpPolicy"],
    ["a faulty policyLimits", "home/.sigil/settings.json", '{"policy_limits":{"mcp":"off"}}', "policy_limits.mcp"],
    ["mcpPolicy twice", "home/.sigil/settings.json", '{"mcpPolicy":{},"mcp_policy":{}}', "mcp_policy"],
    ["a broken managed.json", "etc/managed.json", "{", "managed.json"],
    ["an unknown key of managed.json", "etc/managed.json", '{"mcpPolcy":{}}', "mcpPolcy"],
    [
      "an unreadable list of managed.json",
      "etc/managed.json",
      '{"permissions":{"deny":["x("]}}',
      "permissions.deny[0]"
    ],
    ["an unreadable deny", "home/.sigil/settings.json", '{"permissions":{"deny":["x("]}}', "permissions.deny[0]"],
    ["a deny list that is none", "home/.sigil/settings.json", '{"permissions":{"deny":"x"}}', "permissions.deny"],
    ["a misspelled list", "home/.sigil/settings.json", '{"permissions":{"denny":["x"]}}', "permissions.denny"],
    ["a list twice", "home/.sigil/settings.json", '{"permissions":{"deny":["x"],"deny":[]}}', "permissions.deny"],
    [
      "permissions twice",
      "home/.sigil/settings.json",
      '{"permissions":{"deny":["x"]},"permissions":{}}',
      "permissions"
    ],
    ["permissions that are none", "home/.sigil/settings.json", '{"permissions":["x"]}', "permissions"],
    ["a misspelled permissions", "home/.sigil/settings.json", '{"permission":{"deny":["x"]}}', "permission"],
    ["a faulty [execution]", "home/.sigil/sigil.toml", '[execution]\nstrategy = "jail"\n', "execution"],
    ["sigil.lock", "outer/project/sigil.lock", "", "sigil.lock"],
    ["a faulty [permission]", "home/.sigil/sigil.toml", '[permission]\nmode = "open"\n', "permission"],
    ["a faulty [web]", "home/.sigil/sigil.toml", '[web]\nnetwork_mode = "off"\n', "web"],
    [
      "an unreadable file with [web]",
      "home/.sigil/sigil.toml",
      '[web]\nnetwork_mode = "deny"\nx = = 1\n',
      "safety settings"
    ],
    ["an unreadable file with mcpPolicy", "home/.sigil/settings.json", '{"mcpPolicy": {', "safety settings"],
    ...["", " \n", "{", '{"theme":"x",', "[]", "null", '"x"', "7", "// nothing\n"].map(
      (text) =>
        [`a settings.json of ${JSON.stringify(text)}`, "home/.sigil/settings.json", text, "safety settings"] as const
    ),
    ["a cut sigil.toml", "home/.sigil/sigil.toml", "[agent]\ntool_timeout_secs = 1\n[[mcp_ser", "safety settings"],
    ...["", "[]", "null"].map(
      (text) => [`a managed.json of ${JSON.stringify(text)}`, "etc/managed.json", text, "managed.json"] as const
    )
  ]
  for (const [what, file, text, field] of safety)
    it.scopedLive(`${what} refuses every start`, () =>
      Effect.map(load({ files: { [file]: text } }), ({ base, snapshot }) =>
        assert.deepEqual(
          snapshot.unsupportedSafety.map((item) => [item.field, path.relative(base, item.source)]),
          [[field, file]]
        )
      )
    )

  const userFile = (name: string) => path.join("home/.sigil", name)
  for (const name of ["settings.json", "sigil.toml"]) {
    it.scopedLive(`a ${name} that is a link to nothing refuses every start`, () =>
      Effect.map(
        load({ prepare: (base) => fs.symlinkSync(path.join(base, "gone"), path.join(base, userFile(name))) }),
        ({ base, snapshot }) => {
          assert.deepEqual(
            snapshot.unsupportedSafety.map(({ source }) => path.relative(base, source)),
            [userFile(name)]
          )
          assert.include(snapshot.problems[0]?.text, "leads nowhere")
        }
      )
    )
  }

  it.scopedLive("a home that is a link to nothing refuses every start", () =>
    Effect.map(
      load({
        prepare: (base) => {
          fs.rmdirSync(path.join(base, "home/.sigil"))
          fs.symlinkSync(path.join(base, "gone"), path.join(base, "home/.sigil"))
        }
      }),
      ({ snapshot }) => assert.isNotEmpty(snapshot.unsupportedSafety)
    )
  )

  for (const [what, put] of [
    ["empty", (file: string) => fs.writeFileSync(file, "")],
    ["cut", (file: string) => fs.writeFileSync(file, '{"mcpServers":{"a":')],
    ["a list", (file: string) => fs.writeFileSync(file, "[]")],
    ["a link to nothing", (file: string) => fs.symlinkSync(`${file}.gone`, file)]
  ] as const)
    it.scopedLive(`a private file of the project that is ${what} refuses every start, for its names are unknown`, () =>
      Effect.gen(function* () {
        const first = yield* load({})
        const place = (base: string): string => {
          const paths = Effect.runSync(
            Effect.provide(
              Locations.Locations,
              Locations.layer().pipe(
                Layer.provide(
                  HostEnvironment.layerTest({
                    cwd: path.join(base, "outer/project"),
                    homeDirectory: path.join(base, "home")
                  })
                )
              )
            )
          )
          return paths.mcpLocalJson(path.join(base, "outer/project"))
        }
        assert.deepEqual(first.snapshot.unsupportedSafety, [])
        const { base, snapshot } = yield* load({
          prepare: (root) => {
            fs.mkdirSync(path.dirname(place(root)), { recursive: true })
            put(place(root))
          }
        })
        assert.deepEqual(
          snapshot.unsupportedSafety.map(({ source }) => source),
          [place(base)]
        )
      })
    )

  for (const [extent, found] of [
    ["root", ["a", "b", "c"]],
    ["git_root", ["a", "b"]],
    ["cwd", ["a"]],
    ["off", []]
  ] as const)
    it.scopedLive(`project_walk = "${extent}" looks for .mcp.json that far`, () =>
      Effect.map(
        load({
          cwd: "outer/project/sub",
          files: {
            "home/.sigil/sigil.toml": `[mcp]\nproject_walk = "${extent}"\n`,
            "outer/project/sub/.mcp.json": servers({ a: { command: "a" } }),
            "outer/project/.mcp.json": servers({ b: { command: "b" } }),
            "outer/project/.git/HEAD": "ref: refs/heads/main\n",
            "outer/.mcp.json": servers({ c: { command: "c" } })
          }
        }),
        ({ snapshot }) => assert.deepEqual(snapshot.servers.map(nameOf), [...found])
      )
    )
})

/** What plugins declare, what they may not, and what their manifests are bound to. */
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { assert } from "vitest"
import { Configuration, layer } from "../../src/config/Configuration.ts"
import { expand, variablesOf } from "../../src/config/Expansion.ts"
import { declarationFingerprint, pluginLaunchFingerprint } from "../../src/config/Fingerprint.ts"
import * as Locations from "../../src/config/Locations.ts"
import { manifestDigest } from "../../src/config/Plugins.ts"
import { nameOf } from "../../src/config/ServerDeclaration.ts"
import * as HostEnvironment from "../../src/platform/HostEnvironment.ts"
import { broken, right, valid } from "./Support.ts"

const mine = "home/.sigil/plugins"
const theirs = "project/.sigil/plugins"

const world = Effect.acquireRelease(
  Effect.sync(() => {
    const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-plugins-")))
    for (const directory of ["home/.sigil", "project"]) fs.mkdirSync(path.join(base, directory), { recursive: true })
    return base
  }),
  (base) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
)

interface Given {
  readonly files: { readonly [name: string]: string }
  readonly prepare?: (base: string) => void
  readonly cwd?: string
}

const load = ({ cwd, files, prepare }: Given) =>
  Effect.gen(function* () {
    const base = yield* world
    for (const [name, text] of Object.entries(files)) {
      fs.mkdirSync(path.dirname(path.join(base, name)), { recursive: true })
      fs.writeFileSync(path.join(base, name), text, { mode: 0o644 })
    }
    prepare?.(base)
    const host = HostEnvironment.layerTest({
      variables: {},
      cwd: path.join(base, cwd ?? "project"),
      homeDirectory: path.join(base, "home"),
      managed: { file: path.join(base, "etc/managed.json"), ownerId: process.getuid?.() ?? 0 }
    })
    const live = layer({ mcpConfig: [], strict: false }).pipe(Layer.provide(Locations.layer()), Layer.provide(host))
    const snapshot = yield* Effect.flatMap(Configuration, (configuration) => configuration.load).pipe(
      Effect.provide(live)
    )
    return { base, snapshot, only: snapshot.servers[0] }
  })

const manifest = (id: string, ...entry: ReadonlyArray<string>): string =>
  [`id = "${id}"`, "", "[[mcp_servers]]", 'name = "s"', ...entry, ""].join("\n")
const stdio = ['transport = "stdio"', 'command = "node"', 'args = ["${PLUGIN_ROOT}/server.mjs"]']

describe("a plugin", () => {
  for (const [from, place] of [
    ["user", mine],
    ["workspace", theirs]
  ] as const)
    it.scopedLive(
      `of the ${from} declares servers by its id, bound to its directory and the bytes of its manifest`,
      () =>
        Effect.map(
          load({ files: { [`${place}/p/plugin.toml`]: manifest("p", ...stdio) } }),
          ({ base, only, snapshot }) => {
            assert.deepEqual(snapshot.problems, [])
            const declaration = valid(only)
            assert.deepEqual(
              [declaration.name, declaration.scope, declaration.required],
              ["plugin:p:s", "plugin", false]
            )
            const { plugin } = declaration
            assert.deepEqual([plugin?.id, plugin?.from, plugin?.root], ["p", from, path.join(base, place, "p")])
            assert.equal(plugin?.manifest, manifestDigest({ root: path.join(base, place, "p") }))
            // Its directory is no variable of the user's, and no secret.
            assert.deepEqual(variablesOf(declaration), [])
            const { endpoint, variableValues } = right(expand(declaration, () => undefined))
            assert.deepEqual(endpoint._tag === "stdio" ? endpoint.args : [], [
              path.join(base, place, "p", "server.mjs")
            ])
            assert.deepEqual(variableValues, [])
          }
        )
    )

  it.scopedLive("has another fingerprint when any byte of its manifest changes", () =>
    Effect.gen(function* () {
      const text = manifest("p", ...stdio)
      const of = (more: string) =>
        Effect.map(load({ files: { [`${theirs}/p/plugin.toml`]: text + more } }), ({ only }) =>
          declarationFingerprint(valid(only))
        )
      assert.equal(yield* of(""), yield* of(""))
      assert.notEqual(yield* of(""), yield* of("# a remark\n"))
    })
  )

  const faults: ReadonlyArray<readonly [string, ReadonlyArray<string>, string, string, string]> = [
    [
      "a grant",
      [...stdio, 'inherit_env = ["TOKEN"]'],
      "plugin_mcp_environment_grant_not_supported",
      "sigil.toml",
      "inherit_env"
    ],
    [
      "an empty grant",
      [...stdio, "inherit_env = []"],
      "plugin_mcp_environment_grant_not_supported",
      "sigil.toml",
      "inherit_env"
    ],
    [
      "a public grant",
      [...stdio, 'public_env = ["CI"]'],
      "plugin_mcp_environment_grant_not_supported",
      "sigil.toml",
      "public_env"
    ],
    [
      "a remote server",
      ['transport = "streamable_http"', 'url = "https://h/"'],
      "plugin_remote_mcp_not_supported",
      'plugin_remote = "allow"',
      "url"
    ],
    [
      "a variable of the user",
      ['transport = "stdio"', 'command = "x"', 'args = ["${TOKEN}"]'],
      "plugin_mcp_environment_grant_not_supported",
      'plugin_env_allow = ["TOKEN"]',
      "args[0]"
    ],
    [
      "a variable with a default",
      ['transport = "stdio"', 'command = "x"', 'env = { A = "${TOKEN:-x}" }'],
      "plugin_mcp_environment_grant_not_supported",
      'plugin_env_allow = ["TOKEN"]',
      "env.A"
    ],
    ["a directory elsewhere", [...stdio, 'cwd = "/"'], "scope_refused", "sigil.toml", "cwd"],
    ...["..", "../../..", "sub/../../x", "${PLUGIN_ROOT}/../.."].map(
      (cwd) => [`the directory ${cwd}`, [...stdio, `cwd = "${cwd}"`], "scope_refused", "inside it", "cwd"] as const
    ),
    ...[
      "../esc.sh",
      "../../../esc.sh",
      "./bin/../../esc.sh",
      "${PLUGIN_ROOT}/../../../esc.sh",
      "${PLUGIN_ROOT}-other/esc.sh",
      "${PLUGIN_ROOT:-x}/../esc.sh",
      "./${PLUGIN_ROOT}/../../../../../../../../../../../../esc.sh"
    ].map(
      (command) =>
        [
          `the program ${command}`,
          ['transport = "stdio"', `command = "${command}"`],
          "scope_refused",
          "plugin's directory",
          "command"
        ] as const
    ),
    ["a switch of the user's", [...stdio, 'on_timeout = "keep"'], "scope_refused", "sigil.toml", "on_timeout"]
  ]
  for (const [what, entry, reason, remedy, field] of faults)
    for (const place of [mine, theirs])
      it.scopedLive(`may not have ${what} (${place})`, () =>
        Effect.map(load({ files: { [`${place}/p/plugin.toml`]: manifest("p", ...entry) } }), ({ only }) => {
          const { error, name } = broken(only)
          assert.deepEqual([error.code, error.reason, name], ["SIGIL_SCOPE_REFUSED", reason, "plugin:p:s"])
          assert.include(error.fix ?? "", remedy)
          assert.isTrue(error.where?.field?.endsWith(field), error.where?.field)
          assert.equal(error.where?.server, "plugin:p:s")
        })
      )

  for (const [what, ...entry] of [
    ["a program of its own", 'command = "./bin/run"'],
    ["a program of its own, the long way", 'command = "../p/bin/../run"'],
    ["a program by its root", 'command = "${PLUGIN_ROOT}/bin/run"'],
    ["a bare name", 'command = "node"', 'args = ["../../x.mjs"]'],
    ["an absolute path", 'command = "/opt/tool/run"'],
    ["a directory of its own", 'command = "node"', 'cwd = "sub/dir"']
  ] as const)
    it.scopedLive(`may name ${what}`, () =>
      Effect.map(
        load({ files: { [`${theirs}/p/plugin.toml`]: manifest("p", 'transport = "stdio"', ...entry) } }),
        ({ only }) => assert.equal(valid(only).name, "plugin:p:s")
      )
    )

  it.scopedLive("may not run in a directory that a link leads to, there or still to be made", () =>
    Effect.map(
      load({
        files: Object.fromEntries(
          ["out", "out/later"].map((cwd, index) => [
            `${theirs}/p${index}/plugin.toml`,
            manifest(`p${index}`, ...stdio, `cwd = "${cwd}"`)
          ])
        ),
        prepare: (base) => {
          for (const id of ["p0", "p1"]) fs.symlinkSync(path.join(base, "project"), path.join(base, theirs, id, "out"))
        }
      }),
      ({ snapshot }) =>
        assert.deepEqual(
          snapshot.servers.map((entry) => broken(entry).error.where?.field?.split(".").at(-1)),
          ["cwd", "cwd"]
        )
    )
  )

  it.scopedLive("may read what the user allows plugins, and only that", () =>
    Effect.map(
      load({
        files: {
          "home/.sigil/sigil.toml": '[mcp]\nplugin_env_allow = ["A"]\nplugin_remote = "allow"\n',
          [`${mine}/p/plugin.toml`]: manifest("p", 'transport = "stdio"', 'command = "${A}"'),
          [`${mine}/q/plugin.toml`]: manifest("q", 'transport = "stdio"', 'command = "${B}"'),
          [`${mine}/r/plugin.toml`]: manifest("r", 'transport = "streamable_http"', 'url = "https://h/"')
        }
      }),
      ({ snapshot }) => {
        assert.deepEqual(
          snapshot.servers.map((entry) => [nameOf(entry), entry._tag]),
          [
            ["plugin:p:s", "Valid"],
            ["plugin:q:s", "Broken"],
            ["plugin:r:s", "Valid"]
          ]
        )
        assert.deepEqual(snapshot.problems, [])
      }
    )
  )

  it.scopedLive("may only tighten trust", () =>
    Effect.map(
      load({ files: { [`${mine}/p/plugin.toml`]: manifest("p", ...stdio, 'trust = { approval_default = "allow" }') } }),
      ({ only }) => assert.deepEqual([valid(only).trust.approvalDefault, valid(only).looserTrust], ["ask", true])
    )
  )

  const unusable: ReadonlyArray<readonly [string, string, string, string]> = [
    ["another id", "p", manifest("q", ...stdio), "plugin_invalid_manifest"],
    ["no id", "p", '[[mcp_servers]]\nname = "s"\n', "plugin_invalid_manifest"],
    ["an unknown key", "p", `hooks = 1\n${manifest("p", ...stdio)}`, "plugin_invalid_manifest"],
    ["a form of the future", "p", `manifest_version = 2\n${manifest("p", ...stdio)}`, "plugin_invalid_manifest"],
    ["no TOML", "p", '[[mcp_servers]]\nname = "s"\nx = = 1\n', "plugin_invalid_manifest"],
    ["a colon in its name", "a:b", manifest("a:b", ...stdio), "plugin_invalid_path"],
    ["too many bytes", "p", manifest("p", ...stdio) + "#".repeat(1_048_577), "plugin_invalid_manifest"]
  ]
  for (const [what, id, text, reason] of unusable)
    it.scopedLive(`with ${what} costs itself and nothing else`, () =>
      Effect.map(
        load({
          files: { [`${theirs}/${id}/plugin.toml`]: text, [`${theirs}/ok/plugin.toml`]: manifest("ok", ...stdio) }
        }),
        ({ snapshot }) => {
          const usable = snapshot.servers.filter(({ _tag }) => _tag === "Valid")
          assert.deepEqual(usable.map(nameOf), ["plugin:ok:s"])
          assert.deepEqual(
            snapshot.problems.map((problem) => problem.reason),
            [reason]
          )
        }
      )
    )

  it.scopedLive("is not read through a link, and not when strangers may write it", () =>
    Effect.map(
      load({
        files: {
          "elsewhere/p/plugin.toml": manifest("p", ...stdio),
          "elsewhere/r.toml": manifest("r", ...stdio),
          [`${theirs}/open/plugin.toml`]: manifest("open", ...stdio)
        },
        prepare: (base) => {
          const at = (name: string) => path.join(base, theirs, name)
          fs.symlinkSync(path.join(base, "elsewhere/p"), at("p"))
          fs.mkdirSync(at("r"))
          fs.symlinkSync(path.join(base, "elsewhere/r.toml"), path.join(at("r"), "plugin.toml"))
          fs.mkdirSync(path.join(at("dir"), "plugin.toml"), { recursive: true })
          fs.chmodSync(path.join(at("open"), "plugin.toml"), 0o666)
        }
      }),
      ({ snapshot }) => {
        assert.deepEqual(snapshot.servers, [])
        assert.deepEqual(
          snapshot.problems.map(({ reason }) => reason),
          ["plugin_invalid_path", "untrusted_file", "plugin_invalid_path", "plugin_invalid_path"]
        )
      }
    )
  )

  it.scopedLive("of an id that both places have is used from neither", () =>
    Effect.map(
      load({
        files: Object.fromEntries([mine, theirs].map((place) => [`${place}/p/plugin.toml`, manifest("p", ...stdio)]))
      }),
      ({ only, snapshot }) => {
        assert.lengthOf(snapshot.servers, 1)
        assert.equal(broken(only).error.code, "SIGIL_DUPLICATE_NAME")
        assert.deepEqual(
          snapshot.problems.map(({ reason }) => reason),
          ["duplicate_plugin_id", "duplicate_plugin_id"]
        )
      }
    )
  )

  it.scopedLive("in a project that is the home directory is the user's", () =>
    Effect.map(
      load({ files: { [`${mine}/p/plugin.toml`]: manifest("p", ...stdio) }, cwd: "home" }),
      ({ only, snapshot }) => {
        assert.lengthOf(snapshot.servers, 1)
        assert.equal(valid(only).plugin?.from, "user")
      }
    )
  )
})

describe("the launch fingerprint of a plugin", () => {
  it("binds the declaration and the program, and no path", () => {
    const one = pluginLaunchFingerprint({ declared_name: "s" }, "00")
    assert.match(one, /^sha256:[0-9a-f]{64}$/)
    assert.equal(one, pluginLaunchFingerprint({ declared_name: "s" }, "00"))
    assert.notEqual(one, pluginLaunchFingerprint({ declared_name: "t" }, "00"))
    assert.notEqual(one, pluginLaunchFingerprint({ declared_name: "s" }, "01"))
  })
})

describe("what was imported", () => {
  it.scopedLive("is read in its own scope, below the project's", () =>
    Effect.gen(function* () {
      const found = yield* load({
        files: { "project/.mcp.json": '{"mcpServers":{"a":{"command":"x"}}}' },
        prepare: (at) => {
          const target = path.join(
            at,
            "home/.sigil/projects",
            Locations.projectKey(path.join(at, "project")),
            "imported.json"
          )
          fs.mkdirSync(path.dirname(target), { recursive: true })
          fs.writeFileSync(target, '{"mcpServers":{"a":{"command":"y"},"b":{"command":"z"}}}')
        }
      })
      assert.deepEqual(
        found.snapshot.servers.map((entry) => [nameOf(entry), valid(entry).scope]),
        [
          ["a", "project"],
          ["b", "imported"]
        ]
      )
      assert.deepEqual(
        found.snapshot.shadowed.map(({ name, scope, why }) => [name, scope, why]),
        [["a", "imported", "name"]]
      )
    })
  )
})

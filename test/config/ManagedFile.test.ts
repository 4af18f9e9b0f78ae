/** The managed file: whose it must be, and that nothing wrong with it ever means that there is no policy. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Locations from "../../src/config/Locations.ts"
import { read } from "../../src/config/ManagedFile.ts"

const me = process.getuid?.() ?? 0

/** A directory that stands for `/etc`. */
const etc = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-managed-")))),
  (base) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
)

interface Given {
  /** Makes the file, or something else in its place; absent: writes `{}`. */
  readonly prepare?: (file: string, base: string) => void
  readonly text?: string | Buffer
  readonly ownerId?: number
  readonly platform?: NodeJS.Platform
}

const managed = ({ ownerId, platform, prepare, text }: Given) =>
  Effect.gen(function* () {
    const base = yield* etc
    const file = path.join(base, "sigil", "managed.json")
    fs.mkdirSync(path.dirname(file), { mode: 0o755 })
    if (prepare === undefined) fs.writeFileSync(file, text ?? "{}", { mode: 0o644 })
    else prepare(file, base)
    const found = yield* read(file, { platform: platform ?? "linux", managed: { file, ownerId: ownerId ?? me } })
    return { base, file, found }
  })

/** Reason and, relative to the file's place, why it is refused; `used` when it is not. */
const verdict = (given: Given) =>
  Effect.map(managed(given), ({ base, file, found }) => {
    const [first] = found.unsupportedSafety
    if (first === undefined) return [found.facts.present ? "used" : "absent"]
    assert.equal(first.source, file)
    assert.deepEqual(found.company.length, 0)
    return [first.reason, first.why?.replaceAll(base, "ETC"), first.fix?.replaceAll(base, "ETC")]
  })

const ask = "Ask whoever administers this machine"
const readable = `${ask} to make ETC/sigil/managed.json readable for everybody (chmod 644), and its directory (chmod 755).`

describe("the managed file", () => {
  it.scopedLive("counts when its owner alone can write it, with its facts", () =>
    Effect.map(managed({ text: '\ufeff{"$schema":"x","mcpPolicy":{}}' }), ({ file, found }) => {
      assert.deepEqual(found.facts, { file, present: true, ownerId: me, mode: 0o644 })
      assert.deepEqual(found.unsupportedSafety, [])
      assert.deepEqual(
        found.company.map((policy) => [policy.file, policy.managed, policy.mcpPolicy?.denied]),
        [[file, true, []]]
      )
    })
  )

  it.scopedLive("may be a link to a file that is guarded as well", () =>
    Effect.gen(function* () {
      const link = (mode: number) =>
        verdict({
          prepare: (file, base) => {
            fs.mkdirSync(path.join(base, "store"), { mode: 0o755 })
            fs.writeFileSync(path.join(base, "store", "policy"), "{}")
            fs.chmodSync(path.join(base, "store"), mode)
            fs.symlinkSync(path.join(base, "store", "policy"), file)
          }
        })
      assert.deepEqual(yield* link(0o755), ["used"])
      assert.deepEqual((yield* link(0o777))[0], "managed_file_untrusted")
    })
  )

  it.scopedLive("is no policy only where it does not exist", () =>
    Effect.gen(function* () {
      assert.deepEqual(yield* verdict({ prepare: () => {} }), ["absent"])
      assert.deepEqual(yield* verdict({ prepare: (file) => fs.rmdirSync(path.dirname(file)) }), ["absent"])
    })
  )

  const refusals: ReadonlyArray<readonly [what: string, given: Given, ...expected: ReadonlyArray<string>]> = [
    [
      "somebody else's",
      { ownerId: me + 1 },
      "managed_file_untrusted",
      `${me === 0 ? "ETC/sigil/managed.json" : "the directory ETC/sigil"} belongs to user ${me}, not to user ${me + 1}`,
      `${ask} to run 'chown ${me + 1} ETC/sigil${me === 0 ? "/managed.json" : ""}'.`
    ],
    [
      "writable by the group",
      { prepare: (file) => (fs.writeFileSync(file, "{}"), fs.chmodSync(file, 0o664)) },
      "managed_file_untrusted",
      `ETC/sigil/managed.json can be written by others than ${me === 0 ? "root" : `user ${me}`} (mode 0664)`,
      `${ask} to run 'chmod go-w ETC/sigil/managed.json'.`
    ],
    [
      "writable by others",
      { prepare: (file) => (fs.writeFileSync(file, "{}"), fs.chmodSync(file, 0o646)) },
      "managed_file_untrusted",
      `ETC/sigil/managed.json can be written by others than ${me === 0 ? "root" : `user ${me}`} (mode 0646)`,
      `${ask} to run 'chmod go-w ETC/sigil/managed.json'.`
    ],
    [
      "in a directory that others can write, absent or not",
      { prepare: (file) => fs.chmodSync(path.dirname(file), 0o777) },
      "managed_file_untrusted",
      `the directory ETC/sigil can be written by others than ${me === 0 ? "root" : `user ${me}`} (mode 0777)`,
      `${ask} to run 'chmod go-w ETC/sigil'.`
    ],
    [
      "below a directory that others can write",
      { prepare: (file, base) => (fs.writeFileSync(file, "{}"), fs.chmodSync(base, 0o775)) },
      "managed_file_untrusted",
      `the directory ETC can be written by others than ${me === 0 ? "root" : `user ${me}`} (mode 0775)`,
      `${ask} to run 'chmod go-w ETC'.`
    ],
    [
      "a link that leads nowhere",
      { prepare: (file) => fs.symlinkSync("gone", file) },
      "managed_file_unreadable",
      "it cannot be read: ENOENT",
      readable
    ],
    [
      "in a directory that is a link that leads nowhere",
      {
        prepare: (file) => {
          fs.rmdirSync(path.dirname(file))
          fs.symlinkSync("gone", path.dirname(file))
        }
      },
      "managed_file_unreadable",
      "it cannot be read: ENOENT",
      readable
    ],
    [
      "a pipe",
      { prepare: (file) => void execFileSync("mkfifo", [file]) },
      "managed_file_unreadable",
      "it is no regular file",
      readable
    ],
    [
      "a directory",
      { prepare: (file) => fs.mkdirSync(file) },
      "managed_file_unreadable",
      "it is no regular file",
      readable
    ],
    [
      "too large",
      { text: `{"$schema":"${"x".repeat(4 * 1024 * 1024)}"}` },
      "managed_file_unreadable",
      "it is too large",
      readable
    ],
    ["not UTF-8", { text: Buffer.from([0x7b, 0xff, 0x7d]) }, "managed_file_unreadable", "it is not UTF-8", readable],
    [
      "not JSON",
      { text: '{\n  "mcpPolicy": }' },
      "managed_file_invalid",
      "The file is not valid JSON: a value is expected here",
      `${ask} to correct ETC/sigil/managed.json at line 2, column 16.`
    ],
    [
      "empty",
      { text: "" },
      "managed_file_invalid",
      "The file is not valid JSON: a value is expected here",
      `${ask} to correct ETC/sigil/managed.json at line 1, column 1.`
    ],
    [
      "no object",
      { text: "[]" },
      "managed_file_invalid",
      "found a list, expected a JSON object",
      `${ask} to correct ETC/sigil/managed.json at line 1, column 1.`
    ]
  ]
  for (const [what, given, ...expected] of refusals)
    it.scopedLive(`refuses every start when it is ${what}`, () =>
      Effect.map(verdict(given), (found) => assert.deepEqual(found, expected))
    )

  const faults: ReadonlyArray<readonly [text: string, field: string, line: number, column: number]> = [
    ['{\n "mcpServers": {}}', "mcpServers", 2, 2],
    ['{"mcpPolcy":{}}', "mcpPolcy", 1, 2],
    ['{"mcpPolicy":{},\n"mcpPolicy":{}}', "mcpPolicy", 2, 1],
    ['{"mcpPolicy":{"deniedServers":[{"name":"a",\n"name":"b"}]}}', "mcpPolicy.deniedServers[0].name", 2, 1],
    ['{"policyLimits":{"mcp":0}}', "policyLimits.mcp", 1, 24],
    ['{"permissions":{"deni":[]}}', "permissions.deni", 1, 17],
    ['{"permissions":{"deny":"x"}}', "permissions.deny", 1, 24],
    ['{"allowedTools":"x"}', "allowedTools", 1, 17]
  ]
  for (const [text, field, line, column] of faults)
    it.scopedLive(`refuses every start, with the place, when it says ${JSON.stringify(text)}`, () =>
      Effect.map(managed({ text }), ({ file, found }) => {
        const [first] = found.unsupportedSafety
        assert.deepEqual(
          [first?.reason, first?.field, first?.at, first?.fix],
          [
            "managed_file_invalid",
            field,
            { line, column },
            `${ask} to correct ${file} at line ${line}, column ${column}.`
          ]
        )
      })
    )

  it.scopedLive("gives its permission lists to those that decide, each rule with its place", () =>
    Effect.map(
      managed({ text: '{"permissions":{"deny":["mcp__a"],"ask":["mcp__b__*"]},"allowedTools":["mcp__c__d"]}' }),
      ({ file, found }) => {
        assert.deepEqual(found.unsupportedSafety, [])
        const { allowedTools, ask, deny } = found.lists
        assert.deepEqual(
          [...deny, ...ask, ...allowedTools].map(({ text, where }) => [text, where.file, where.line]),
          [
            ["mcp__a", file, 1],
            ["mcp__b__*", file, 1],
            ["mcp__c__d", file, 1]
          ]
        )
      }
    )
  )

  it.scopedLive("has no owner to judge on Windows", () =>
    Effect.map(
      managed({
        platform: "win32",
        ownerId: me + 1,
        prepare: (file) => (fs.writeFileSync(file, "{}"), fs.chmodSync(file, 0o666))
      }),
      ({ found }) => {
        assert.deepEqual(found.unsupportedSafety, [])
        assert.isUndefined(found.facts.ownerId)
      }
    )
  )
})

describe("the place of the managed file", () => {
  const places: ReadonlyArray<readonly [NodeJS.Platform, string]> = [
    ["linux", "/etc/sigil/managed.json"],
    ["freebsd", "/etc/sigil/managed.json"],
    ["darwin", "/Library/Application Support/sigil/managed.json"],
    ["win32", "C:\\ProgramData\\sigil\\managed.json"]
  ]
  for (const [platform, place] of places)
    it(`is ${place} on ${platform}, whatever variables, home and options say`, () => {
      const asked = new Set<string>()
      const everywhere = (name: string): string => {
        asked.add(name)
        return "/home/mallory/elsewhere"
      }
      const host = { get: everywhere, cwd: "/home/mallory", homeDirectory: "/home/mallory", platform }
      const options = { configPath: "managed.json", cwd: "/home/mallory" }
      assert.equal(Locations.make(host, options).managedJson, place)
      assert.isNotEmpty([...asked])
    })
})

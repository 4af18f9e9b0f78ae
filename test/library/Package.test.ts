/** The package as a user has it: packed, installed into an empty project, type-checked, run. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Consumer, examples, makeConsumer, tool } from "./Consumer.ts"

let consumer: Consumer
beforeAll(async () => {
  consumer = await makeConsumer()
})
afterAll(() => consumer?.dispose())

/** What each example prints. */
const printed: { readonly [example: string]: RegExp } = {
  ChangingServers: /hello[^]*changed: greeter[^]*good day[^]*still there after a reload: greeter[^]*declared: 0/,
  FakeTransport: /^open issues: \{"open":3\}\n$/,
  InProcessServer: /^ok \[.*"3 left".*\]\nfailed \[.*"no fruit is named stone".*\]\nSIGIL_ARGUMENTS_INVALID\n$/,
  ListAndCall: /^add: Adds two numbers.*\nenvironment: (?:.*\n)+\{"sum":42\}\n$/,
  OwnApprover:
    /^may read be called .*\n\[.*"the content of notes.txt".*\]\nmay remove be called .*\nSIGIL_DENIED: .* was denied\.\n$/,
  OwnPolicy: /^\[.*"the key is \[hidden\]".*\]\nSIGIL_SECRET_BLOCKED\n$/,
  RemoteServer: /^the server asks: Who are you\?\n\[\{"type":"text","text":"Hello, Ada!"\}\]\n$/,
  Spans: /^client tools\/call ping: ok\nclient tools\/call pong: SIGIL_UNKNOWN_TOOL\n$/
}

/** Files of the library, as paths inside the package. */
const library = (ending: string): ReadonlyArray<string> =>
  fs
    .readdirSync(path.join(consumer.installed, "dist", "lib"), { recursive: true })
    .map((file) => path.join("dist", "lib", String(file)))
    .filter((file) => file.endsWith(ending))

const read = (file: string): string => fs.readFileSync(path.join(consumer.installed, file), "utf8")

/** `export {…} from` and `export * as … from` of a declaration file. */
const reexports = (text: string): ReadonlyArray<{ readonly names: ReadonlyArray<string>; readonly from: string }> =>
  [...text.matchAll(/^export (?:type )?(?:\{([^}]*)\}|\* as \w+) from "([^"]+)"/gm)].map((match) => ({
    names: (match[1] ?? "").split(",").flatMap((part) => {
      const name = part
        .trim()
        .replace(/^type /, "")
        .split(" as ")[0]
      return name === undefined || name === "" ? [] : [name]
    }),
    from: match[2] ?? ""
  }))

/** Names that a declaration file exports without a doc comment, through all files it takes names from. */
const undocumented = (file: string, names?: ReadonlyArray<string>): ReadonlyArray<string> => {
  const text = read(file)
  const own = [...text.matchAll(/(\*\/\n)?^export (?:declare )?(?:const|class|function|interface|type) (\w+)/gm)]
  const wanted = own.filter((match) => names === undefined || names.includes(match[2] ?? ""))
  const through = reexports(text).flatMap(({ names: taken, from }) =>
    undocumented(path.join(path.dirname(file), from.replace(/\.js$/, ".d.ts")), taken.length === 0 ? undefined : taken)
  )
  return [...wanted.flatMap((match) => (match[1] === undefined ? [`${file}: ${match[2]}`] : [])), ...through]
}

describe("the package", () => {
  it("type-checks in a strict project, its own declarations included, and each example runs", async () => {
    const checked = await consumer.node([tool("typescript/bin/tsc"), "-p", consumer.root])
    assert.equal(checked.stdout + checked.stderr, "")
    for (const [example, output] of Object.entries(printed)) {
      const ran = await consumer.node([path.join(consumer.root, "out", `${example}.js`)])
      // What goes to a remote server is announced there, once for each kind of data.
      const announced = /^(?:\[sigil network disclosure\]\n(?:.+\n){5})*$/
      assert.equal(ran.code, 0, `${example}: ${ran.stderr}`)
      if (example === "RemoteServer") assert.match(ran.stderr, announced)
      else assert.equal(ran.stderr, "", example)
      assert.match(ran.stdout, output, example)
    }
  })

  it("lists every example in this test", () => {
    const files = fs.readdirSync(examples).filter((file) => file.endsWith(".ts"))
    assert.deepEqual(files.map((file) => path.basename(file, ".ts")).toSorted(), Object.keys(printed).toSorted())
  })

  it("brings everything but its peers", () => {
    const manifest: { readonly [field: string]: unknown } = JSON.parse(read("package.json"))
    assert.isUndefined(manifest["dependencies"])
    const files = library(".js")
    const imported = files.flatMap((file) =>
      [...read(file).matchAll(/^(?:import|export)\b[^;"'\n]*(?:from )?["']([^"'.][^"']*)["'];?$/gm)].map(
        (match) => match[1]
      )
    )
    assert.include(imported, "effect/Effect")
    assert.deepEqual(
      imported.filter((name) => !/^(?:effect\/|node:)/.test(name ?? "")),
      []
    )
  })

  it("documents every public name", () => {
    const index = path.join("dist", "lib", "index.d.ts")
    const taken = reexports(read(index))
    assert.isAbove(taken.flatMap(({ names }) => names).length, 80)
    assert.deepEqual(undocumented(index), [])
  })

  it("does nothing when it is imported", async () => {
    const facts = `() => JSON.stringify({
      globals: Object.getOwnPropertyNames(globalThis).sort(),
      listeners: process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
      resources: process.getActiveResourcesInfo().filter((kind) => !/Req/.test(kind)),
      variables: { ...process.env }
    })`
    const ran = await consumer.node([
      "--input-type=module",
      "--eval",
      // effect itself keeps one global; it is not what is asked about. Requests such as reading a module's file end
      // by themselves, now or a moment later.
      `await import("effect"); const facts = ${facts}; const before = facts(); await import("sigil"); const after = facts(); console.log(before === after ? "true" : before + " became " + after)`
    ])
    assert.deepEqual(ran, { code: 0, stdout: "true\n", stderr: "" })
  })

  it("has the command and the demo server inside", async () => {
    const { version } = JSON.parse(read("package.json"))
    const ran = await consumer.node([path.join(consumer.installed, "dist", "bin.js"), "--version"])
    assert.equal(ran.code, 0)
    assert.include(ran.stdout, version)
    assert.isTrue(fs.existsSync(path.join(consumer.installed, "dist", "demo-server.js")))
  })

  it("satisfies publint and arethetypeswrong", async () => {
    const linted = await consumer.node([tool("publint/src/cli.js"), "run", consumer.tarball, "--strict"])
    assert.equal(linted.code, 0, linted.stdout + linted.stderr)
    assert.include(linted.stdout, "All good")
    const typed = await consumer.node([
      tool("@arethetypeswrong/cli/dist/index.js"),
      consumer.tarball,
      "--profile",
      "esm-only",
      "--no-definitely-typed",
      "--exclude-entrypoints",
      "./demo-server"
    ])
    assert.equal(typed.code, 0, typed.stdout + typed.stderr)
  }, 120_000)
})

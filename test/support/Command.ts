/** Runs the built command in a project of its own, as a user would. */
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as Schema from "effect/Schema"
import { assert } from "vitest"
import { type DocumentName, type DocumentOf, documents } from "../../src/cli/Documents.ts"

const here = path.dirname(fileURLToPath(import.meta.url))
/** Root of the repository. */
export const repository = path.join(here, "..", "..")
/** The misbehaving server of `servers/odd.mjs`. */
export const odd = path.join(here, "servers", "odd.mjs")
/** A server that repeats a secret it was granted wherever it can. */
export const leaky = path.join(here, "servers", "leaky.mjs")
/** A server whose answers do not have the members that their methods demand. */
export const misshapen = path.join(here, "servers", "misshapen.mjs")
/** The built command. */
export const bin = (): string => path.join(process.env["SIGIL_TEST_BUILD"] ?? "", "bin.js")
/** The demo server of the build. */
export const demo = (): string => path.join(process.env["SIGIL_TEST_BUILD"] ?? "", "demo-server.js")
/** The entry file of an official server, from devDependencies. */
export const official = (name: "filesystem" | "everything" | "memory"): string =>
  path.join(repository, "node_modules", "@modelcontextprotocol", `server-${name}`, "dist", "index.js")

/** What a run gave. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A run under way. */
export interface Running {
  readonly child: ChildProcess
  readonly done: Promise<Ran>
  readonly stderr: () => string
}

/** A project directory with its own home. */
export interface Project {
  readonly root: string
  readonly home: string
  readonly write: (file: string, content: string | object) => string
  readonly read: (file: string) => string
  readonly run: (args: ReadonlyArray<string>, more?: Partial<RunOptions>) => Promise<Ran>
  readonly start: (args: ReadonlyArray<string>, more?: Partial<RunOptions>) => Running
  /** Runs with `--json` and checks that stdout is exactly one document of this name that fits its schema. */
  readonly document: <Name extends DocumentName>(
    name: Name,
    args: ReadonlyArray<string>,
    more?: Partial<RunOptions>
  ) => Promise<{ readonly document: DocumentOf<Name>; readonly code: number; readonly stderr: string }>
}

/** Options of one run. */
export interface RunOptions {
  readonly env: { readonly [name: string]: string }
  readonly cwd: string
  readonly stdin: string
}

/** Makes a project; `dispose` removes it. */
export const makeProject = (): Project & { readonly dispose: () => void } => {
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-test-")))
  const root = path.join(base, "project")
  const home = path.join(base, "home")
  fs.mkdirSync(root)
  fs.mkdirSync(home)

  const start: Project["start"] = (args, more = {}) => {
    const child = spawn(process.execPath, [bin(), ...args], {
      cwd: more.cwd ?? root,
      stdio: ["pipe", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], HOME: home, SIGIL_HOME: path.join(home, ".sigil"), ...more.env }
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text
    })
    child.stdin.on("error", () => undefined)
    child.stdin.end(more.stdin ?? "")
    const done = new Promise<Ran>((resolve) => {
      child.on("close", (code, signal) => resolve({ code: code ?? (signal === null ? -1 : -2), stdout, stderr }))
    })
    return { child, done, stderr: () => stderr }
  }
  const run: Project["run"] = (args, more) => start(args, more).done

  return {
    root,
    home,
    write: (file, content) => {
      const target = path.resolve(root, file)
      fs.mkdirSync(path.dirname(target), { recursive: true })
      fs.writeFileSync(target, typeof content === "string" ? content : JSON.stringify(content, undefined, 2))
      return target
    },
    read: (file) => fs.readFileSync(path.resolve(root, file), "utf8"),
    run,
    start,
    document: async (name, args, more) => {
      const { code, stdout, stderr } = await run(["--json", ...args], more)
      assert.match(stdout, /^\{.*\}\n$/s, `stdout of ${args.join(" ")} is one document; stderr: ${stderr}`)
      assert.equal(stdout.trimEnd().split("\n").length, 1)
      const value: unknown = JSON.parse(stdout)
      const schema: Schema.Schema.AnyNoContext = documents[name]
      assert.isTrue(Schema.is(schema)(value), `the document '${name}' fits its schema: ${stdout.slice(0, 2_000)}`)
      // Just checked against the schema of this very name; the compiler cannot follow the lookup.
      return { document: value as DocumentOf<typeof name>, code, stderr }
    },
    dispose: () => fs.rmSync(base, { recursive: true, force: true })
  }
}

/** Declares one server with `--mcp-config`, calls allowed. */
export const inline = (name: string, args: ReadonlyArray<string>, more: object = {}): ReadonlyArray<string> => [
  "--mcp-config",
  JSON.stringify({
    mcpServers: { [name]: { command: process.execPath, args, trust: { approval_default: "allow" }, ...more } }
  })
]

/** Whether a process runs; zombies do not. */
export const isAlive = (pid: number): boolean => {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2))
  } catch {
    return false
  }
}

/** Waits until a condition holds; fails after the bound, which is only there so that a broken test ends. */
export const until = async (what: string, holds: () => boolean, boundMs = 20_000): Promise<void> => {
  const end = Date.now() + boundMs
  while (!holds()) {
    if (Date.now() > end) assert.fail(`never happened: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

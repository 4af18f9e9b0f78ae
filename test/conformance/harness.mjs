// The official conformance harness as a program: where it is, which scenarios its sets hold, one scenario at a time.
//
// Every run is a process group of its own with a hard end, so that neither a harness nor a client outlives its
// scenario. The harness imports `fs.globSync`, which Node has from 22 on, for a command that is not used here; on an
// older Node a loader hook supplies the name.
import { spawn } from "node:child_process"
import fs from "node:fs"
import { createRequire } from "node:module"
import path from "node:path"

/** What the harness may need beyond the limit that it sets its client, ms. */
const OWN_TIME_MS = 15_000
/** Limit of a question to the harness that runs no scenario, ms. */
const LIST_MS = 60_000

const harness = createRequire(import.meta.url)
  .resolve("@modelcontextprotocol/conformance/package.json")
  .replace(/package\.json$/, path.join("dist", "index.js"))

const stub = [
  'export * from "node:fs"',
  'export { default } from "node:fs"',
  'export const globSync = () => { throw new Error("fs.globSync needs Node 22") }'
].join("\n")
const asModule = (text) => `data:text/javascript,${encodeURIComponent(text)}`
const hooks = `export const resolve = async (specifier, context, next) =>
  (specifier === "fs" || specifier === "node:fs") && context.parentURL?.includes("/conformance/dist/")
    ? { url: ${JSON.stringify(asModule(stub))}, shortCircuit: true }
    : next(specifier, context)`
const registration = asModule(`import { register } from "node:module"; register(${JSON.stringify(asModule(hooks))})`)
const nodeArguments = typeof fs.globSync === "function" ? [harness] : ["--import", registration, harness]

/** Groups that run now, by the id of their leader. */
const running = new Set()
const end = (pid) => {
  try {
    process.kill(-pid, "SIGKILL")
  } catch {
    // Nothing is left of the group.
  }
}

/** Ends everything that was started and has not ended. */
export const endAll = () => {
  for (const pid of running) end(pid)
}

/** Runs the harness with its output in `log`; its exit code, or -1 when it had to be ended or could not start. */
const run = (args, log, limitMs) =>
  new Promise((resolve) => {
    const output = fs.openSync(log, "w")
    const child = spawn(process.execPath, [...nodeArguments, ...args], {
      stdio: ["ignore", output, output],
      detached: true
    })
    if (child.pid !== undefined) running.add(child.pid)
    const timer = setTimeout(() => end(child.pid), limitMs)
    const done = (code) => {
      clearTimeout(timer)
      if (child.pid !== undefined) {
        // A client may have left the harness behind.
        end(child.pid)
        running.delete(child.pid)
      }
      fs.closeSync(output)
      resolve(code)
    }
    child.once("error", () => done(-1))
    child.once("exit", (code) => done(code ?? -1))
  })

/** The client scenarios of one frozen set: `{ name, unscored }`, with the reason why it does not count. */
export const scenariosOf = async (set, directory) => {
  const log = path.join(directory, `list-${set}.log`)
  const code = await run(["list", "--requirements", set], log, LIST_MS)
  const text = fs.readFileSync(log, "utf8")
  if (code !== 0) throw new Error(`the harness cannot list the set ${set} (exit ${code}):\n${text.slice(-2_000)}`)
  const found = []
  let section = ""
  for (const line of text.split("\n")) {
    const [, name, leg] = /^\s+- (\S+)(?: \[(\w+)\])?/.exec(line) ?? []
    if (name === undefined) {
      const [, reason] = /^\s+([a-z-]+) \(\d+\):/.exec(line) ?? []
      section = reason ?? /^(Server|Client) scenarios/.exec(line)?.[1] ?? section
    } else if (section === "Client") found.push({ name, unscored: undefined })
    else if (leg === "client") found.push({ name, unscored: section })
  }
  if (found.length === 0) throw new Error(`the set ${set} has no client scenario`)
  return found
}

const find = (directory, file) =>
  fs
    .readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name === file)
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))[0]

const readChecks = (file) => {
  try {
    return JSON.parse(fs.readFileSync(file, "utf8"))
  } catch {
    return undefined
  }
}

/**
 * Runs one scenario: `{ code, checks, stderr, directory }`.
 *
 * `checks` is undefined when the harness left no result. `code` is its exit code: not 0 when the client failed where
 * the scenario expects success.
 */
export const runScenario = async ({ set, name, command, directory, limitMs }) => {
  fs.mkdirSync(directory, { recursive: true })
  const code = await run(
    [
      "client",
      "--command",
      command,
      "--scenario",
      name,
      "--spec-version",
      set,
      "--timeout",
      String(limitMs),
      "--force"
    ].concat(["-o", directory]),
    path.join(directory, "harness.log"),
    limitMs + OWN_TIME_MS
  )
  const checks = find(directory, "checks.json")
  const stderr = find(directory, "stderr.txt")
  return {
    code,
    directory,
    checks: checks === undefined ? undefined : readChecks(checks),
    stderr: stderr === undefined ? "" : fs.readFileSync(stderr, "utf8")
  }
}

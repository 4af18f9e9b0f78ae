// The official client conformance scenarios against sigil's library: one line per scenario and its failing checks.
// usage: npm run conformance [-- --set A,B --scenario A,B --list --verbose --summary FILE --client FILE]
//
// --client runs another program in place of client.mjs, to compare with.
// Exit 0 only when every required scenario that needs no sign-in passes strictly (score.mjs), or with --scenario every
// chosen one; 2 when nothing could be measured. Those that need sign-in run too and are shown. --summary writes
// { passed, failed } of the required ones without.
import fs from "node:fs"
import os from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { endAll, runScenario, scenariosOf } from "./harness.mjs"
import { judge, needsSignIn, totals } from "./score.mjs"

/** The frozen sets of the harness. */
const SETS = ["2025-11-25", "2026-07-28"]
/** Limit of one scenario, ms: the harness's own default. */
const LIMIT_MS = 30_000
/** Reasons that are shown without --verbose. */
const FEW_REASONS = 6
/** Last lines of a failed client's stderr that --verbose shows. */
const STDERR_LINES = 15

const say = (line) => process.stdout.write(`${line}\n`)
const die = (text) => {
  process.stderr.write(`${text}\n`)
  process.exit(2)
}
const listOf = (text) =>
  text
    ?.split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")

const optionsOf = () => {
  try {
    return parseArgs({
      options: {
        set: { type: "string" },
        scenario: { type: "string" },
        list: { type: "boolean", default: false },
        verbose: { type: "boolean", default: false },
        summary: { type: "string" },
        client: { type: "string" }
      }
    }).values
  } catch (error) {
    return die(`${error.message}\noptions: --set A,B --scenario A,B --list --verbose --summary FILE --client FILE`)
  }
}
const options = optionsOf()
const sets = listOf(options.set) ?? SETS
const wanted = listOf(options.scenario)
const client = options.client ?? fileURLToPath(new URL("client.mjs", import.meta.url))
const library = fileURLToPath(new URL("../../dist/lib/index.js", import.meta.url))
// The harness runs its command through a shell.
const quoted = (word) => `'${word.replaceAll("'", `'\\''`)}'`
const command = `${quoted(process.execPath)} ${quoted(client)}`

const directory = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-conformance-"))
process.on("exit", endAll)
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(130))

/** Every scenario to run: `{ set, name, unscored }`. */
const plan = async () => {
  const all = []
  for (const set of sets) for (const scenario of await scenariosOf(set, directory)) all.push({ set, ...scenario })
  const unknown = (wanted ?? []).filter((name) => !all.some((scenario) => scenario.name === name))
  if (unknown.length > 0) die(`no such client scenario in ${sets.join(", ")}: ${unknown.join(", ")}`)
  return wanted === undefined ? all : all.filter(({ name }) => wanted.includes(name))
}

const wordOf = ({ name, unscored, verdict }) => {
  if (verdict.passed) return "ok"
  if (unscored !== undefined) return `missed (${unscored})`
  return needsSignIn(name) ? "not yet (sign-in)" : "FAILED"
}

const show = (result) => {
  const { set, name, unscored, verdict, stderr } = result
  const note = verdict.passed && unscored !== undefined ? ` (${unscored})` : ""
  say(`${wordOf(result).padEnd(18)} ${set} ${name}${note}, ${verdict.successes} checks passed`)
  const shown = options.verbose ? verdict.reasons : verdict.reasons.slice(0, FEW_REASONS)
  for (const reason of shown) say(`    ${reason}`)
  if (verdict.reasons.length > shown.length) say(`    and ${verdict.reasons.length - shown.length} more`)
  if (!options.verbose || verdict.passed) return
  for (const line of stderr.trimEnd().split("\n").slice(-STDERR_LINES)) say(`    | ${line}`)
}

const runAll = async (scenarios) => {
  const results = []
  const queue = [...scenarios]
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const place = path.join(directory, next.set, next.name.replaceAll("/", "_"))
      const ran = await runScenario({ ...next, command, directory: place, limitMs: LIMIT_MS })
      const result = { ...next, verdict: judge(ran), stderr: ran.stderr }
      results.push(result)
      show(result)
    }
  }
  // One per core: all at once starve each other on a small machine, and some scenarios measure time.
  await Promise.all(Array.from({ length: os.availableParallelism() }, worker))
  return results
}

const scenarios = await plan().catch((error) => die(error.message))
if (options.list) {
  for (const { set, name, unscored } of scenarios)
    say(`${set}\t${unscored ?? (needsSignIn(name) ? "required, sign-in" : "required")}\t${name}`)
  fs.rmSync(directory, { recursive: true, force: true })
  process.exit(0)
}
if (options.client === undefined && !fs.existsSync(library)) die(`${library} is missing: run npm run build`)
const results = await runAll(scenarios)
const { plain, signIn } = totals(results)
if (options.summary !== undefined)
  fs.writeFileSync(options.summary, `${JSON.stringify({ passed: plain.passed, failed: plain.failed })}\n`)
say(`results in ${directory}`)
say(`conformance: PASSED ${plain.passed}/${plain.total} without sign-in, ${signIn.passed}/${signIn.total} with sign-in`)
// Chosen scenarios all have to pass, whatever they are; without a choice, those that need no sign-in.
const good =
  wanted === undefined ? plain.total > 0 && plain.failed === 0 : results.every(({ verdict }) => verdict.passed)
process.exitCode = good ? 0 : 1

// The processes a hostile server starts, what it does when it is to end, and how it tells the runner.
import { spawn } from "node:child_process"
import { appendFileSync, readFileSync } from "node:fs"

const MIB = 1024 * 1024
/** Ignores TERM and ends after a minute; the shell and its `sleep` are two processes. */
const stubborn = "trap '' TERM HUP INT; sleep 60"

/** Adds one fact to the report, at once and whole. */
export const report = (file, fact) => {
  if (file !== undefined && file !== "-") appendFileSync(file, `${JSON.stringify(fact)}\n`)
}

/** Whether a process runs; a zombie has ended. */
const runs = (pid) => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    return !/^[ZXx]/.test(stat.slice(stat.lastIndexOf(")") + 2))
  } catch {
    return false
  }
}

/** Reports this process, and every one of an earlier start of the same generation that is still there. */
export const arrive = (file) => {
  const generation = process.env.SIGIL_GENERATION
  const before = file === undefined || file === "-" ? [] : readFileSync(file, "utf8").split("\n").filter(Boolean)
  let owner
  for (const fact of before.map((line) => JSON.parse(line))) {
    owner = fact.generation ?? owner
    if (owner === generation && runs(fact.pid)) report(file, { beside: fact.pid })
  }
  report(file, { pid: process.pid, generation })
}

/** Starts a shell that ignores TERM; `detached` puts it into a session of its own. */
export const child = (file, { detached = false, stdio = "ignore" } = {}) => {
  const started = spawn("/bin/sh", ["-c", stubborn], { detached, stdio })
  started.unref()
  report(file, { pid: started.pid })
}

/** A grandchild in a session of its own that keeps this process's stdout open. */
export const holder = (file) => child(file, { detached: true, stdio: ["ignore", "inherit", "ignore"] })

/** Twenty processes, half of them in sessions of their own. */
export const tree = (file) => {
  for (let index = 0; index < 10; index += 1) child(file, { detached: index % 2 === 0 })
}

const leave = () => process.exit(0)
const stay = () => {}
const ignoreSignals = () => {
  for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) process.on(signal, stay)
}

/** Stage `close`: what happens at the start, and when stdin ends. */
export const deafness = {
  good: { end: leave },
  hang: { start: ignoreSignals, end: stay },
  exit3: {
    end: ({ writeError }) => writeError("fatal: no place to save the state\n").then(() => process.exit(3))
  },
  kill: { end: () => process.kill(process.pid, "SIGKILL") },
  late: { end: ({ sleep }) => sleep(100).then(leave) },
  holder: { start: ({ file }) => holder(file), end: leave },
  children: {
    start: ({ file }) => {
      for (let index = 0; index < 3; index += 1) child(file)
    },
    end: leave
  },
  tree: {
    start: ({ file }) => {
      ignoreSignals()
      tree(file)
    },
    end: stay
  },
  "write-after-end": {
    start: ignoreSignals,
    end: async ({ write }) => {
      for (let index = 0; index < 32; index += 1) await write(`${"x".repeat(MIB)}\n`)
    }
  },
  "stderr-flood": {
    start: ignoreSignals,
    end: async ({ writeError }) => {
      for (let index = 0; index < 32; index += 1) await writeError("e".repeat(MIB))
    }
  },
  "forks-on-term": {
    // A process that is started while the tree is being ended must not slip through.
    start: ({ file }) => process.on("SIGTERM", () => child(file, { detached: true })),
    end: stay
  }
}

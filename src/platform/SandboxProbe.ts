/**
 * Runs a sandbox once, before any server does, and reads off what it really is (R section 6.6).
 *
 * A shell inside prints what the kernel says of it: its namespaces, capabilities, interfaces and mounts, and the
 * variables that it was started with. It leaves a process of another session behind and waits. Then the shell
 * outside that started the sandbox is killed: everything that the sandbox holds, the output pipe included, must go
 * with it, so the end of the pipe is the proof. A program that only looks like a sandbox proves nothing.
 *
 * Invariants: bounded; a sandbox leaves no process, and what is none leaves one that ends by itself; nothing is written
 * outside of the sandbox.
 */
import * as Effect from "effect/Effect"
import { type ChildProcess } from "node:child_process"
import * as fs from "node:fs"
import { SECOND_MS } from "../base/Units.ts"
import type { Launcher } from "./Launcher.ts"
import { isVisible, type Layout, mountAt } from "./SandboxLayout.ts"

/** Time for the sandbox to follow its starter. */
const END_WAIT_MS = 2 * SECOND_MS
/** Time for what did not follow to be gone once it is killed. */
const KILL_WAIT_MS = 500
/** Characters of output that are kept; a table of mounts has some thousand. */
const MAX_OUTPUT = 1_000_000
const READY = "==ready"

/** The variables that the probe sends in: an ordinary one, and a name that no shell would pass on. */
export const probeVariables = (searchPath: string): { readonly [name: string]: string } => ({
  PATH: searchPath,
  "no.identifier": "kept"
})

const script = [
  'echo "$$"',
  "readlink /proc/self/ns/net",
  "readlink /proc/self/ns/pid",
  "cat /proc/self/status",
  "echo ==; cat /proc/net/dev",
  "echo ==; cat /proc/self/mountinfo",
  'echo ==; [ -w "$0" ] && echo writable; (echo x >/tmp/.probe) 2>/dev/null && echo temporary',
  "echo ==; cat /proc/$$/environ; echo",
  // Longer than the proof may take, and short enough for what a program that makes no sandbox leaves.
  "(setsid sleep 10 &)",
  `echo ${READY}; exec sleep 10`
].join("\n")

/** What a run of the sandbox proved. */
export interface Proof {
  /** A network namespace of its own with nothing but its own loopback. */
  readonly network: boolean
  /** A PID namespace of its own, the server behind its first process, and nothing of it survives its starter. */
  readonly processTree: boolean
  /** Nothing but what the layout says can be written. */
  readonly fileSystem: boolean
  /** No capability, and no way to get one. */
  readonly privileges: boolean
  /** The variables are exactly those that were given. */
  readonly environment: boolean
}

/** What the sandbox said, and whether it ended with its starter. */
interface Observed {
  readonly text: string
  readonly ended: boolean
}

/** One line of /proc/self/mountinfo. */
interface MountLine {
  readonly path: string
  readonly writable: boolean
  readonly type: string
}

/** A place of a mount; spaces and the like are octal there. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

const mountLines = (text: string): ReadonlyArray<MountLine> =>
  text.split("\n").flatMap((line) => {
    const [front = "", back = ""] = line.split(" - ")
    const words = front.split(" ")
    const [at, options] = [words[4], words[5]]
    if (at === undefined || options === undefined) return []
    // Bytes of UTF-8 in octal and as they are: compared as bytes.
    const place = Buffer.from(unescaped(Buffer.from(at).toString("latin1")), "latin1").toString()
    return [{ path: place, writable: options.split(",").includes("rw"), type: back.split(" ")[0] ?? "" }]
  })

const inside = (target: string, place: string): boolean => target === place || target.startsWith(`${place}/`)

/** Whether the mounts are what the layout says: nothing else can be written, everything to be hidden is. */
const asPlanned = (text: string, layout: Layout): boolean => {
  const lines = mountLines(text)
  const covered = (index: number, target: string): boolean =>
    lines.slice(index + 1).some((later) => later.path === "/" || inside(target, later.path))
  const strays = lines.filter((line, index) => {
    if (!line.writable || inside(line.path, "/dev") || inside(line.path, "/proc")) return false
    if (covered(index, line.path)) return false
    const kind = mountAt(layout.mounts, line.path)?.kind
    return kind === undefined || kind === "read" || kind === "cover"
  })
  const hidden = layout.mounts.every(({ kind, path }) => {
    const line = lines.findLast((one) => one.path === path)
    if (kind === "empty") return line?.type === "tmpfs"
    return kind !== "cover" || (line?.type === "tmpfs" && !line.writable)
  })
  return lines.length > 0 && strays.length === 0 && hidden
}

const linkOf = (name: "net" | "pid"): string => {
  try {
    return fs.readlinkSync(`/proc/self/ns/${name}`)
  } catch {
    return ""
  }
}

/** Reads the proof off what was said. */
const judge = (
  { ended, text }: Observed,
  layout: Layout,
  variables: { readonly [name: string]: string },
  marker: string
): Proof => {
  const [kernel = "", interfaces = "", mounts = "", access = "", environment = ""] = text.split("\n==\n")
  const [pid, net = "", namespace = ""] = kernel.split("\n")
  const status = (name: string): string | undefined => new RegExp(`^${name}:\\s*(\\S+)`, "m").exec(kernel)?.[1]
  const none = (name: string): boolean => /^0+$/.test(status(name) ?? "1")
  const names = interfaces.split("\n").flatMap((line) => /^\s*([^\s:]+):/.exec(line)?.[1] ?? [])
  const wanted = [...Object.entries(variables).map(([name, value]) => `${name}=${value}`), marker]
  const found = environment.slice(0, environment.lastIndexOf("\n")).split("\0").slice(0, -1)
  const workspaceKind = mountAt(layout.mounts, layout.workspace)?.kind
  return {
    network: /^net:\[\d+\]$/.test(net) && net !== linkOf("net") && names.every((name) => name === "lo"),
    processTree: ended && pid === "2" && /^pid:\[\d+\]$/.test(namespace) && namespace !== linkOf("pid"),
    fileSystem:
      asPlanned(mounts, layout) &&
      access.includes("writable") === (workspaceKind === "write" || workspaceKind === "pin") &&
      (isVisible(layout.mounts, "/tmp") || access.includes("temporary")),
    privileges: none("CapEff") && none("CapPrm") && none("CapAmb") && status("NoNewPrivs") === "1",
    environment: found.toSorted().join("\0") === wanted.toSorted().join("\0")
  }
}

/** Runs the sandbox once. A text says why it did not run at all. */
export const prove = (
  launcher: Launcher,
  layout: Layout,
  variables: { readonly [name: string]: string },
  boundMs: number
): Effect.Effect<Proof | string> =>
  // Loaded here: commands that never ask do not pay for it.
  Effect.flatMap(
    Effect.promise(() => import("node:child_process")),
    ({ spawn }) =>
      Effect.async<Proof | string>((resume) => {
        const marker = "SIGIL_PROBE=1"
        let out = ""
        let err = ""
        let late = false
        let killed = false
        const kill = (pid: number | undefined): void => {
          try {
            if (pid !== undefined) process.kill(pid, "SIGKILL")
          } catch {
            // Already gone.
          }
        }
        try {
          const words = [...launcher.args, "/bin/sh", "-c", script, layout.workspace]
          const child: ChildProcess = spawn("/bin/sh", ["-c", '"$0" "$@" & wait "$!"', launcher.file, ...words], {
            cwd: "/",
            env: { SIGIL_PROBE: "1" },
            stdio: ["ignore", "pipe", "pipe", "pipe"],
            detached: true
          })
          const groupOf = (): number | undefined => (child.pid === undefined ? undefined : -child.pid)
          const done = (answer: Proof | string): void => {
            clearTimeout(timer)
            for (const pipe of child.stdio) pipe?.destroy()
            resume(Effect.succeed(answer))
          }
          /** What did not end by itself is ended now, and has proved nothing. */
          const bounded = (): void => {
            late = true
            kill(groupOf())
            timer = setTimeout(
              () => done(killed ? judge({ text: out, ended: false }, layout, variables, marker) : "it did not end"),
              KILL_WAIT_MS
            )
          }
          let timer = setTimeout(bounded, boundMs)
          child.on("error", (error) => done(error.message))
          child.once("close", (code) => {
            if (killed) return done(judge({ text: out, ended: !late }, layout, variables, marker))
            const said = err.trim().split("\n")[0] ?? ""
            done(late ? "it did not answer in time" : said === "" ? `it ended with exit code ${code}` : said)
          })
          child.stdout?.setEncoding("utf8").on("data", (text: string) => {
            out = (out + text).slice(0, MAX_OUTPUT)
            if (killed || !out.includes(`\n${READY}\n`)) return
            killed = true
            clearTimeout(timer)
            timer = setTimeout(bounded, Math.min(END_WAIT_MS, boundMs))
            kill(child.pid)
          })
          child.stderr?.setEncoding("utf8").on("data", (text: string) => (err = (err + text).slice(0, MAX_OUTPUT)))
          const input = child.stdio[3]
          input?.on("error", () => {})
          if (input !== null && input !== undefined && "end" in input) input.end(launcher.variables?.(variables))
        } catch (error) {
          resume(Effect.succeed(error instanceof Error ? error.message : "it could not be started"))
        }
      })
  )

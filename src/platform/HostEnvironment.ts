/**
 * What sigil knows of the process and machine it runs on, as a service, so that no other room reads `process`.
 *
 * Variables are read at each call: a grant that changes during a run must be noticed (spec section 7).
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"

/** The host's environment. */
export class HostEnvironment extends Context.Tag("sigil/platform/HostEnvironment")<
  HostEnvironment,
  {
    /** The present value of a variable; `undefined` when it is not set. */
    readonly get: (name: string) => string | undefined
    /** The names of all variables. */
    readonly names: () => ReadonlyArray<string>
    /** Whether the bytes of a variable are UTF-8. Node decodes other bytes to U+FFFD without a word. */
    readonly isUtf8: (name: string) => boolean
    /** Directory sigil was started in, absolute. */
    readonly cwd: string
    readonly homeDirectory: string
    readonly platform: NodeJS.Platform
    /** Numeric user id; absent on Windows. */
    readonly userId: number | undefined
    /** Processors this process may use, at least 1. */
    readonly cores: number
    /**
     * Another place and owner of the company policy, for tests. The environment of a process never has it: no
     * variable, option or file of an unprivileged user may move the policy.
     */
    readonly managed?: { readonly file: string; readonly ownerId: number }
  }
>() {}

const replacement = "�"
const decoder = new TextDecoder("utf-8", { fatal: true })

/** Reads the bytes of this process's first environment: Linux only, `undefined` elsewhere. */
const initialBytes = (name: string): Buffer | undefined => {
  try {
    const all = fs.readFileSync("/proc/self/environ")
    const prefix = Buffer.from(`${name}=`)
    for (let start = 0; start < all.length;) {
      const end = all.indexOf(0, start)
      const stop = end < 0 ? all.length : end
      if (all.subarray(start, start + prefix.length).equals(prefix)) return all.subarray(start + prefix.length, stop)
      start = stop + 1
    }
  } catch {
    // No /proc: only the decoded text can be judged.
  }
  return undefined
}

/** The directory of the start. A deleted one has no path any more; what is made of it then does not exist either. */
const workingDirectory = (): string => {
  try {
    return process.cwd()
  } catch {
    return process.env["PWD"] ?? "/nonexistent"
  }
}

/** The environment of this process. */
export const layer: Layer.Layer<HostEnvironment> = Layer.sync(HostEnvironment, () => ({
  get: (name) => process.env[name],
  names: () => Object.keys(process.env),
  isUtf8: (name) => {
    const value = process.env[name]
    if (value === undefined || !value.includes(replacement)) return true
    const bytes = initialBytes(name)
    if (bytes === undefined) return false
    try {
      decoder.decode(bytes)
      return true
    } catch {
      return false
    }
  },
  cwd: workingDirectory(),
  homeDirectory: process.env["HOME"] ?? os.homedir(),
  platform: process.platform,
  userId: process.getuid?.(),
  cores: Math.max(1, os.availableParallelism())
}))

/** An environment made of given values, for tests and embedding. */
export const layerTest = (given: {
  readonly variables?: { readonly [name: string]: string }
  readonly invalidUtf8?: ReadonlyArray<string>
  readonly cwd?: string
  readonly homeDirectory?: string
  readonly managed?: { readonly file: string; readonly ownerId: number }
}): Layer.Layer<HostEnvironment> =>
  Layer.succeed(HostEnvironment, {
    get: (name) => given.variables?.[name],
    names: () => Object.keys(given.variables ?? {}),
    isUtf8: (name) => !(given.invalidUtf8 ?? []).includes(name),
    cwd: given.cwd ?? "/",
    homeDirectory: given.homeDirectory ?? "/nonexistent",
    platform: "linux",
    userId: undefined,
    cores: 2,
    ...(given.managed === undefined ? {} : { managed: given.managed })
  })

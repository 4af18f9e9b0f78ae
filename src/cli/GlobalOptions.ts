/**
 * The options that every command takes (spec section 1), as data and as the service that carries their values.
 *
 * They are accepted before and after the command words, never inside a server's own COMMAND (`Argv.ts`).
 */
import * as Context from "effect/Context"
import type { OptionSpec } from "./CommandSpec.ts"

/** The global options of this run. Paths are as typed, relative to the directory sigil was started in. */
export class GlobalOptions extends Context.Tag("sigil/cli/GlobalOptions")<
  GlobalOptions,
  {
    /** `--config PATH`: stands in for the user's sigil.toml. */
    readonly config?: string
    /** `--cwd DIR`: the workspace. */
    readonly cwd?: string
    /** `--mcp-config FILE|JSON`, in order; the last wins. */
    readonly mcpConfig: ReadonlyArray<string>
    /** `--strict-mcp-config`: read no other source. */
    readonly strict: boolean
    /** `--json`: one document on stdout. */
    readonly json: boolean
    /** `-d`, `--debug`: log to stderr, stacks of faults. */
    readonly debug: boolean
  }
>() {}

/** Values of the global options. */
export type Globals = Context.Tag.Service<GlobalOptions>

/** How they are written. `help` and `version` are answered before any command. */
export const globalOptions = {
  config: { kind: "text", value: "PATH", summary: "Read this file instead of the user's sigil.toml." },
  cwd: { kind: "text", value: "DIR", summary: "Work in this directory." },
  "mcp-config": {
    kind: "text",
    value: "FILE|JSON",
    repeatable: true,
    summary: "Add servers from a file or from JSON text."
  },
  "strict-mcp-config": { kind: "flag", summary: "Use only the servers of --mcp-config." },
  json: { kind: "flag", summary: "Print one JSON document." },
  debug: { kind: "flag", short: "d", summary: "Log to stderr; show stacks of internal faults." },
  help: { kind: "flag", short: "h", summary: "Show help." },
  version: { kind: "flag", summary: "Show the version." }
} as const satisfies { readonly [name: string]: OptionSpec }

/** No global option given. */
export const noGlobals: Globals = { mcpConfig: [], strict: false, json: false, debug: false }

/**
 * The pre-pass over argv: which command, which words and options belong to sigil, which to somebody else.
 *
 * @effect/cli cannot do this part: it lets an unknown option become an argument, trims values, drops empty ones
 * and looks for its built-in flags in every word. Here nothing is guessed: every word of argv is a command
 * word, an option of the table, an argument, or part of a server's COMMAND, which is passed on byte for byte
 * (spec section 1). What the values mean is decided by `Parse.ts`.
 *
 * Invariants: pure; a global option means the same wherever it stands before a server's COMMAND; the first
 * thing that does not fit is reported and the rest is still read for `--json` and `--help`; an option that takes
 * a value always takes the next word, whatever it looks like.
 */
import { near } from "../base/Near.ts"
import type { Command, OptionSpec } from "./CommandSpec.ts"
import type { Group } from "./Commands.ts"
import { globalOptions, type Globals } from "./GlobalOptions.ts"
import { usage, type UsageError } from "./UsageError.ts"

/** What was given to a command, not yet typed. */
export interface Given {
  /** Long name to its values, in order; a flag has none. */
  readonly values: ReadonlyMap<string, ReadonlyArray<string>>
  readonly words: ReadonlyArray<string>
  readonly tail: ReadonlyArray<string>
  readonly dashes: boolean
}

/** What the user wants. */
export type Request =
  | { readonly _tag: "Version" }
  /** Help for a command, a group, or everything (no words). */
  | { readonly _tag: "Help"; readonly path: ReadonlyArray<string> }
  /** No command at all. */
  | { readonly _tag: "Bare" }
  | { readonly _tag: "Run"; readonly command: Command; readonly given: Given }
  | { readonly _tag: "Refused"; readonly error: UsageError }

/** A command line, read. */
export interface CommandLine {
  readonly globals: Globals
  readonly request: Request
}

/** The commands to choose from. */
export interface Table {
  readonly commands: ReadonlyArray<Command>
  readonly groups: ReadonlyArray<Group>
}

const same = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): boolean =>
  left.length === right.length && left.every((word, index) => word === right[index])

/** The command with these words, by its name or an alias. */
const find = (table: Table, path: ReadonlyArray<string>): Command | undefined =>
  table.commands.find(({ shape }) =>
    [shape.path, ...(shape.aliases ?? []).map((alias) => [...shape.path.slice(0, -1), alias])].some((words) =>
      same(words, path)
    )
  )

/** Commands that somebody may have meant by `path`: a word elsewhere in the table, or a near one here. */
const nearCommands = (table: Table, path: ReadonlyArray<string>): ReadonlyArray<string> => {
  const word = path.at(-1) ?? ""
  const elsewhere = table.commands.filter(
    ({ shape }) => shape.path.at(-1) === word || (shape.aliases ?? []).includes(word)
  )
  const base = path.slice(0, -1)
  const here = [...table.commands.map(({ shape }) => shape.path), ...table.groups.map((group) => group.path)].filter(
    (words) => words.length === path.length && same(words.slice(0, -1), base)
  )
  const names = [
    ...elsewhere.map(({ shape }) => shape.path.join(" ")),
    ...near(word, [...new Set(here.map((words) => words.at(-1) ?? ""))]).map((name) => [...base, name].join(" "))
  ]
  const wide =
    names.length > 0
      ? names
      : near(
          word,
          table.commands.map(({ shape }) => shape.path.join(" "))
        )
  return [...new Set(wide)].map((name) => `sigil ${name}`)
}

type Options = { readonly [name: string]: OptionSpec }

/** An option by its long name (`--name`) or letter (`-n`). */
const option = (options: Options, dashed: string): readonly [string, OptionSpec] | undefined =>
  dashed.startsWith("--")
    ? Object.entries(options).find(([name]) => name === dashed.slice(2))
    : Object.entries(options).find(([, { short }]) => short !== undefined && short === dashed.slice(1))

/** A path, the command it has led to, and all that was read: the state of the scan. */
class Scan {
  readonly table: Table
  readonly values = new Map<string, Array<string>>()
  readonly globals = new Map<string, Array<string>>()
  readonly words: Array<string> = []
  tail: ReadonlyArray<string> = []
  path: ReadonlyArray<string> = []
  command: Command | undefined
  dashes = false
  /** Arguments are complete and the rest of argv is the server's. */
  done = false
  /** The command words lead nowhere; only global options are still understood. */
  lost = false
  error: UsageError | undefined

  constructor(table: Table) {
    this.table = table
  }

  /** The words that an error or a help text is about. */
  get spot(): ReadonlyArray<string> {
    return this.command?.shape.path ?? this.path
  }

  refuse(error: UsageError): void {
    this.error ??= error
  }

  word(word: string, rest: ReadonlyArray<string>): void {
    if (this.lost) return
    const { command } = this
    if (command === undefined) return this.commandWord(word)
    this.words.push(word)
    const { args, tail } = command.shape
    if (tail === undefined || this.words.length < args.length) return
    if (this.dashes || !tail.unless.test(word)) {
      this.tail = rest
      this.done = true
    }
  }

  commandWord(word: string): void {
    if (word === "help") {
      this.globals.set("help", [])
      return
    }
    const path = [...this.path, word]
    const command = find(this.table, path)
    if (command !== undefined) this.command = command
    else if (this.table.groups.some((group) => same(group.path, path))) this.path = path
    else {
      this.lost = true
      this.refuse(
        usage(this.path, `There is no command 'sigil ${path.join(" ")}'.`, {
          code: "SIGIL_UNKNOWN_COMMAND",
          reason: "unknown_command",
          candidates: nearCommands(this.table, path)
        })
      )
    }
  }

  /** Reads one option; returns how many words it took. */
  option(token: string, next: string | undefined, rest: ReadonlyArray<string>): number {
    const equals = token.indexOf("=")
    const dashed = equals < 0 ? token : token.slice(0, equals)
    const value = equals < 0 ? undefined : token.slice(equals + 1)
    const global = option(globalOptions, dashed)
    const found = global ?? this.ownOption(dashed)
    if (found === undefined) {
      const assigned = this.command?.shape.assignments === true && value !== undefined
      // `--timout=3` is rather a slip than an argument called `--timout`; after `--` it is taken as it is.
      if (assigned && (!dashed.startsWith("--") || this.nearOptions(dashed).length === 0)) {
        this.word(token, rest)
      } else if (!this.lost) this.unknownOption(dashed, value !== undefined)
      return 1
    }
    const [name, spec] = found
    const store = global === undefined ? this.values : this.globals
    if (spec.kind === "flag") {
      if (value !== undefined) this.refuse(usage(this.spot, `The option '${dashed}' takes no value.`))
      store.set(name, [])
      return 1
    }
    const given = value ?? next
    if (given === undefined) {
      this.refuse(usage(this.spot, `The option '${dashed}' needs a value: ${dashed} ${valueLabel(spec)}`))
      return 1
    }
    const before = store.get(name)
    if (before === undefined || !("repeatable" in spec)) store.set(name, [given])
    else before.push(given)
    return value === undefined ? 2 : 1
  }

  /** An option of the command; at a group's words, one of the command that the group stands for. */
  ownOption(dashed: string): readonly [string, OptionSpec] | undefined {
    if (this.command !== undefined) return option(this.command.shape.options, dashed)
    const stand = this.standIn()
    const found = stand === undefined ? undefined : option(stand.shape.options, dashed)
    if (found !== undefined) this.command = stand
    return found
  }

  standIn(): Command | undefined {
    const group = this.table.groups.find(({ path }) => same(path, this.path))
    return group === undefined ? undefined : find(this.table, group.standsFor)
  }

  nearOptions(dashed: string): ReadonlyArray<string> {
    const names = Object.keys({ ...globalOptions, ...this.command?.shape.options })
    return near(
      `--${dashed.replace(/^-+/, "")}`,
      names.map((name) => `--${name}`)
    )
  }

  unknownOption(dashed: string, assigned: boolean): void {
    const whose = this.command === undefined ? "sigil" : `'sigil ${this.command.shape.path.join(" ")}'`
    const isWord = this.command?.shape.assignments === true && assigned
    this.refuse(
      usage(this.spot, `The option '${dashed}' is not known to ${whose}.`, {
        code: "SIGIL_UNKNOWN_OPTION",
        reason: "unknown_option",
        candidates: this.nearOptions(dashed),
        ...(isWord ? { fix: "If it is an argument of the tool, write it after '--'." } : {})
      })
    )
  }

  request(): Request {
    if (this.lost && this.error !== undefined) return { _tag: "Refused", error: this.error }
    if (this.globals.has("help")) return { _tag: "Help", path: this.spot }
    if (this.globals.has("version")) return { _tag: "Version" }
    if (this.error !== undefined) return { _tag: "Refused", error: this.error }
    const command = this.command ?? this.standIn()
    if (command === undefined) return { _tag: "Bare" }
    const { values, words, tail, dashes } = this
    return { _tag: "Run", command, given: { values, words, tail, dashes } }
  }
}

/** How an option's value is called. */
export const valueLabel = (spec: OptionSpec): string => {
  if (spec.kind === "flag") return ""
  return spec.kind === "choice" ? (spec.value ?? spec.choices.join("|")) : spec.value
}

const globalsOf = (given: ReadonlyMap<string, ReadonlyArray<string>>): Globals => {
  const config = given.get("config")?.[0]
  const cwd = given.get("cwd")?.[0]
  return {
    ...(config === undefined ? {} : { config }),
    ...(cwd === undefined ? {} : { cwd }),
    mcpConfig: given.get("mcp-config") ?? [],
    strict: given.has("strict-mcp-config"),
    json: given.has("json"),
    debug: given.has("debug")
  }
}

/** Reads the words after the program's name. */
export const parse = (argv: ReadonlyArray<string>, table: Table): CommandLine => {
  const scan = new Scan(table)
  for (let index = 0; index < argv.length && !scan.done;) {
    const token = argv[index] ?? ""
    const rest = argv.slice(index + 1)
    if (scan.dashes) {
      scan.word(token, rest)
      index += 1
    } else if (token === "--") {
      scan.dashes = true
      index += 1
    } else if (token.length > 1 && token.startsWith("-")) {
      index += scan.option(token, rest[0], rest)
    } else {
      scan.word(token, rest)
      index += 1
    }
  }
  return { globals: globalsOf(scan.globals), request: scan.request() }
}

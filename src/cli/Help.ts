/**
 * Help texts, printed from the same descriptions that are parsed.
 *
 * Own printer, because the one of @effect/cli writes colour codes into pipes and mixes in options of its own.
 */
import { valueLabel, type Table } from "./Argv.ts"
import type { ArgumentSpec, Command, OptionSpec, Section, Shape } from "./CommandSpec.ts"
import { globalOptions } from "./GlobalOptions.ts"
import { bold, cyan, dim, type Line, wrap } from "./Markup.ts"
import { spoken } from "./UsageError.ts"

/** Widest text; longer lines are hard to read. */
const MAX_WIDTH = 100
/** Narrowest text that is still wrapped. */
const MIN_WIDTH = 40
/** Labels longer than this stand on a line of their own. */
const MAX_LABEL = 32

const sections: ReadonlyArray<Section> = [
  "Servers",
  "Project approval",
  "Tools",
  "Resources and prompts",
  "Help and checks"
]

/** `label  text` rows, the text wrapped beside its label. */
const list = (rows: ReadonlyArray<readonly [label: string, text: string]>, width: number): ReadonlyArray<Line> => {
  const short = rows.map(([label]) => label.length).filter((length) => length <= MAX_LABEL)
  const room = Math.max(0, ...short)
  const indent = " ".repeat(room + 4)
  return rows.flatMap(([label, text]): ReadonlyArray<Line> => {
    const lines = wrap(text, Math.max(MIN_WIDTH / 2, width - indent.length))
    const beside = label.length <= room
    const first: Line = beside ? ["  ", cyan(label.padEnd(room)), `  ${lines[0] ?? ""}`] : ["  ", cyan(label)]
    return [first, ...lines.slice(beside ? 1 : 0).map((line) => `${indent}${line}`)]
  })
}

/** `title: summary`, wrapped, the title in bold. */
const heading = (title: string, summary: string, width: number): ReadonlyArray<Line> => {
  const [first = "", ...rest] = wrap(`${title}: ${summary}`, width)
  return [[bold(title), first.slice(title.length)], ...rest]
}

const block = (title: string, lines: ReadonlyArray<Line>): ReadonlyArray<Line> =>
  lines.length === 0 ? [] : ["", bold(title), ...lines]

const optionLabel = (name: string, spec: OptionSpec): string => {
  const value = valueLabel(spec)
  return `${spec.short === undefined ? "" : `-${spec.short}, `}--${name}${value === "" ? "" : ` ${value}`}`
}

const optionText = (spec: OptionSpec): string => {
  const notes = [
    ...("repeatable" in spec ? ["may be repeated"] : []),
    ...("default" in spec ? [`default ${spec.default}`] : [])
  ]
  return notes.length === 0 ? spec.summary : `${spec.summary.replace(/\.$/, "")} (${notes.join(", ")}).`
}

const optionRows = (options: { readonly [name: string]: OptionSpec }): ReadonlyArray<readonly [string, string]> =>
  Object.entries(options).map(([name, spec]) => [optionLabel(name, spec), optionText(spec)])

const argumentWord = ({ label, optional, repeated }: ArgumentSpec): string => {
  const word = repeated === true ? `${label}...` : label
  return optional === true ? `[${word}]` : word
}

/** Usage lines of a command, without an indent. */
export const usageOf = (shape: Shape): ReadonlyArray<string> => {
  const options = Object.keys(shape.options).length === 0 ? [] : ["[options]"]
  const lines = shape.usage ?? [[...options, ...shape.args.map(argumentWord)].join(" ")]
  return lines.map((line) => `${spoken(shape.path)} ${line}`.trimEnd())
}

const ofCommand = ({ shape }: Command, width: number): ReadonlyArray<Line> => {
  const aliases = (shape.aliases ?? []).map((alias) => spoken([...shape.path.slice(0, -1), alias]))
  const tail: ReadonlyArray<readonly [string, string]> =
    shape.tail === undefined ? [] : [[shape.tail.label, shape.tail.summary]]
  return [
    ...heading(spoken(shape.path), shape.summary, width),
    ...block(
      "Usage",
      usageOf(shape).map((line) => `  ${line}`)
    ),
    ...(aliases.length === 0 ? [] : [dim(`  (also: ${aliases.join(", ")})`)]),
    ...shape.description.flatMap((paragraph): ReadonlyArray<Line> => ["", ...wrap(paragraph, width)]),
    ...block(
      "Arguments",
      list([...shape.args.map((one): readonly [string, string] => [one.label, one.summary]), ...tail], width)
    ),
    ...block("Options", list(optionRows(shape.options), width)),
    ...block(
      "Examples",
      shape.examples.flatMap(({ line, does }): ReadonlyArray<Line> => [dim(`  # ${does}`), `  ${line}`])
    ),
    "",
    ...wrap(
      `Options of every command, explained by 'sigil --help': ${Object.keys(globalOptions)
        .filter((name) => name !== "version")
        .map((name) => `--${name}`)
        .join(", ")}.`,
      width
    ).map(dim)
  ]
}

const commandRows = (commands: ReadonlyArray<Command>): ReadonlyArray<readonly [string, string]> =>
  commands.map(({ shape }) => [shape.path.join(" "), shape.summary])

const bySection = (commands: ReadonlyArray<Command>, width: number): ReadonlyArray<Line> =>
  sections.flatMap((section) =>
    block(section, list(commandRows(commands.filter(({ shape }) => shape.section === section)), width))
  )

const firstSteps: ReadonlyArray<Line> = [
  dim("  # declare a server, approve it for this project, look at its tools, call one"),
  "  sigil mcp add fs npx -y @modelcontextprotocol/server-filesystem /tmp",
  "  sigil mcp approve fs",
  "  sigil mcp tools fs",
  "  sigil mcp call fs list_directory path=/tmp"
]

const more = (words: ReadonlyArray<string>): ReadonlyArray<Line> => [
  "",
  `Run '${spoken(words)} COMMAND --help' for one command.`
]

/** The help of a command, of a group's words, or of everything (no words). `columns` is the terminal's width. */
export const help = (table: Table, path: ReadonlyArray<string>, columns: number): ReadonlyArray<Line> => {
  const width = Math.max(MIN_WIDTH, Math.min(MAX_WIDTH, columns))
  const is = (words: ReadonlyArray<string>): boolean => words.join(" ") === path.join(" ")
  const command = table.commands.find(({ shape }) => is(shape.path))
  if (command !== undefined) return ofCommand(command, width)
  const group = path.length === 0 ? undefined : table.groups.find((one) => is(one.path))
  if (group !== undefined) {
    const inside = table.commands.filter(({ shape }) => group.path.every((word, index) => shape.path[index] === word))
    return [
      ...heading(spoken(group.path), group.summary, width),
      ...block("Usage", [`  ${spoken(group.path)} COMMAND`]),
      ...bySection(inside, width),
      ...block("First steps", firstSteps),
      ...more(group.path)
    ]
  }
  return [
    ...heading("sigil", "run MCP servers that you do not fully trust.", width),
    ...block("Usage", ["  sigil [options] COMMAND"]),
    ...bySection(table.commands, width),
    ...block("Options, before or after the command's words", list(optionRows(globalOptions), width)),
    ...block("First steps", firstSteps),
    ...more([])
  ]
}

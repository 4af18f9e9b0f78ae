/** `sigil completions`: a script for bash, zsh or fish, made from the command table. */
import * as Effect from "effect/Effect"
import { near } from "../../base/Near.ts"
import { commands } from "../Commands.ts"
import type { Input } from "../commands/Completions.ts"
import type { OptionSpec, Shape } from "../CommandSpec.ts"
import { globalOptions } from "../GlobalOptions.ts"
import type { Handler } from "../Handler.ts"
import { Output } from "../Output.ts"
import { usage } from "../UsageError.ts"

/** One position in the command line: the words so far, and what may follow. */
interface Place {
  readonly path: string
  readonly words: ReadonlyArray<{ readonly word: string; readonly does: string }>
  readonly options: ReadonlyArray<{
    readonly name: string
    readonly does: string
    readonly choices: ReadonlyArray<string>
  }>
}

const optionsOf = (options: { readonly [name: string]: OptionSpec }): Place["options"] =>
  Object.entries(options).map(([name, option]) => ({
    name: `--${name}`,
    does: option.summary,
    choices: option.kind === "choice" ? option.choices : []
  }))

const shapes: ReadonlyArray<Shape> = commands.map(({ shape }) => shape)
const globals = optionsOf(globalOptions)

/** Every position that begins a command, and the commands themselves. */
const places = (): ReadonlyArray<Place> => {
  const starts = new Set([""])
  for (const { path } of shapes) for (let end = 1; end < path.length; end += 1) starts.add(path.slice(0, end).join(" "))
  const groups = [...starts].map((start): Place => {
    const depth = start === "" ? 0 : start.split(" ").length
    const below = shapes.filter(({ path }) => path.slice(0, depth).join(" ") === start && path.length > depth)
    const words = new Map<string, string>()
    for (const { path, summary } of below) {
      const word = path[depth]
      if (word !== undefined && !words.has(word)) words.set(word, path.length === depth + 1 ? summary : "")
    }
    return { path: start, words: [...words].map(([word, does]) => ({ word, does })), options: globals }
  })
  const leaves = shapes.map((shape): Place => ({
    path: shape.path.join(" "),
    words: [],
    options: [...optionsOf(shape.options), ...globals]
  }))
  return [...groups, ...leaves]
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const bash = (): ReadonlyArray<string> => [
  "# bash completion for sigil",
  "_sigil() {",
  '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" path="" word i',
  "  for ((i = 1; i < COMP_CWORD; i++)); do",
  '    word="${COMP_WORDS[i]}"',
  '    case "$word" in -*) continue ;; esac',
  '    case "${path:+$path }$word" in',
  `      ${[...new Set(places().map(({ path }) => path))]
    .filter((path) => path !== "")
    .map(quote)
    .join("|")}) path="\${path:+$path }$word" ;;`,
  "    esac",
  "  done",
  '  case "$path|$previous" in',
  ...places().flatMap(({ path, options }) =>
    options
      .filter(({ choices }) => choices.length > 0)
      .map(
        ({ name, choices }) =>
          `    ${quote(`${path}|${name}`)}) COMPREPLY=($(compgen -W ${quote(choices.join(" "))} -- "$current")); return ;;`
      )
  ),
  "  esac",
  '  case "$path" in',
  ...places().map(
    ({ path, words, options }) =>
      `    ${quote(path)}) COMPREPLY=($(compgen -W ${quote([...words.map(({ word }) => word), ...options.map(({ name }) => name)].join(" "))} -- "$current")) ;;`
  ),
  "  esac",
  "}",
  "complete -o default -F _sigil sigil"
]

const zsh = (): ReadonlyArray<string> => [
  "#compdef sigil",
  "# zsh completion for sigil",
  "_sigil() {",
  '  local path="" word i',
  "  for ((i = 2; i < CURRENT; i++)); do",
  '    word="${words[i]}"',
  '    [[ "$word" == -* ]] && continue',
  '    case "${path:+$path }$word" in',
  `      ${[...new Set(places().map(({ path }) => path))]
    .filter((path) => path !== "")
    .map((path) => `(${quote(path)})`.slice(1, -1))
    .join("|")}) path="\${path:+$path }$word" ;;`,
  "    esac",
  "  done",
  "  local -a candidates",
  '  case "$path|${words[CURRENT-1]}" in',
  ...places().flatMap(({ path, options }) =>
    options
      .filter(({ choices }) => choices.length > 0)
      .map(
        ({ name, choices }) =>
          `    ${quote(`${path}|${name}`)}) candidates=(${choices.map(quote).join(" ")}); _describe value candidates; return ;;`
      )
  ),
  "  esac",
  '  case "$path" in',
  ...places().map(({ path, words, options }) => {
    const all = [
      ...words.map(({ word, does }) => [word, does] as const),
      ...options.map(({ name, does }) => [name, does] as const)
    ]
    return `    ${quote(path)}) candidates=(${all.map(([word, does]) => quote(`${word}:${does.replaceAll(":", "\\:")}`)).join(" ")}) ;;`
  }),
  "  esac",
  "  _describe -o command candidates || _files",
  "}",
  // As an autoloaded file the function body runs; sourced, it registers itself.
  'if [[ "${funcstack[1]}" == "_sigil" ]]; then _sigil "$@"; else compdef _sigil sigil; fi'
]

const fish = (): ReadonlyArray<string> => [
  "# fish completion for sigil",
  "function __sigil_path",
  "    set -l path",
  "    for word in (commandline -opc)[2..-1]",
  "        string match -q -- '-*' $word; and continue",
  '        set -l next (string trim -- "$path $word")',
  `        if contains -- $next ${[...new Set(places().map(({ path }) => path))]
    .filter((path) => path !== "")
    .map(quote)
    .join(" ")}`,
  "            set path $next",
  "        end",
  "    end",
  '    test "$path" = "$argv[1]"',
  "end",
  ...places().flatMap(({ path, words, options }) => [
    ...words.map(
      ({ word, does }) =>
        `complete -c sigil -f -n ${quote(`__sigil_path ${quote(path)}`)} -a ${quote(word)} -d ${quote(does)}`
    ),
    ...options.map(
      ({ name, does, choices }) =>
        `complete -c sigil -n ${quote(`__sigil_path ${quote(path)}`)} -l ${name.slice(2)} -d ${quote(does)}${choices.length > 0 ? ` -x -a ${quote(choices.join(" "))}` : ""}`
    )
  ])
]

const shells: { readonly [name: string]: () => ReadonlyArray<string> } = { bash, zsh, fish }

/** The handler. */
export const handler: Handler<Input> = ({ args }) =>
  Effect.gen(function* () {
    const output = yield* Output
    const make = Object.hasOwn(shells, args.shell) ? shells[args.shell] : undefined
    if (make === undefined) {
      return yield* usage(
        ["completions"],
        `There are completions for ${Object.keys(shells).join(", ")}, not for '${args.shell}'.`,
        {
          candidates: near(args.shell, Object.keys(shells))
        }
      )
    }
    const script = make()
    yield* output.document("completions", {
      schema: "sigil.completions/1",
      shell: args.shell,
      script: script.join("\n")
    })
    yield* output.text(script)
    return 0
  })

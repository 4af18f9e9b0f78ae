/**
 * A command as data: words, arguments, options, help text and where its handler lives.
 *
 * One description feeds everything that must agree: the pre-pass over argv (`Argv.ts`), the typed parser
 * (`Parse.ts`, on @effect/cli), the help printer (`Help.ts`) and the type of the handler's input (`InputOf`).
 * Descriptions are static and small; handlers are loaded by `import()` only when they run, because start-up
 * time is mostly code that has to be compiled.
 */
import type * as Effect from "effect/Effect"
import type { Failure } from "../base/Failure.ts"
import type { Handler, HandlerServices } from "./Handler.ts"

interface OptionBase {
  /** One line for the help. */
  readonly summary: string
  /** One letter: `-d`. */
  readonly short?: string
}

/** `--name`, present or absent. */
export interface FlagOption extends OptionBase {
  readonly kind: "flag"
}

/** `--name VALUE`. */
export interface TextOption extends OptionBase {
  readonly kind: "text"
  /** How the help calls the value, e.g. `PATH`. */
  readonly value: string
  /** May be given more than once; every value counts. */
  readonly repeatable?: true
}

/** `--name N`: `integer` or any finite `number`. */
export interface NumberOption extends OptionBase {
  readonly kind: "integer" | "number"
  /** How the help calls the value, e.g. `SECS`. */
  readonly value: string
  readonly default?: number
}

/** `--name ONE-OF-THESE`. */
export interface ChoiceOption extends OptionBase {
  readonly kind: "choice"
  readonly choices: ReadonlyArray<string>
  /** How the help calls the value; the choices themselves when absent. */
  readonly value?: string
  readonly default?: string
}

/** One option of a command. Its long name is the key it stands under. */
export type OptionSpec = FlagOption | TextOption | NumberOption | ChoiceOption

/** One positional argument. */
export interface ArgumentSpec {
  /** Key in the input. */
  readonly key: string
  /** How the help calls it, e.g. `NAME`. */
  readonly label: string
  readonly summary: string
  readonly optional?: true
  /** Takes all words that are left; only the last argument may. */
  readonly repeated?: true
}

/** Words that belong to somebody else: once the last argument is read, the rest of argv is kept verbatim. */
export interface TailSpec {
  readonly label: string
  readonly summary: string
  /** Where the last argument has this form (and no `--` came before it), there is no tail and options go on. */
  readonly unless: RegExp
}

/** One runnable line for the help. */
export interface Example {
  readonly line: string
  readonly does: string
}

/** Heading under which `sigil --help` lists a command. */
export type Section = "Servers" | "Project approval" | "Tools" | "Resources and prompts" | "Help and checks"

/** Everything about a command but its handler. */
export interface Shape {
  /** The command's words, e.g. `["mcp", "add"]`. */
  readonly path: ReadonlyArray<string>
  /** Other spellings of the last word. */
  readonly aliases?: ReadonlyArray<string>
  readonly section: Section
  /** One line. */
  readonly summary: string
  /** Paragraphs of the command's own help. */
  readonly description: ReadonlyArray<string>
  readonly examples: ReadonlyArray<Example>
  /** Usage lines after the command's words; derived from the arguments when absent. */
  readonly usage?: ReadonlyArray<string>
  readonly args: ReadonlyArray<ArgumentSpec>
  readonly options: { readonly [name: string]: OptionSpec }
  readonly tail?: TailSpec
  /** Words with `=` may begin with a dash (`-n=5`): arguments of a tool, not options of ours. */
  readonly assignments?: true
}

type Scalar<O> = O extends { readonly kind: "integer" | "number" }
  ? number
  : O extends { readonly kind: "choice"; readonly choices: ReadonlyArray<infer C> }
    ? C
    : string

type OptionValue<O> = O extends { readonly kind: "flag" }
  ? boolean
  : O extends { readonly repeatable: true }
    ? ReadonlyArray<Scalar<O>>
    : O extends { readonly default: string | number }
      ? Scalar<O>
      : Scalar<O> | undefined

type ArgumentValue<A> = A extends { readonly repeated: true }
  ? ReadonlyArray<string>
  : A extends { readonly optional: true }
    ? string | undefined
    : string

/** What the parser hands to a handler, before the types of the shape are known. */
export interface ParsedInput {
  readonly args: { readonly [key: string]: unknown }
  readonly options: { readonly [name: string]: unknown }
  readonly tail: ReadonlyArray<string>
  readonly dashes: boolean
}

/** The input of the handler of a command with this shape. */
export interface InputOf<S extends Shape> {
  readonly args: { readonly [A in S["args"][number] as A["key"]]: ArgumentValue<A> }
  /** By long name, e.g. `options["inherit-env"]`. */
  readonly options: { readonly [N in keyof S["options"]]: OptionValue<S["options"][N]> }
  /** The words of the server's COMMAND, verbatim; empty for commands without a tail. */
  readonly tail: ReadonlyArray<string>
  /** Whether `--` ended the options before the tail, or before the last words. */
  readonly dashes: boolean
}

/** A handler whose input type has been forgotten. */
export type AnyHandler = (input: ParsedInput) => Effect.Effect<number, Failure, HandlerServices>

/** A command with its lazy handler. */
export interface Command {
  readonly shape: Shape
  /** Loads the handler's module. */
  readonly load: () => Promise<AnyHandler>
  /** What is wrong with the input as a whole, e.g. two options that exclude each other. */
  readonly check: (input: ParsedInput) => string | undefined
}

/** Gives a literal shape its exact type. */
export const shapeOf = <const S extends Shape>(shape: S): S => shape

/** Joins a shape to its lazy handler; the compiler holds the handler's input to the shape. */
export const attach = <S extends Shape>(
  shape: S,
  load: () => Promise<{ readonly handler: Handler<InputOf<S>> }>,
  check?: (input: InputOf<S>) => string | undefined
): Command => {
  // The parser builds the input from this very shape; the compiler cannot see that through `ParsedInput`.
  const typed = (input: ParsedInput): InputOf<S> => input as unknown as InputOf<S>
  return {
    shape,
    check: (input) => check?.(typed(input)),
    load: () =>
      load().then(
        ({ handler }) =>
          (input) =>
            handler(typed(input))
      )
  }
}

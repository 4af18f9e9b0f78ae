/**
 * From given words to typed input, by @effect/cli.
 *
 * `Argv.ts` has already decided which word is what, so only the typing half of @effect/cli is used:
 * `Options.parse` takes values by name and `Args.validate` takes words, and neither trims, drops or
 * reinterprets anything. Its messages name no option, so the words of the errors are ours.
 *
 * Invariant: the input has a key for every argument and option of the shape; absent ones are `undefined`, `false`
 * or an empty array.
 */
import * as Args from "@effect/cli/Args"
import * as CliConfig from "@effect/cli/CliConfig"
import * as Options from "@effect/cli/Options"
import type * as ValidationError from "@effect/cli/ValidationError"
import * as Effect from "effect/Effect"
import * as HashMap from "effect/HashMap"
import { near } from "../base/Near.ts"
import { type Given, valueLabel } from "./Argv.ts"
import type { ArgumentSpec, Command, OptionSpec, ParsedInput, Shape } from "./CommandSpec.ts"
import { usage, type UsageError } from "./UsageError.ts"

/** The option as @effect/cli knows it. */
export const optionOf = (name: string, spec: OptionSpec): Options.Options<unknown> => {
  switch (spec.kind) {
    case "flag":
      return Options.boolean(name)
    case "text":
      return spec.repeatable === true
        ? Options.repeated(Options.text(name))
        : Options.withDefault(Options.text(name), undefined)
    case "integer":
      return Options.withDefault(Options.integer(name), spec.default)
    case "number":
      return Options.withDefault(Options.float(name), spec.default)
    case "choice":
      return Options.withDefault(Options.choice(name, spec.choices), spec.default)
  }
}

/** The argument as @effect/cli knows it. */
export const argumentOf = (spec: ArgumentSpec): Args.Args<unknown> => {
  const text = Args.text({ name: spec.label })
  if (spec.repeated === true) return spec.optional === true ? Args.repeated(text) : Args.atLeast(text, 1)
  return spec.optional === true ? Args.withDefault(text, undefined) : text
}

/** None of the kinds used here reads a file or asks the user, whatever the types of the library allow. */
const pure = <A>(effect: Effect.Effect<A, ValidationError.ValidationError, unknown>) =>
  effect as Effect.Effect<A, ValidationError.ValidationError> // see above: the services are never reached

const misfit = (shape: Shape, name: string, spec: OptionSpec, values: ReadonlyArray<string>): UsageError => {
  const wrong = values.join(" ")
  if (spec.kind === "choice") {
    return usage(shape.path, `--${name}: '${wrong}' is none of ${spec.choices.join(", ")}.`, {
      candidates: near(wrong, spec.choices)
    })
  }
  const wanted = spec.kind === "integer" ? "a whole number" : spec.kind === "number" ? "a number" : valueLabel(spec)
  return usage(shape.path, `--${name}: '${wrong}' is not ${wanted}.`)
}

const readOption = (
  shape: Shape,
  name: string,
  spec: OptionSpec,
  values: ReadonlyArray<string> | undefined
): Effect.Effect<unknown, UsageError> =>
  pure(
    Options.parse(
      optionOf(name, spec),
      values === undefined ? HashMap.empty<string, ReadonlyArray<string>>() : HashMap.make([`--${name}`, values]),
      CliConfig.defaultConfig
    )
  ).pipe(
    // The library also takes "Infinity" and "NaN" for numbers.
    Effect.filterOrFail(
      (value) => typeof value !== "number" || Number.isFinite(value),
      () => undefined
    ),
    Effect.mapError(() => misfit(shape, name, spec, values ?? []))
  )

/** Types what was given to a command. Fails with `SIGIL_USAGE`. */
export const parse = (command: Command, given: Given): Effect.Effect<ParsedInput, UsageError> =>
  Effect.gen(function* () {
    const { shape } = command
    const options: Record<string, unknown> = {}
    for (const [name, spec] of Object.entries(shape.options)) {
      options[name] = yield* readOption(shape, name, spec, given.values.get(name))
    }
    const args: Record<string, unknown> = {}
    let words = given.words
    for (const spec of shape.args) {
      const [left, value] = yield* pure(Args.validate(argumentOf(spec), words, CliConfig.defaultConfig)).pipe(
        Effect.mapError(() =>
          usage(shape.path, `${spec.label} is missing: ${spec.summary}`, { reason: "missing_argument" })
        )
      )
      args[spec.key] = value
      words = left
    }
    const [extra] = words
    if (extra !== undefined) {
      return yield* usage(shape.path, `The word '${extra}' is one too many for 'sigil ${shape.path.join(" ")}'.`, {
        reason: "extra_argument"
      })
    }
    const input: ParsedInput = { args, options, tail: given.tail, dashes: given.dashes }
    const wrong = command.check(input)
    if (wrong !== undefined) return yield* usage(shape.path, wrong)
    return input
  })

/** `key=value` words whose values are always text, as prompts and completion want them. */
import * as Effect from "effect/Effect"
import { usage, type UsageError } from "./UsageError.ts"

/** The words as an object; a word without `=`, one with `:=` (JSON, as calls take it) and a key given twice are refused. */
export const textArguments = (
  command: ReadonlyArray<string>,
  words: ReadonlyArray<string>
): Effect.Effect<{ readonly [key: string]: string }, UsageError> =>
  Effect.gen(function* () {
    const found = new Map<string, string>()
    for (const word of words) {
      const split = word.indexOf("=")
      if (split <= 0) return yield* usage(command, `'${word.slice(0, 64)}' is no argument; write key=value.`)
      const key = word.slice(0, split)
      if (key.endsWith(":"))
        return yield* usage(command, `'${word.slice(0, 64)}': values are text here; write ${key.slice(0, -1)}=value.`)
      if (found.has(key)) return yield* usage(command, `The argument '${key}' is given twice.`)
      found.set(key, word.slice(split + 1))
    }
    return Object.fromEntries(found)
  })

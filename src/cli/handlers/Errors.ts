/** `sigil errors [CODE]`: explains codes from the catalogue. */
import * as Effect from "effect/Effect"
import { catalogue, type Code, codes, isCode } from "../../base/Codes.ts"
import { near } from "../../base/Near.ts"
import type { Input } from "../commands/Errors.ts"
import type { Handler } from "../Handler.ts"
import { bold, dim } from "../Markup.ts"
import { Output } from "../Output.ts"
import { UsageError } from "../UsageError.ts"

const PREFIX = "SIGIL_"

const rowOf = (code: Code) => ({ code, ...catalogue[code] })

/** The code that is meant: in any case, with or without its prefix. */
const meant = (text: string): string => {
  const upper = text.trim().toUpperCase().replaceAll("-", "_")
  return upper.startsWith(PREFIX) ? upper : `${PREFIX}${upper}`
}

/** Prints one code in full, or all in a table. Fails with `SIGIL_UNKNOWN_CODE`. */
export const handler: Handler<Input> = ({ args }) =>
  Effect.gen(function* () {
    const output = yield* Output
    if (args.code === undefined) {
      yield* output.document("errors", { schema: "sigil.errors/1", errors: codes.map(rowOf) })
      yield* output.table(
        ["CODE", "EXIT", "MEANING"],
        codes.map((code) => [code, String(catalogue[code].exit), catalogue[code].summary])
      )
      return 0
    }
    const code = meant(args.code)
    if (!isCode(code)) {
      return yield* new UsageError({
        code: "SIGIL_UNKNOWN_CODE",
        reason: "unknown_code",
        text: `There is no error code '${args.code}'.`,
        candidates: near(
          code.slice(PREFIX.length),
          codes.map((one) => one.slice(PREFIX.length))
        ).map((one) => `${PREFIX}${one}`)
      })
    }
    const { exit, summary, fix } = catalogue[code]
    yield* output.document("errors", { schema: "sigil.errors/1", errors: [rowOf(code)] })
    yield* output.text([bold(code), `  ${summary}`, [dim("  fix:  "), fix], [dim("  exit: "), String(exit)]])
    return 0
  })

/** `sigil mcp explain`: each gate of admission with the verdict that a call would meet; starts nothing. */
import * as Effect from "effect/Effect"
import * as Declarations from "../../runtime/Declarations.ts"
import { Admission } from "../../server/Admission.ts"
import type { Input } from "../commands/McpExplain.ts"
import { placeOf } from "../FailureText.ts"
import type { Handler } from "../Handler.ts"
import { declaring, interactionOf } from "../Interaction.ts"
import { dim, green, red } from "../Markup.ts"
import { Output } from "../Output.ts"
import { rowOf, runtimeOptions, snapshot } from "../Session.ts"

const marks = { pass: green("pass"), refuse: red("REFUSE"), not_reached: dim("-") } as const

/** The handler. */
export const handler: Handler<Input> = ({ args }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const admission = yield* Admission
      const { entry } = yield* rowOf(args.name)
      const verdicts = yield* admission.explain(entry, { snapshot: yield* snapshot, networkApproved: false })
      if (output.json) {
        yield* output.document("explain", {
          schema: "sigil.mcp.explain/1",
          name: args.name,
          gates: verdicts.map(({ gate, verdict, why, where }) => ({
            gate,
            verdict,
            why,
            ...(where === undefined ? {} : { where })
          }))
        })
        return 0
      }
      const refused = verdicts.find(({ verdict }) => verdict === "refuse")
      yield* output.text([
        refused === undefined
          ? `${args.name}: every gate passes; it would be started.`
          : `${args.name}: the gate '${refused.gate}' refuses; nothing would be started.`,
        ""
      ])
      const cells = verdicts.map(({ gate, verdict, why, where }) => {
        const place = verdict === "refuse" && where !== undefined ? placeOf(where) : undefined
        return [gate, marks[verdict], place === undefined ? why : `${why} (${place})`]
      })
      yield* output.table(["GATE", "VERDICT", "WHY"], cells)
      const fix = refused?.refusal?.fix
      if (fix !== undefined) yield* output.text(["", `fix: ${fix}`])
      return 0
    }).pipe(Effect.provide(Declarations.layer(run)), declaring(yield* interactionOf(undefined)))
  })

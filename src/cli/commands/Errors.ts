/** `sigil errors`: the catalogue of error codes. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["errors"],
  section: "Help and checks",
  summary: "Explain an error code, or list them all.",
  description: ["Every error of sigil has a stable code. Scripts can rely on the code and on its exit status."],
  examples: [{ line: "sigil errors SIGIL_START_TIMEOUT", does: "what it means and what helps" }],
  args: [{ key: "code", label: "CODE", summary: "One code; SIGIL_ may be left out.", optional: true }],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/Errors.ts"))

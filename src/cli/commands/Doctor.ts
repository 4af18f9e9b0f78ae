/** `sigil doctor`: what is broken and how to mend it. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["doctor"],
  section: "Help and checks",
  summary: "Check configuration, approvals and servers.",
  description: ["Prints findings, each with a way to mend it. Exits with 1 when something is broken."],
  examples: [
    { line: "sigil doctor", does: "without starting anything" },
    { line: "sigil doctor --probe", does: "connect to every server as well" }
  ],
  args: [],
  options: {
    probe: { kind: "flag", summary: "Connect to every server." },
    timeout: { kind: "number", value: "SECS", default: 10, summary: "With --probe: wait at most this long in all." }
  }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/Doctor.ts"))

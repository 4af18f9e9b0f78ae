/** `sigil audit tail`: the last records, and what follows. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["audit", "tail"],
  section: "Help and checks",
  summary: "Show the last audit records, and new ones as they come.",
  description: ["With --follow it goes on until it is interrupted, across rotations of the log."],
  examples: [
    { line: "sigil audit tail -n 5", does: "the last five" },
    { line: "sigil audit tail --follow", does: "watch what happens" }
  ],
  args: [],
  options: {
    lines: { kind: "integer", short: "n", value: "N", default: 10, summary: "Records to begin with." },
    follow: { kind: "flag", short: "f", summary: "Go on with new records until interrupted." }
  }
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(
  shape,
  () => import("../handlers/AuditTail.ts"),
  ({ options }) => (options.lines < 0 ? "-n wants a number from 0 on." : undefined)
)

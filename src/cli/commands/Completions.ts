/** `sigil completions`: completion of commands and options in a shell. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["completions"],
  section: "Help and checks",
  summary: "Print completions for a shell.",
  description: ["Completes commands, their options and the values that options choose from."],
  examples: [
    { line: "sigil completions bash", does: "in ~/.bashrc: source <(sigil completions bash)" },
    { line: "sigil completions zsh", does: "saved as _sigil in a folder of fpath" },
    { line: "sigil completions fish", does: "saved as ~/.config/fish/completions/sigil.fish" }
  ],
  args: [{ key: "shell", label: "SHELL", summary: "bash, zsh or fish." }],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/Completions.ts"))

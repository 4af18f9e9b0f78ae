/** `sigil completions`: completion of commands and options in a shell. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["completions"],
  section: "Help and checks",
  summary: "Print completions for a shell.",
  description: ["Completes commands, their options and the values that options choose from."],
  examples: [
    { line: "source <(sigil completions bash)", does: "bash, now" },
    { line: "sigil completions zsh > ~/.zfunc/_sigil", does: "zsh, from a folder of fpath" },
    { line: "sigil completions fish > ~/.config/fish/completions/sigil.fish", does: "fish" }
  ],
  args: [{ key: "shell", label: "SHELL", summary: "bash, zsh or fish." }],
  options: {}
})

/** Input of the handler. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/Completions.ts"))

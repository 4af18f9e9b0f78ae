import { assert, describe, it } from "@effect/vitest"
import { commands, groups } from "../../src/cli/Commands.ts"
import { globalOptions } from "../../src/cli/GlobalOptions.ts"
import { help } from "../../src/cli/Help.ts"
import { render } from "../../src/cli/Markup.ts"

const text = (path: ReadonlyArray<string>, columns = 80): string =>
  help({ commands, groups }, path, columns)
    .map((line) => render(line, false))
    .join("\n")

describe("Help", () => {
  it("lists every command and global option", () => {
    for (const { shape } of commands) assert.include(text([]), `  ${shape.path.join(" ")} `)
    for (const name of Object.keys(globalOptions)) assert.include(text([]), `--${name}`)
  })

  it("explains every argument and option of a command, with a usage line and an example", () => {
    for (const { shape } of commands) {
      const shown = text(shape.path)
      assert.include(shown, `\nUsage\n  sigil ${shape.path.join(" ")}`)
      for (const name of Object.keys(shape.options)) assert.include(shown, `--${name}`)
      for (const { label } of shape.args) assert.include(shown, `  ${label}`)
      for (const alias of shape.aliases ?? []) assert.include(shown, `mcp ${alias}`)
      assert.include(shown, "\nExamples\n")
    }
  })

  it("lists the commands of a group", () => {
    assert.include(text(["mcp"]), "  mcp add ")
    assert.notInclude(text(["mcp"]), "  doctor ")
  })

  it("stays inside the terminal, apart from lines that are to be copied", () => {
    for (const columns of [60, 80, 200]) {
      for (const path of [[], ["mcp"], ...commands.map(({ shape }) => shape.path)]) {
        const examples = new Set(commands.flatMap(({ shape }) => shape.examples.map(({ line }) => `  ${line}`)))
        const own = text(path, columns)
          .split("\n")
          .filter((line) => !examples.has(line) && !/^ {2}(sigil|--transport|#)/.test(line))
        for (const line of own) assert.isAtMost(line.length, Math.min(100, columns), line)
      }
    }
  })
})

/** The pipeline refused a call before or after it was sent; the code and reason say which step. */
import * as Schema from "effect/Schema"
import { failureFields } from "../base/Failure.ts"

/** One place where a value does not fit. */
export interface Misfit {
  /** JSON pointer; empty for the whole. */
  readonly path: string
  readonly expectation: string
  readonly keyword: string
}

/** A refusal of the pipeline. Codes: the policy group, `SIGIL_UNKNOWN_TOOL`, `SIGIL_ARGUMENTS_INVALID`, `SIGIL_OUTPUT_SCHEMA`. */
export class CallRefused extends Schema.TaggedError<CallRefused>("sigil/CallRefused")("CallRefused", failureFields) {
  override get message(): string {
    return this.text
  }

  /** Arguments that do not fit the tool's input schema; nothing was sent. */
  static misfit(
    tool: { readonly server: string; readonly name: string },
    misfits: ReadonlyArray<Misfit>,
    candidates?: ReadonlyArray<string>
  ): CallRefused {
    const lines = misfits.map(({ path, expectation }) => `  ${path === "" ? "/" : path}: ${expectation}`)
    return new CallRefused({
      code: "SIGIL_ARGUMENTS_INVALID",
      reason: "invalid_input",
      text: `The arguments do not fit the tool '${tool.name}' of server '${tool.server}'. Nothing was sent.\n${lines.join("\n")}`,
      fix: `Compare them with the input schema: sigil mcp tools ${tool.server} --json`,
      where: { server: tool.server, tool: tool.name, operation: "arguments" },
      candidates,
      details: { problems: misfits }
    })
  }
}

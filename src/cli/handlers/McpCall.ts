/** `sigil mcp call`: one tool call through the pipeline, its server started before and gone after. */
import * as Effect from "effect/Effect"
import { HostEnvironment } from "../../platform/HostEnvironment.ts"
import { Secrets } from "../../policy/Secrets.ts"
import * as Sigil from "../../runtime/Sigil.ts"
import { facetNames } from "../../policy/Permission.ts"
import { Admission } from "../../server/Admission.ts"
import { Registry } from "../../server/Registry.ts"
import type { Caller } from "../../tools/Caller.ts"
import { type CallOutcome, type CallRequest, deadlineFromSeconds, Pipeline } from "../../tools/Pipeline.ts"
import { limitsFrom, noLimits, show, type Shown } from "../../tools/Result.ts"
import { boundsOf } from "../Bounded.ts"
import { readArguments } from "../CallArguments.ts"
import { callerOf, keeper, stderrTap } from "../Calling.ts"
import { exactTool, readTarget } from "../CallTarget.ts"
import type { Input } from "../commands/McpCall.ts"
import { finish, orFail } from "../Finish.ts"
import { placeOf } from "../FailureText.ts"
import type { Handler } from "../Handler.ts"
import { dim, green, red } from "../Markup.ts"
import { declaring, interactionOf } from "../Interaction.ts"
import { Output } from "../Output.ts"
import { saveResult, saveTarget } from "../SaveTarget.ts"
import { runtimeOptions } from "../Session.ts"

const callDocument = (outcome: CallOutcome, shown: Shown, redact: (text: string) => string) => {
  const { tool, generation } = outcome
  const name = redact(tool.name)
  const problem = outcome.outputProblem
  const bounds = boundsOf(generation, shown, {
    kind: "tool",
    operation: "tools/call",
    durationMs: outcome.durationMs,
    warnings: [...outcome.warnings, ...(problem === undefined ? [] : [problem.text])]
  })
  return {
    schema: "sigil.mcp.call/1" as const,
    server: tool.server,
    tool: name,
    is_error: shown.isError,
    content: shown.content,
    ...(shown.structuredContent === undefined ? {} : { structured_content: shown.structuredContent }),
    ...bounds,
    details: { mcp: { ...bounds.details.mcp, tool: name } }
  }
}

const present = (input: Input, outcome: CallOutcome, target: string | undefined) =>
  Effect.gen(function* () {
    const output = yield* Output
    const host = yield* HostEnvironment
    const shown = yield* show(outcome.result, {
      limits: input.options.full ? noLimits : limitsFrom(host.get),
      escape: !output.json,
      keep: yield* keeper
    })
    yield* output.progress("")
    const saved = target === undefined ? undefined : yield* Effect.either(saveResult(target, outcome.result))
    yield* output.document("call", callDocument(outcome, shown, (yield* Secrets).redactText))
    if (shown.text !== "" || shown.content.length === 0)
      yield* output.block(shown.text === "" ? "(no output)" : shown.text)
    for (const warning of [...outcome.warnings, ...shown.warnings]) yield* output.note(`warning: ${warning}`)
    if (input.options.stderr) {
      for (const { level, logger, text } of outcome.generation.notices.messages()) {
        yield* output.note([dim(`log ${level}: `), logger === undefined ? text : `${logger}: ${text}`])
      }
    }
    // The result stands above all the same: it may not be had twice.
    if (saved?._tag === "Left") {
      yield* output.note(`error: ${saved.left.text} [${saved.left.code}]`)
      return 1
    }
    if (outcome.outputProblem !== undefined) {
      if (!output.json) yield* output.failure(outcome.outputProblem)
      return 1
    }
    if (!shown.isError) return 0
    yield* output.note([red("the tool reported a failure"), dim(" (isError, exit code 5)")])
    return 5
  })

/** `--explain`: admission and pipeline as they would decide; the server is started to know its tools. */
const explain = (server: string, caller: Caller, request: CallRequest) =>
  Effect.gen(function* () {
    const output = yield* Output
    const registry = yield* Registry
    const pipeline = yield* Pipeline
    const { redactText } = yield* Secrets
    const admission = yield* Effect.flatMap(Admission, () => registry.explain(server))
    const refused = admission.some(({ verdict }) => verdict === "refuse")
    const steps = refused ? [] : yield* pipeline.explain(caller, request)
    const gates = [
      ...admission.map(({ gate, verdict, why }) => ({ gate, verdict, why: redactText(why) })),
      ...steps.map(({ gate, verdict, where, why }) => ({
        gate,
        verdict,
        why: redactText(why),
        ...(where === undefined ? {} : { where })
      }))
    ]
    const decided = steps.find(({ decision }) => decision !== undefined)?.decision
    yield* output.document("explain", {
      schema: "sigil.mcp.explain/1",
      name: redactText(`${server}/${request.tool}`),
      gates,
      ...(decided === undefined ? {} : { permission: { decision: decided.decision, facets: decided.grounds } })
    })
    const marks = { pass: green("pass"), refuse: red("REFUSE"), not_reached: dim("-") }
    yield* output.table(
      ["GATE", "VERDICT", "WHY"],
      gates.map(({ gate, verdict, why }) => [gate, marks[verdict], why])
    )
    if (decided !== undefined) {
      yield* output.text([""])
      yield* output.table(
        ["FACET", "VERDICT", "BY", "WHERE"],
        facetNames.map((facet) => {
          const { by, verdict, where } = decided.grounds[facet]
          return [facet, verdict, by, where === undefined ? "" : (placeOf(where) ?? "")]
        })
      )
    }
    yield* output.text(["", "Nothing was sent."])
    return 0
  })

/** The handler. */
export const handler: Handler<Input> = (input) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    const interaction = yield* interactionOf(input.options.answers)
    return yield* Effect.gen(function* () {
      const { args, options } = input
      const registry = yield* Registry
      const pipeline = yield* Pipeline
      const target = readTarget(registry.snapshot, args.target, args.words)
      if ("_tag" in target) return yield* target
      const make = yield* readArguments({ words: target.rest, args: options.args })
      const { server, tool } = yield* exactTool(target)
      const caller = yield* callerOf(`${server}/${tool}`, options.yes, interaction.answers)
      const request: CallRequest = {
        server,
        tool,
        args: make,
        ...(options.timeout === undefined ? {} : { timeoutMs: deadlineFromSeconds(options.timeout) }),
        ...(options.stderr ? { onOpen: yield* stderrTap } : {})
      }
      if (options.explain) return yield* finish(registry, yield* explain(server, caller, request))
      const saved = yield* saveTarget(options.save, ["mcp", "call"])
      const outcome = yield* orFail(registry, pipeline.call(caller, request))
      return yield* finish(registry, yield* present(input, outcome, saved))
    }).pipe(Effect.scoped, Effect.provide(Sigil.layer(run)), declaring(interaction))
  })

/** `sigil mcp call`: one tool call through the pipeline, its server started before and gone after. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Runtime from "effect/Runtime"
import * as path from "node:path"
import { escapeLine } from "../../base/Display.ts"
import { Locations } from "../../config/Locations.ts"
import { writeBytes } from "../../platform/SaveFile.ts"
import { HostEnvironment } from "../../platform/HostEnvironment.ts"
import { Terminal } from "../../platform/Terminal.ts"
import { Secrets } from "../../policy/Secrets.ts"
import * as Sigil from "../../runtime/Sigil.ts"
import { Admission } from "../../server/Admission.ts"
import type { OnOpen } from "../../server/Generation.ts"
import { Registry } from "../../server/Registry.ts"
import { Artifacts } from "../../tools/Artifacts.ts"
import type { Caller } from "../../tools/Caller.ts"
import { type CallOutcome, type CallRequest, deadlineFromSeconds, Pipeline } from "../../tools/Pipeline.ts"
import { limitsFrom, noLimits, onlyBinary, show, type Shown } from "../../tools/Result.ts"
import { readArguments } from "../CallArguments.ts"
import { readTarget } from "../CallTarget.ts"
import type { Input } from "../commands/McpCall.ts"
import { finish } from "../Finish.ts"
import type { Handler } from "../Handler.ts"
import { dim, green, red } from "../Markup.ts"
import { Output } from "../Output.ts"
import { runtimeOptions } from "../Session.ts"
import * as TerminalApprover from "../TerminalApprover.ts"

/** Shows what takes long: one line with seconds on stderr, the server's own progress in it. */
const working = (what: string) =>
  Effect.gen(function* () {
    const output = yield* Output
    const runtime = yield* Effect.runtime()
    let note = ""
    let seconds = 0
    let asking = false
    const draw = Effect.suspend(() =>
      asking || seconds === 0 ? Effect.void : output.progress(`${what}${note === "" ? "…" : `: ${note}`} ${seconds} s`)
    )
    yield* Effect.sync(() => {
      seconds += 1
    }).pipe(Effect.zipRight(draw), Effect.delay("1 second"), Effect.forever, Effect.forkScoped)
    return {
      onProgress: ({ progress, total, message }: { progress: number; total?: number; message?: string }): void => {
        const share = total !== undefined && total > 0 ? ` ${Math.min(100, Math.round((progress / total) * 100))} %` : ` ${progress}`
        note = `${escapeLine(message ?? "")}${share}`.trim().slice(0, 200)
        Runtime.runFork(runtime)(asking ? Effect.void : output.progress(`${what}: ${note}${seconds === 0 ? "" : ` ${seconds} s`}`))
      },
      /** Keeps the line away while somebody is asked. */
      quietly: <A>(effect: Effect.Effect<A>): Effect.Effect<A> =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            asking = true
          }).pipe(Effect.zipRight(output.progress(""))),
          () => effect,
          () =>
            Effect.sync(() => {
              asking = false
            })
        )
    }
  })

/** Passes the server's stderr on, line by line and redacted. */
const stderrTap = Effect.gen(function* () {
  const output = yield* Output
  const secrets = yield* Secrets
  const runtime = yield* Effect.runtime()
  const tap: OnOpen = (wire) => {
    let rest = ""
    wire.onStderr((text) => {
      const lines = (rest + text).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) Runtime.runFork(runtime)(output.note([dim("stderr: "), secrets.redactText(line)]))
    })
  }
  return tap
})

const callDocument = (outcome: CallOutcome, shown: Shown) => {
  const { tool, generation } = outcome
  const problem = outcome.outputProblem
  return {
    schema: "sigil.mcp.call/1" as const,
    server: tool.server,
    tool: tool.name,
    is_error: shown.isError,
    content: shown.content,
    ...(shown.structuredContent === undefined ? {} : { structured_content: shown.structuredContent }),
    truncated: shown.truncated,
    limit_bytes: shown.limits.bytes,
    limit_lines: shown.limits.lines,
    limit_tokens: shown.limits.tokens,
    returned_bytes: shown.returnedBytes,
    total_bytes: shown.totalBytes,
    ...(shown.artifact === undefined ? {} : { artifact: shown.artifact }),
    details: {
      mcp: {
        server: tool.server,
        tool: tool.name,
        trust_class: generation.declaration.trust.trustClass,
        kind: "tool",
        operation: "tools/call",
        server_identity: { protocol_version: generation.revision.version, ...generation.info },
        generation: generation.id
      }
    },
    duration_ms: Math.round(outcome.durationMs),
    warnings: [...outcome.warnings, ...shown.warnings, ...(problem === undefined ? [] : [problem.text])]
  }
}

/** Writes the result to a file: the only binary block as bytes, otherwise the text. */
const save = (file: string, outcome: CallOutcome) =>
  Effect.gen(function* () {
    const host = yield* HostEnvironment
    const output = yield* Output
    const target = path.resolve(host.cwd, file)
    const binary = onlyBinary(outcome.result)
    const keepNothing = () => Effect.succeed(undefined)
    const whole = yield* show(outcome.result, { limits: noLimits, escape: false, keep: keepNothing })
    const bytes = binary ?? Buffer.from(whole.text)
    yield* writeBytes(target, bytes)
    yield* output.note(`Saved ${bytes.length} bytes to ${target}`)
  })

const present = (input: Input, outcome: CallOutcome) =>
  Effect.gen(function* () {
    const output = yield* Output
    const host = yield* HostEnvironment
    const artifacts = yield* Artifacts
    const shown = yield* show(outcome.result, {
      limits: input.options.full ? noLimits : limitsFrom(host.get),
      escape: !output.json,
      keep: (bytes, extension) =>
        artifacts.put(bytes, extension).pipe(
          Effect.catchAll((error) => Effect.as(output.note(`The whole result was not kept: ${error.text}`), undefined))
        )
    })
    if (input.options.save !== undefined) yield* save(input.options.save, outcome)
    yield* output.progress("")
    yield* output.document("call", callDocument(outcome, shown))
    if (shown.text !== "" || shown.content.length === 0) yield* output.text([shown.text === "" ? "(no output)" : shown.text])
    for (const warning of outcome.warnings) yield* output.note(`warning: ${warning}`)
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
    const admission = yield* Effect.flatMap(Admission, () => registry.explain(server))
    const refused = admission.some(({ verdict }) => verdict === "refuse")
    const steps = refused ? [] : yield* pipeline.explain(caller, request)
    const gates = [...admission.map(({ gate, verdict, why }) => ({ gate, verdict, why })), ...steps]
    yield* output.document("explain", { schema: "sigil.mcp.explain/1", name: `${server}/${request.tool}`, gates })
    const marks = { pass: green("pass"), refuse: red("REFUSE"), not_reached: dim("-") }
    yield* output.table(
      ["GATE", "VERDICT", "WHY"],
      gates.map(({ gate, verdict, why }) => [gate, marks[verdict], why])
    )
    yield* output.text(["", "Nothing was sent."])
    return 0
  })

/** The handler. */
export const handler: Handler<Input> = (input) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const { args, options } = input
      const output = yield* Output
      const registry = yield* Registry
      const pipeline = yield* Pipeline
      const terminal = yield* Terminal
      const { sigilToml } = yield* Locations
      const target = readTarget(registry.snapshot.servers, args.target, args.words)
      if ("_tag" in target) return yield* target
      const make = yield* readArguments({ words: target.rest, args: options.args })
      const server = yield* owner(target.servers, target.tool)
      const line = yield* working(`${server}/${target.tool}`)
      const approver = TerminalApprover.make(terminal, (question) =>
        // Editing files is the rare case of a call; its parsers are loaded only then.
        Effect.promise(() => import("../../config/Edit.ts")).pipe(
          Effect.flatMap((edit) => edit.appendPermissionRule(sigilToml, { tool_name: question.visibleName, mode: "allow" })),
          Effect.matchEffect({
            onFailure: (error) => output.note(`The rule was not written: ${error.text}`),
            onSuccess: () => output.note(`Rule added to ${sigilToml}`)
          })
        )
      )
      const caller: Caller = {
        identity: "cli",
        yes: options.yes,
        approver: { ask: (question) => line.quietly(approver.ask(question)) },
        onProgress: line.onProgress
      }
      const request: CallRequest = {
        server,
        tool: target.tool,
        args: make,
        ...(options.timeout === undefined ? {} : { timeoutMs: deadlineFromSeconds(options.timeout) }),
        ...(options.stderr ? { onOpen: yield* stderrTap } : {})
      }
      if (options.explain) return yield* finish(registry, yield* explain(server, caller, request))
      const outcome = yield* Effect.either(pipeline.call(caller, request))
      yield* output.progress("")
      if (Either.isLeft(outcome)) {
        yield* finish(registry, 3)
        return yield* outcome.left
      }
      return yield* finish(registry, yield* present(input, outcome.right))
    }).pipe(Effect.scoped, Effect.provide(Sigil.layer(run)))
  })

/** The server that has the tool: the only candidate, or the first whose catalogue shows the visible name. */
const owner = (servers: ReadonlyArray<string>, tool: string) =>
  Effect.gen(function* () {
    const [first = "", ...others] = servers
    if (others.length === 0) return first
    const pipeline = yield* Pipeline
    for (const server of servers) {
      const tools = yield* Effect.either(pipeline.tools(server))
      if (Either.isRight(tools) && tools.right.some(({ visibleName }) => visibleName === tool)) return server
    }
    return first
  })

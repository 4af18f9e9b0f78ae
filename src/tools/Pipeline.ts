/**
 * The one path that every call takes, whoever makes it (spec section 9).
 *
 * span -> resolve the exact tool -> validate arguments -> permission -> secret gate -> send -> validate the
 * structured result -> redact. A refusal anywhere ends the call with its code, and nothing was sent. Escaping
 * and bounding follow in `Result.ts`, per face, on what this returns.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type { AuditError } from "../audit/AuditError.ts"
import type { Where } from "../base/Failure.ts"
import { near } from "../base/Near.ts"
import { type Json, type JsonObject, own } from "../base/Json.ts"
import { SECOND_MS } from "../base/Units.ts"
import { deeperThan, MAX_NESTING } from "../protocol/Codec.ts"
import type { Decision } from "../policy/Permission.ts"
import { Secrets } from "../policy/Secrets.ts"
import { StateDirectory, type StateError } from "../policy/StateDirectory.ts"
import type { AskOptions } from "../server/Asking.ts"
import * as CallDeadline from "../server/CallDeadline.ts"
import type { Generation, OnOpen } from "../server/Generation.ts"
import { type ActivationError, Registry } from "../server/Registry.ts"
import { ConnectionError, type RemoteError } from "../server/ServerError.ts"
import { Attribute, errorTypeOf, withCallSpan } from "../telemetry/CallSpan.ts"
import type { Caller } from "./Caller.ts"
import { type CatalogTool, catalogue } from "./Catalog.ts"
import { type CallRecord, CallRecords, endOf } from "./CallRecords.ts"
import { CallRefused } from "./CallRefused.ts"
import { hideIn, hideRefused } from "./HideSecrets.ts"
import { Gates, type Subject } from "./Gates.ts"
import { unsendable } from "../protocol/ParamHeaders.ts"
import { withoutNulls } from "./NullArguments.ts"
import { isForgotten, remoteOptions } from "./RemoteCall.ts"
import type { Validator } from "./SchemaValidator.ts"
import { hasFailed } from "../protocol/ResultShape.ts"

/** One tool call. */
export interface CallRequest {
  /** Exact server name. */
  readonly server: string
  /** Exact tool name, or the visible name of one of the server's tools. */
  readonly tool: string
  /** Arguments, or how to make them once the tool's schema is known. */
  readonly args: JsonObject | ((tool: CatalogTool) => Effect.Effect<JsonObject, CallRefused>)
  /** Deadline in ms, 0 or negative is 30 s, at most 24 h; the entry's own when absent. */
  readonly timeoutMs?: number
  readonly onOpen?: OnOpen
}

/** What a call gave, redacted and not yet bounded. */
export interface CallOutcome {
  readonly tool: CatalogTool
  readonly generation: Generation
  /** The wire result with known secrets hidden. */
  readonly result: JsonObject
  readonly isError: boolean
  readonly durationMs: number
  readonly warnings: ReadonlyArray<string>
  /** Set when a success broke the tool's own output schema; the content is still given. */
  readonly outputProblem: CallRefused | undefined
}

/** What one step of the pipeline says to a call. */
export interface StepVerdict {
  readonly gate: "tool" | "arguments" | "permission" | "secret_gate"
  readonly verdict: "pass" | "refuse" | "not_reached"
  readonly why: string
  /** The line that decided. */
  readonly where?: Where
  /** The permission step's decision, each facet with what gave it. */
  readonly decision?: Decision
}

/** Everything a call can fail with. */
export type CallError = ActivationError | CallRefused | ConnectionError | RemoteError | StateError | AuditError

/** Makes calls. */
export class Pipeline extends Context.Tag("sigil/tools/Pipeline")<
  Pipeline,
  {
    /** The catalogue of one server, started when it is not running. */
    readonly tools: (server: string, onOpen?: OnOpen) => Effect.Effect<ReadonlyArray<CatalogTool>, ActivationError>
    /** One call, whole. */
    readonly call: (caller: Caller, request: CallRequest) => Effect.Effect<CallOutcome, CallError>
    /** The verdict of each step before sending; asks nobody and sends nothing. */
    readonly explain: (caller: Caller, request: CallRequest) => Effect.Effect<ReadonlyArray<StepVerdict>, CallError>
  }
>() {}

/** Per tool list of a generation: its catalogue and the validators compiled so far. */
interface Prepared {
  readonly tools: ReadonlyArray<CatalogTool>
  readonly byName: ReadonlyMap<string, CatalogTool>
  readonly validators: Map<string, Validator>
}

const make = Effect.gen(function* () {
  const registry = yield* Registry
  const secrets = yield* Secrets
  const gates = yield* Gates
  const records = yield* CallRecords
  const state = yield* StateDirectory
  const clock = yield* Effect.clock
  /** By the list itself: a server that changes its tools gets a catalogue of its new ones. */
  const prepared = new WeakMap<Generation["tools"], Prepared>()

  const prepare = (generation: Generation): Prepared => {
    const list = generation.tools
    const known = prepared.get(list)
    if (known !== undefined) return known
    const tools = catalogue([generation], secrets.redactText)
    const byName = new Map<string, CatalogTool>()
    // A list of all servers may show a suffix that this server's own list has no need of.
    for (const tool of tools) for (const name of tool.possibleNames.slice(1)) byName.set(name, tool)
    for (const tool of tools) byName.set(tool.visibleName, tool)
    // The exact name wins over a visible one, and the first of two equal names over its quarantined twin.
    for (const tool of tools.toReversed()) byName.set(tool.name, tool)
    const fresh: Prepared = { tools, byName, validators: new Map() }
    prepared.set(list, fresh)
    return fresh
  }

  const resolve = (generation: Generation, name: string): Effect.Effect<CatalogTool, CallRefused> => {
    const { byName, tools } = prepare(generation)
    const tool = byName.get(name)
    const where = { server: generation.server, tool: name, operation: "resolve" }
    const alike = tool === undefined ? tools.filter(({ possibleNames }) => possibleNames[0] === name) : []
    if (alike.length > 1) {
      return new CallRefused({
        code: "SIGIL_UNKNOWN_TOOL",
        reason: "ambiguous_tool",
        text: `The name '${name}' means ${alike.length} tools of server '${generation.server}', so none of them was called.`,
        fix: "Use the exact name of the tool, or the visible name with its suffix.",
        where,
        candidates: alike.map(({ visibleName }) => secrets.redactText(visibleName))
      })
    }
    if (tool === undefined) {
      const names = tools.filter(({ status }) => status === "available").map((known) => known.name)
      return new CallRefused({
        code: "SIGIL_UNKNOWN_TOOL",
        reason: "unknown_tool",
        text: `The server '${generation.server}' has no tool '${name}'.`,
        fix: `Run 'sigil mcp tools ${generation.server}' for the names.`,
        where,
        candidates: near(name, names).map(secrets.redactText)
      })
    }
    if (tool.status === "available") return Effect.succeed(tool)
    const why = tool.reason
    return new CallRefused({
      code: tool.status === "filtered" ? "SIGIL_TOOL_FILTERED" : "SIGIL_TOOL_QUARANTINED",
      reason: why?.code ?? tool.status,
      text: `The tool '${tool.name}' of server '${generation.server}' cannot be called: ${why?.message ?? tool.status}${why?.path ? ` (at ${why.path})` : ""}.`,
      where
    })
  }

  const quarantine = (
    tool: CatalogTool,
    problem: { readonly code: string; readonly path: string; readonly message: string }
  ) =>
    new CallRefused({
      code: "SIGIL_TOOL_QUARANTINED",
      reason: problem.code,
      text: `The tool '${tool.name}' of server '${tool.server}' cannot be called: ${problem.message} (at ${problem.path || "/"}).`,
      where: { server: tool.server, tool: tool.name, operation: "compile" }
    })

  /** Compiled lazily at the first call of a tool; the compiler itself is loaded then, too. */
  const validatorOf = (generation: Generation, tool: CatalogTool, which: "input" | "output", schema: JsonObject) =>
    Effect.gen(function* () {
      const { validators } = prepare(generation)
      const key = `${which}\0${tool.name}`
      const known = validators.get(key)
      if (known !== undefined) return known
      const { compile } = yield* Effect.promise(() => import("./SchemaValidator.ts"))
      const compiled = compile(schema)
      if (Either.isLeft(compiled)) return yield* quarantine(tool, compiled.left)
      validators.set(key, compiled.right)
      return compiled.right
    })

  /** The arguments as they are sent, when they fit. */
  const validateArguments = (
    generation: Generation,
    tool: CatalogTool,
    args: JsonObject
  ): Effect.Effect<JsonObject, CallRefused> =>
    Effect.gen(function* () {
      if (deeperThan(args, MAX_NESTING)) {
        return yield* CallRefused.misfit(tool, [
          { path: "", expectation: `at most ${MAX_NESTING} levels of nesting`, keyword: "depth" }
        ])
      }
      const validator =
        prepare(generation).validators.get(`input\0${tool.name}`) ??
        (yield* validatorOf(generation, tool, "input", tool.inputSchema))
      const far = unsendable(tool.headers, args).map(({ path }) => ({
        path: `/${path.join("/")}`,
        expectation: "an integer of at most 2^53 - 1, because it travels in a header",
        keyword: "x-mcp-header"
      }))
      if (far.length > 0) return yield* CallRefused.misfit(tool, far)
      const problems = validator.validate(args)
      if (problems.length === 0) return args
      const given = withoutNulls(tool.inputSchema, args, problems)
      if (given === undefined || validator.validate(given).length > 0) return yield* CallRefused.misfit(tool, problems)
      return given
    })

  const subjects = new WeakMap<CatalogTool, Subject>()
  const subjectOf = (tool: CatalogTool): Subject => {
    const known = subjects.get(tool)
    if (known !== undefined) return known
    const subject: Subject = {
      server: tool.server,
      tool: tool.name,
      visibleName: tool.visibleName,
      possibleNames: tool.possibleNames,
      description: tool.description,
      destructive: tool.annotations !== undefined && own(tool.annotations, "destructiveHint") === true,
      operation: "tool"
    }
    subjects.set(tool, subject)
    return subject
  }

  const checkOutput = (generation: Generation, tool: CatalogTool, result: JsonObject) =>
    Effect.gen(function* () {
      const schema = tool.outputSchema
      if (schema === undefined || hasFailed(result)) return undefined
      const structured = own(result, "structuredContent")
      const where = { server: tool.server, tool: tool.name, operation: "output_schema" }
      const report = (reason: string, text: string) =>
        new CallRefused({ code: "SIGIL_OUTPUT_SCHEMA", reason, text, where })
      if (structured === undefined) {
        return report(
          "structured_content_missing",
          `The tool '${tool.name}' declares an output schema but gave no structuredContent.`
        )
      }
      const validator = yield* Effect.either(validatorOf(generation, tool, "output", schema))
      // A schema that cannot be compiled was the server's mistake, not this result's; the call stands.
      if (Either.isLeft(validator)) return report("output_schema_unusable", validator.left.text)
      const problem = validator.right.validate(structured)[0]
      return problem === undefined
        ? undefined
        : report(
            "output_schema_violated",
            `The structured result of '${tool.name}' does not fit its output schema: at ${problem.path || "/"} ${problem.expectation}.`
          )
    })

  const outcomeOf = (
    generation: Generation,
    tool: CatalogTool,
    raw: JsonObject,
    begun: number,
    outputProblem: CallRefused | undefined
  ): CallOutcome => ({
    tool,
    generation,
    result: asObject(secrets.redactJson(raw, "result")),
    isError: hasFailed(raw),
    durationMs: clock.unsafeCurrentTimeMillis() - begun,
    warnings: [...generation.warnings, ...generation.connection.oddities.warnings].map(secrets.redactText),
    outputProblem: outputProblem && hideRefused(secrets, outputProblem)
  })

  /** Sends a call that passed every gate, once what leaves is on record, and judges its answer. */
  const send = (
    caller: Caller,
    request: CallRequest,
    generation: Generation,
    tool: CatalogTool,
    args: JsonObject,
    record: CallRecord,
    again = false
  ): Effect.Effect<CallOutcome, CallError> =>
    Effect.flatMap(records.leaving(record, generation, args, { secretDetected: false, sent: true }), () => {
      if (generation.connection.terminal() !== undefined) return moved(caller, request, tool, args, record)
      const begun = clock.unsafeCurrentTimeMillis()
      const deadline = CallDeadline.of(generation.declaration, { tool: tool.name, askedMs: request.timeoutMs })
      const operation = `tools/call ${tool.name}`
      const options: AskOptions = {
        ...deadline,
        operation,
        asker: caller,
        ...(caller.onProgress === undefined ? noOptions : { onProgress: caller.onProgress }),
        ...(tool.tasks === "none" ? noOptions : { tasks: tool.tasks }),
        ...(generation.declaration.endpoint._tag === "remote"
          ? remoteOptions(generation, tool, args, clock, () => prepare(generation).byName.get(tool.name))
          : noOptions)
      }
      const asked = generation.ask("tools/call", { name: tool.name, arguments: args }, options)
      return Effect.flatMap(
        generation.declaration.endpoint._tag === "remote"
          ? Effect.either(asked)
          : Effect.map(asked, Either.right<JsonObject>),
        (answer): Effect.Effect<CallOutcome, CallError> => {
          if (Either.isLeft(answer)) {
            // A session that the server forgot took the call with it unseen: it goes to the next one, once.
            return isForgotten(answer.left) && !again
              ? moved(caller, request, tool, args, record, true)
              : Effect.fail(answer.left)
          }
          const raw = answer.right
          if (deeperThan(raw, MAX_NESTING)) return tooDeep(tool)
          return tool.outputSchema === undefined
            ? Effect.succeed(outcomeOf(generation, tool, raw, begun, undefined))
            : Effect.map(checkOutput(generation, tool, raw), (problem) =>
                outcomeOf(generation, tool, raw, begun, problem)
              )
        }
      )
    })

  /** Every gate in order, with everything that may have to wait: compiling, asking. */
  const stepwise = (
    caller: Caller,
    request: CallRequest,
    generation: Generation,
    tool: CatalogTool,
    record: CallRecord
  ): Effect.Effect<CallOutcome, CallError> =>
    Effect.gen(function* () {
      const made = typeof request.args === "function" ? yield* request.args(tool) : request.args
      const args = yield* validateArguments(generation, tool, made)
      yield* gates.permit(caller, record, generation, args)
      yield* gates
        .secrets(record.subject, generation, args)
        .pipe(Effect.tapError(() => records.leaving(record, generation, args, { secretDetected: true, sent: false })))
      if (generation.connection.terminal() === undefined) {
        return yield* send(caller, request, generation, tool, args, record)
      }
      return yield* moved(caller, request, tool, args, record)
    })

  /**
   * The generation went while somebody was asked or a record was written. Nothing was sent, so the call goes to the
   * next one: at once when the tool is what it was, through the gates again when it is not.
   */
  const moved = (
    caller: Caller,
    request: CallRequest,
    tool: CatalogTool,
    args: JsonObject,
    record: CallRecord,
    again = false
  ): Effect.Effect<CallOutcome, CallError> =>
    Effect.gen(function* () {
      const next = yield* activate(caller, request)
      const same = yield* resolve(next, request.tool)
      return yield* JSON.stringify(same.definition) === JSON.stringify(tool.definition)
        ? send(caller, request, next, same, args, record, again)
        : stepwise(caller, request, next, same, record)
    })

  /**
   * The same gates where each can say yes at once: the tool is known and compiled, the arguments fit, permission
   * allows, no secret is sent. One step instead of a dozen for the common call; any doubt takes the way above.
   */
  const clear = (caller: Caller, request: CallRequest, generation: Generation): CatalogTool | undefined => {
    const { byName, validators } = prepare(generation)
    const tool = byName.get(request.tool)
    if (tool === undefined || tool.status !== "available" || typeof request.args === "function") return undefined
    const validator = validators.get(`input\0${tool.name}`)
    if (validator === undefined || deeperThan(request.args, MAX_NESTING)) return undefined
    if (validator.validate(request.args).length > 0) return undefined
    if (tool.headers.length > 0 && unsendable(tool.headers, request.args).length > 0) return undefined
    if (gates.decide(caller, subjectOf(tool), generation, request.args).decision !== "allow") return undefined
    return gates.isClean(generation, request.args) ? tool : undefined
  }

  const run = (caller: Caller, request: CallRequest, generation: Generation): Effect.Effect<CallOutcome, CallError> =>
    Effect.suspend(() => {
      const quick = clear(caller, request, generation)
      if (quick !== undefined && typeof request.args !== "function") {
        const record = records.open(subjectOf(quick), "tools/call")
        return Effect.onExit(send(caller, request, generation, quick, request.args, record), (exit) =>
          finish(record, exit)
        )
      }
      return Effect.flatMap(resolve(generation, request.tool), (tool) => {
        const record = records.open(subjectOf(tool), "tools/call")
        return Effect.onExit(stepwise(caller, request, generation, tool, record), (exit) => finish(record, exit))
      })
    }).pipe(Effect.mapError(hideSecrets))

  const finish = (record: CallRecord, exit: Exit.Exit<CallOutcome, CallError>): Effect.Effect<void> => {
    records.ended(
      record,
      endOf(exit, (outcome) => outcome.isError)
    )
    return Effect.void
  }

  const explain = (caller: Caller, request: CallRequest, generation: Generation) =>
    Effect.gen(function* () {
      const tool = yield* resolve(generation, request.tool)
      const verdicts: Array<StepVerdict> = [
        { gate: "tool", verdict: "pass", why: `'${tool.name}', seen by models as '${tool.visibleName}'` }
      ]
      const args =
        typeof request.args === "function" ? yield* Effect.either(request.args(tool)) : Either.right(request.args)
      const fits = Either.isLeft(args) ? args : yield* Effect.either(validateArguments(generation, tool, args.right))
      if (Either.isLeft(args) || Either.isLeft(fits)) {
        const problem = Either.isLeft(args) ? args.left : Either.isLeft(fits) ? fits.left : undefined
        return [
          ...verdicts,
          { gate: "arguments", verdict: "refuse", why: problem?.text ?? "" },
          { gate: "permission", verdict: "not_reached", why: "an earlier step refused" },
          { gate: "secret_gate", verdict: "not_reached", why: "an earlier step refused" }
        ] satisfies ReadonlyArray<StepVerdict>
      }
      verdicts.push({ gate: "arguments", verdict: "pass", why: "they fit the input schema" })
      const decided = gates.decide(caller, subjectOf(tool), generation, fits.right)
      const answered = decided.decision === "ask" && caller.yes && decided.facets.network !== "ask"
      verdicts.push({
        gate: "permission",
        verdict: decided.decision === "deny" ? "refuse" : "pass",
        why: `${decided.decision} by ${decided.decidedBy}${answered ? "; answered by --yes" : ""}`,
        ...(decided.ground.where === undefined ? {} : { where: decided.ground.where }),
        decision: decided
      })
      const secret = yield* Effect.either(gates.secrets(subjectOf(tool), generation, fits.right))
      verdicts.push(
        Either.isRight(secret)
          ? { gate: "secret_gate", verdict: "pass", why: "no known secret is sent" }
          : { gate: "secret_gate", verdict: "refuse", why: secret.left.text }
      )
      return verdicts as ReadonlyArray<StepVerdict>
    })

  const hideSecrets = (error: CallError): CallError => hideIn(secrets, error)

  const activate = (caller: Caller, request: CallRequest): Effect.Effect<Generation, CallError> => {
    const options = request.onOpen === undefined ? {} : { onOpen: request.onOpen }
    if (registry.snapshot.settings.networkMode !== "ask") return registry.acquire(request.server, options)
    return Effect.flatMap(gates.consentToStart(caller, request.server), (networkApproved) =>
      registry.acquire(request.server, { ...options, networkApproved })
    )
  }

  return Pipeline.of({
    tools: (server, onOpen) =>
      Effect.map(
        registry.activate(server, onOpen === undefined ? {} : { onOpen }),
        (generation) => prepare(generation).tools
      ),
    explain: (caller, request) =>
      Effect.flatMap(activate(caller, request), (generation) => explain(caller, request, generation)),
    call: (caller, request) =>
      withCallSpan(
        {
          name: `tools/call ${secrets.redactText(request.tool)}`,
          attributes: {
            [Attribute.method]: "tools/call",
            [Attribute.operation]: "execute_tool",
            [Attribute.tool]: secrets.redactText(request.tool),
            [Attribute.server]: request.server
          }
        },
        errorTypeOf,
        Effect.flatMap(
          state.isReady() ? activate(caller, request) : Effect.zipRight(state.ready, activate(caller, request)),
          (generation) => run(caller, request, generation)
        )
      )
  })
})

const noOptions = {}

const asObject = (value: Json): JsonObject =>
  // Redaction keeps shapes: what was an object stays one.
  value as JsonObject

const tooDeep = (tool: CatalogTool): ConnectionError =>
  new ConnectionError({
    code: "SIGIL_LIMIT_EXCEEDED",
    reason: "nesting_limit",
    text: `The result of '${tool.name}' is nested deeper than ${MAX_NESTING} levels.`,
    where: { server: tool.server, tool: tool.name, operation: `tools/call ${tool.name}` },
    details: { limit: MAX_NESTING }
  })

/** Seconds as the ms of a call deadline: 0 or negative is the default of 30 s, at most 24 h (spec section 7). */
export const deadlineFromSeconds = (seconds: number): number => CallDeadline.asked(seconds * SECOND_MS)

/** The pipeline over the registry. */
export const layer: Layer.Layer<Pipeline, never, Registry | Secrets | StateDirectory | Gates | CallRecords> =
  Layer.effect(Pipeline, make)

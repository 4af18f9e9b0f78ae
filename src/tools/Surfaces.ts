/**
 * Resources, prompts and completion, through the same gates as tools (spec sections 9 and 10, R section 9).
 *
 * Each operation has the visible name of R section 2 (`mcp__S__resources_read` and so on), so that one rule
 * language covers every surface. Lists are paged whole; a list that fails costs that surface, not the server.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { AuditError } from "../audit/AuditError.ts"
import { near } from "../base/Near.ts"
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { deeperThan, MAX_NESTING } from "../protocol/Codec.ts"
import { Secrets } from "../policy/Secrets.ts"
import { StateDirectory } from "../policy/StateDirectory.ts"
import * as CallDeadline from "../server/CallDeadline.ts"
import type { Generation, OnOpen } from "../server/Generation.ts"
import { declares, type Level } from "../server/Notices.ts"
import { Registry } from "../server/Registry.ts"
import { ConnectionError } from "../server/ServerError.ts"
import { Attribute, errorTypeOf, withCallSpan } from "../telemetry/CallSpan.ts"
import type { Caller } from "./Caller.ts"
import { type CallRecord, CallRecords, endOf } from "./CallRecords.ts"
import { CallRefused } from "./CallRefused.ts"
import { Gates, type Subject } from "./Gates.ts"
import { sanitise, visibleNames } from "./Naming.ts"
import { hideIn } from "./HideSecrets.ts"
import type { CallError } from "./Pipeline.ts"
import { misshapen } from "../protocol/ResultShape.ts"

/** The lists a server may have besides its tools. */
export type ListKind = "resources" | "templates" | "prompts"

/** One list, known secrets hidden. */
export interface SurfaceList {
  readonly items: ReadonlyArray<JsonObject>
  readonly warnings: ReadonlyArray<string>
}

/** The answer to one operation, known secrets hidden, not yet bounded. */
export interface SurfaceOutcome {
  readonly generation: Generation
  readonly result: JsonObject
  readonly durationMs: number
  readonly warnings: ReadonlyArray<string>
}

/** Common to all operations. */
export interface SurfaceRequest {
  /** Exact server name. */
  readonly server: string
  /** Deadline in ms; the entry's call deadline when absent. */
  readonly timeoutMs?: number
  readonly onOpen?: OnOpen
}

/** What a completion is about (MCP `completion/complete`). */
export type CompletionReference =
  | { readonly type: "ref/prompt"; readonly name: string }
  | { readonly type: "ref/resource"; readonly uri: string }

/** The surfaces besides tools. */
export class Surfaces extends Context.Tag("sigil/tools/Surfaces")<
  Surfaces,
  {
    /** All entries of one list. */
    readonly list: (
      caller: Caller,
      request: SurfaceRequest & { readonly kind: ListKind }
    ) => Effect.Effect<SurfaceList, CallError>
    /** `resources/read`. */
    readonly read: (
      caller: Caller,
      request: SurfaceRequest & { readonly uri: string }
    ) => Effect.Effect<SurfaceOutcome, CallError>
    /** `prompts/get`. */
    readonly prompt: (
      caller: Caller,
      request: SurfaceRequest & { readonly name: string; readonly args: { readonly [key: string]: string } }
    ) => Effect.Effect<SurfaceOutcome, CallError>
    /** `completion/complete`. `context` holds arguments that are known already. */
    readonly complete: (
      caller: Caller,
      request: SurfaceRequest & {
        readonly ref: CompletionReference
        readonly argument: string
        readonly value: string
        readonly context?: { readonly [key: string]: string }
      }
    ) => Effect.Effect<SurfaceOutcome, CallError>
    /** Subscribes to one resource for the length of the scope; the queue gets its URI at each update. */
    readonly subscribe: (
      caller: Caller,
      request: SurfaceRequest & { readonly uri: string }
    ) => Effect.Effect<Queue.Dequeue<string>, CallError, Scope.Scope>
    /** `logging/setLevel`; messages come as notices of the generation. */
    readonly setLevel: (request: SurfaceRequest & { readonly level: Level }) => Effect.Effect<void, CallError>
  }
>() {}

/** How one operation is asked for and named. */
interface Operation {
  readonly method: string
  /** Tool part of its visible name (R section 2). */
  readonly part: string
  readonly capability: string
  readonly operation: Subject["operation"]
  readonly does: string
}

const operations = {
  resources: {
    method: "resources/list",
    part: "resources_list",
    capability: "resources",
    operation: "resource",
    does: "Lists resources."
  },
  templates: {
    method: "resources/templates/list",
    part: "resources_list",
    capability: "resources",
    operation: "resource",
    does: "Lists resource templates."
  },
  prompts: {
    method: "prompts/list",
    part: "prompts_list",
    capability: "prompts",
    operation: "prompt",
    does: "Lists prompts."
  },
  read: {
    method: "resources/read",
    part: "resources_read",
    capability: "resources",
    operation: "resource",
    does: "Reads a resource."
  },
  subscribe: {
    method: "resources/subscribe",
    part: "resources_read",
    capability: "resources",
    operation: "resource",
    does: "Subscribes to a resource."
  },
  prompt: {
    method: "prompts/get",
    part: "prompts_get",
    capability: "prompts",
    operation: "prompt",
    does: "Gets a prompt."
  },
  complete: {
    method: "completion/complete",
    part: "complete",
    capability: "completions",
    operation: "prompt",
    does: "Completes an argument."
  }
} as const satisfies { readonly [name: string]: Operation }

const make = Effect.gen(function* () {
  const registry = yield* Registry
  const secrets = yield* Secrets
  const state = yield* StateDirectory
  const gates = yield* Gates
  const records = yield* CallRecords
  const clock = yield* Effect.clock
  const subjects = new Map<string, Subject>()

  const subjectOf = (server: string, operation: Operation): Subject => {
    const key = `${server}\0${operation.method}`
    const known = subjects.get(key)
    if (known !== undefined) return known
    const subject: Subject = {
      server,
      tool: operation.part,
      visibleName: visibleNames([{ server, tool: operation.part }])[0] ?? `mcp__${sanitise(server)}__${operation.part}`,
      description: operation.does,
      destructive: false,
      operation: operation.operation
    }
    subjects.set(key, subject)
    return subject
  }

  const lacks = (generation: Generation, operation: Operation): CallRefused =>
    new CallRefused({
      code: "SIGIL_UNKNOWN_SURFACE",
      reason: "capability_not_negotiated",
      text: `The server '${generation.server}' does not offer ${operation.capability}.`,
      where: { server: generation.server, operation: operation.method }
    })

  const offers = (generation: Generation, operation: Operation): boolean =>
    declares(generation.capabilities, operation.capability) ||
    // Revisions before 2025-03-26 have completion without declaring it (K section 12).
    (operation.capability === "completions" && !generation.revision.declaresCompletions)

  /** The gates every operation passes, and the connection when it may. */
  const admit = (caller: Caller, request: SurfaceRequest, operation: Operation, args: JsonObject) =>
    Effect.gen(function* () {
      yield* state.ready
      const networkApproved = yield* gates.consentToStart(caller, request.server)
      const generation = yield* registry.acquire(
        request.server,
        request.onOpen === undefined ? { networkApproved } : { networkApproved, onOpen: request.onOpen }
      )
      if (!offers(generation, operation)) return yield* lacks(generation, operation)
      const record = records.open(subjectOf(request.server, operation), operation.method)
      const refused = (failure: CallRefused | AuditError) =>
        Effect.sync(() => records.ended(record, { status: "refused", code: failure.code, reason: failure.reason }))
      yield* gates.permit(caller, record, generation, args).pipe(Effect.tapError(refused))
      yield* gates.secrets(record.subject, generation, args).pipe(
        Effect.tapError(() => records.leaving(record, generation, args, { secretDetected: true, sent: false })),
        Effect.tapError(refused)
      )
      yield* records.leaving(record, generation, args, { secretDetected: false, sent: true })
      return { generation, record }
    })

  /** Runs what was admitted, and records how it ended. */
  const recorded = <A, R>(record: CallRecord, effect: Effect.Effect<A, CallError, R>): Effect.Effect<A, CallError, R> =>
    Effect.onExit(effect, (exit) =>
      Effect.sync(() =>
        records.ended(
          record,
          endOf(exit, () => false)
        )
      )
    )

  const deadline = (generation: Generation, request: SurfaceRequest) =>
    CallDeadline.of(generation.declaration, { askedMs: request.timeoutMs })

  const hideSecrets = (error: CallError): CallError => hideIn(secrets, error)

  const warningsOf = (generation: Generation): ReadonlyArray<string> =>
    [...generation.connection.oddities.warnings].map(secrets.redactText)

  const spanned = <A, R>(
    request: SurfaceRequest,
    operation: Operation,
    target: string,
    effect: Effect.Effect<A, CallError, R>
  ): Effect.Effect<A, CallError, R> =>
    withCallSpan(
      {
        name: target === "" ? operation.method : `${operation.method} ${secrets.redactText(target)}`,
        attributes: { [Attribute.method]: operation.method, [Attribute.server]: request.server }
      },
      errorTypeOf,
      Effect.mapError(effect, hideSecrets)
    )

  /** An answer that is not what the method answers with is a fault, not an empty answer. */
  const checkShape = (server: string, operation: Operation, answer: JsonObject) => {
    const field = misshapen(operation.method, answer)
    return field === undefined
      ? Effect.void
      : new ConnectionError({
          code: "SIGIL_PROTOCOL_FAULT",
          reason: "invalid_result",
          text: `The answer of server '${server}' to '${operation.method}' has no valid '${field}'.`,
          where: { server, operation: operation.method, field }
        })
  }

  const perform = (
    caller: Caller,
    request: SurfaceRequest,
    operation: Operation,
    args: JsonObject,
    params: JsonObject
  ): Effect.Effect<SurfaceOutcome, CallError> =>
    Effect.gen(function* () {
      const { generation, record } = yield* admit(caller, request, operation, args)
      const begun = clock.unsafeCurrentTimeMillis()
      const raw = yield* recorded(
        record,
        generation
          .ask(operation.method, params, {
            ...deadline(generation, request),
            operation: operation.method,
            asker: caller,
            ...(operation.method === "resources/read" ? { cacheKey: String(own(params, "uri")) } : {}),
            ...(caller.onProgress === undefined ? {} : { onProgress: caller.onProgress })
          })
          .pipe(Effect.tap((answer) => checkShape(request.server, operation, answer)))
      )
      if (deeperThan(raw, MAX_NESTING)) {
        return yield* new ConnectionError({
          code: "SIGIL_LIMIT_EXCEEDED",
          reason: "nesting_limit",
          text: `The answer to '${operation.method}' is nested deeper than ${MAX_NESTING} levels.`,
          where: { server: request.server, operation: operation.method },
          details: { limit: MAX_NESTING }
        })
      }
      return {
        generation,
        // Redaction keeps shapes: an object stays one.
        result: secrets.redactJson(raw, "result") as JsonObject,
        durationMs: clock.unsafeCurrentTimeMillis() - begun,
        warnings: warningsOf(generation)
      }
    })

  const list = (caller: Caller, request: SurfaceRequest & { readonly kind: ListKind }) => {
    const operation = operations[request.kind]
    return spanned(
      request,
      operation,
      "",
      Effect.gen(function* () {
        const { generation, record } = yield* admit(caller, request, operation, {})
        const { deadlineMs, deadlineField } = deadline(generation, request)
        const end = clock.unsafeCurrentTimeMillis() + deadlineMs
        const listing = yield* recorded(
          record,
          generation.lists.current(request.kind, {
            remainingMs: () => end - clock.unsafeCurrentTimeMillis(),
            deadlineField
          })
        )
        const items = listing.items.flatMap((item: Json) =>
          isJsonObject(item) && !deeperThan(item, MAX_NESTING) ? [item] : []
        )
        const dropped = listing.items.length - items.length
        return {
          items: items.map((item) => secrets.redactJson(item, "schema") as JsonObject),
          warnings: [
            ...listing.warnings.map(secrets.redactText),
            ...(dropped > 0 ? [`${dropped} malformed entries are left out.`] : [])
          ]
        }
      })
    )
  }

  return Surfaces.of({
    list,
    read: (caller, request) =>
      spanned(
        request,
        operations.read,
        "",
        perform(caller, request, operations.read, { uri: request.uri }, { uri: request.uri })
      ),
    prompt: (caller, request) => {
      const params = {
        name: request.name,
        ...(Object.keys(request.args).length === 0 ? {} : { arguments: request.args })
      }
      const named = Effect.gen(function* () {
        const outcome = yield* Effect.either(perform(caller, request, operations.prompt, params, params))
        if (outcome._tag === "Right") return outcome.right
        const error = outcome.left
        if (error._tag !== "RemoteError") return yield* error
        // A wrong name is the most common mistake; the server's own list says what would have been right.
        const known = yield* Effect.either(list(caller, { ...request, kind: "prompts" }))
        const names = known._tag === "Right" ? known.right.items.map((item) => String(own(item, "name"))) : []
        if (names.length === 0 || names.includes(request.name)) return yield* error
        return yield* new CallRefused({
          code: "SIGIL_UNKNOWN_PROMPT",
          reason: "unknown_prompt",
          text: `The server '${request.server}' has no prompt '${request.name}'.`,
          fix: `Run 'sigil mcp prompts ${request.server}' for the names.`,
          where: { server: request.server, operation: "prompts/get" },
          candidates: near(request.name, names)
        })
      })
      return spanned(request, operations.prompt, request.name, named)
    },
    complete: (caller, request) => {
      const argument = { name: request.argument, value: request.value }
      const context = request.context === undefined ? {} : { context: { arguments: request.context } }
      const params: JsonObject = { ref: { ...request.ref }, argument, ...context }
      return spanned(request, operations.complete, "", perform(caller, request, operations.complete, params, params))
    },
    subscribe: (caller, request) =>
      spanned(
        request,
        operations.subscribe,
        "",
        Effect.gen(function* () {
          const queue = yield* Effect.acquireRelease(Queue.sliding<string>(256), Queue.shutdown)
          const args = { uri: request.uri }
          const { generation, record } = yield* admit(caller, request, operations.subscribe, args)
          yield* Effect.acquireRelease(
            Effect.sync(() =>
              generation.notices.listen((notice) => {
                if (notice._tag === "Updated") Queue.unsafeOffer(queue, secrets.redactText(notice.uri))
              })
            ),
            (stop) => Effect.sync(stop)
          )
          yield* recorded(
            record,
            generation.subscriptions.watch(request.uri, {
              ...deadline(generation, request),
              operation: operations.subscribe.method,
              asker: caller
            })
          )
          return queue
        })
      ),
    setLevel: (request) =>
      Effect.gen(function* () {
        const generation = yield* registry.acquire(request.server)
        const operation: Operation = {
          method: "logging/setLevel",
          part: "logging",
          capability: "logging",
          operation: "prompt",
          does: ""
        }
        if (!declares(generation.capabilities, "logging")) return yield* lacks(generation, operation)
        generation.setLogLevel(request.level)
        // The stateless revision says it with each request.
        if (generation.revision.era === "stateless") return
        yield* generation.connection.request(
          operation.method,
          { level: request.level },
          { ...deadline(generation, request), operation: operation.method }
        )
      }).pipe(Effect.mapError(hideSecrets))
  })
})

/** Surfaces over the registry. */
export const layer: Layer.Layer<Surfaces, never, Registry | Secrets | StateDirectory | Gates | CallRecords> =
  Layer.effect(Surfaces, make)

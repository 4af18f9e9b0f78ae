/**
 * A host of sigil's public library over real sockets and processes, with a home of its own that admits this machine.
 *
 * Everything goes through the names that `src/index.ts` exports; what fails rejects with the failure itself.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import {
  type Caller,
  type CallOutcome,
  ClientFeatures,
  type DynamicServer,
  type DynamicServers,
  type FormAnswer,
  type FormRequest,
  type Generation,
  headless,
  type JsonObject,
  type ListKind,
  Pipeline,
  type Progress,
  Registry,
  Sigil,
  type SurfaceOutcome,
  Surfaces
} from "../../../src/index.ts"

/** What a person adds to sigil.toml so that a server on this machine may be reached. */
export const LOOPBACK = `[web]
allowed_private_hosts = ["localhost", "127.0.0.1"]
allowed_private_cidrs = ["127.0.0.0/8", "::1/128"]
`

/** A directory of sigil's own files; `dispose` removes it. */
export interface Home {
  readonly directory: string
  /** The workspace of its runs. */
  readonly workspace: string
  readonly dispose: () => void
}

/** Makes a home that admits this machine. */
export const makeHome = (): Home => {
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-interop-")))
  const workspace = path.join(base, "workspace")
  fs.mkdirSync(workspace)
  fs.writeFileSync(path.join(base, "sigil.toml"), LOOPBACK)
  return { directory: base, workspace, dispose: () => fs.rmSync(base, { recursive: true, force: true }) }
}

/** A remote entry that may ask for everything, its calls allowed. */
export const remote = (url: string, more: object = {}): DynamicServer => ({
  url,
  clientCapabilities: ["roots", "elicitation"],
  trust: { approvalDefault: "allow" },
  ...more
})

/** An entry of a process, its calls allowed. */
export const local = (
  { command, args }: { readonly command: string; readonly args: ReadonlyArray<string> },
  more: object = {}
): DynamicServer => ({ command, args, trust: { approvalDefault: "allow" }, ...more })

/** A call under way. */
export interface Calling {
  /** How it ended. */
  readonly done: Promise<Exit.Exit<CallOutcome, { readonly code: string }>>
  readonly interrupt: () => Promise<void>
}

/** How a call is made. */
export interface CallMore {
  readonly onProgress?: (progress: Progress) => void
  readonly timeoutMs?: number
  /** Nobody answers forms. */
  readonly alone?: boolean
}

/** The services of one run, as promises. */
export interface Host {
  readonly activate: (server: string) => Promise<Generation>
  readonly refresh: (server: string) => Promise<Generation>
  readonly tools: (server: string) => Promise<ReadonlyArray<string>>
  readonly call: (server: string, tool: string, args?: JsonObject, more?: CallMore) => Promise<CallOutcome>
  readonly start: (server: string, tool: string, args?: JsonObject, more?: CallMore) => Calling
  readonly list: (server: string, kind: ListKind) => Promise<ReadonlyArray<JsonObject>>
  readonly read: (server: string, uri: string) => Promise<SurfaceOutcome>
  readonly prompt: (server: string, name: string, args: { readonly [key: string]: string }) => Promise<SurfaceOutcome>
  readonly complete: (server: string, prompt: string, argument: string, value: string) => Promise<unknown>
  /** Subscribes until the host closes; each call of what it gives settles with the next update. */
  readonly subscribe: (server: string, uri: string) => Promise<() => Promise<string>>
  readonly setLevel: (server: string, level: "debug" | "warning") => Promise<void>
  /** Reads changed lists now. */
  readonly settle: () => Promise<void>
  /** The forms that were asked for, in order. */
  readonly forms: ReadonlyArray<FormRequest>
  /** Closes every server; once. */
  readonly close: () => Promise<void>
}

/** Starts a host of these servers, whose person fills in `content`; no server is started yet. */
export const open = (home: Home, servers: DynamicServers, content: JsonObject = { name: "Ada" }): Host => {
  process.env["SIGIL_HOME"] = home.directory
  const runtime = ManagedRuntime.make(
    Layer.provideMerge(
      Sigil.layer({ strict: true, servers, cwd: home.workspace }),
      Layer.succeed(ClientFeatures, { forms: true, urls: false })
    )
  )
  const scope = Effect.runSync(Scope.make())
  const forms: Array<FormRequest> = []
  const elicitor = {
    form: (request: FormRequest): Effect.Effect<FormAnswer> =>
      Effect.sync(() => {
        forms.push(request)
        return { action: "accept", content } as const
      })
  }
  const caller = ({ alone, onProgress }: CallMore = {}): Caller => ({
    ...headless("interop"),
    ...(alone === true ? {} : { elicitor }),
    ...(onProgress === undefined ? {} : { onProgress })
  })
  const run = async <A, E>(effect: Effect.Effect<A, E, Sigil.Services>): Promise<A> => {
    const exit = await runtime.runPromiseExit(effect)
    if (Exit.isSuccess(exit)) return exit.value
    throw Cause.squash(exit.cause)
  }
  const calling = (server: string, tool: string, args: JsonObject, more: CallMore) =>
    Effect.flatMap(Pipeline, (pipeline) =>
      pipeline.call(caller(more), {
        server,
        tool,
        args,
        ...(more.timeoutMs === undefined ? {} : { timeoutMs: more.timeoutMs })
      })
    )
  const on = <A, E>(use: (surfaces: Surfaces["Type"]) => Effect.Effect<A, E>): Promise<A> =>
    run(Effect.flatMap(Surfaces, use))
  let closing: Promise<void> | undefined
  return {
    activate: (server) => run(Effect.flatMap(Registry, (registry) => registry.activate(server))),
    refresh: (server) => run(Effect.flatMap(Registry, (registry) => registry.refresh(server))),
    tools: (server) =>
      run(
        Effect.flatMap(Pipeline, (pipeline) =>
          Effect.map(pipeline.tools(server), (tools) => tools.map(({ name }) => name))
        )
      ),
    call: (server, tool, args = {}, more = {}) => run(calling(server, tool, args, more)),
    start: (server, tool, args = {}, more = {}) => {
      const fiber = runtime.runFork(calling(server, tool, args, more))
      return {
        done: Effect.runPromise(Fiber.await(fiber)),
        interrupt: async () => void (await Effect.runPromise(Fiber.interrupt(fiber)))
      }
    },
    list: async (server, kind) => (await on((surfaces) => surfaces.list(caller(), { server, kind }))).items,
    read: (server, uri) => on((surfaces) => surfaces.read(caller(), { server, uri })),
    prompt: (server, name, args) => on((surfaces) => surfaces.prompt(caller(), { server, name, args })),
    complete: async (server, prompt, argument, value) => {
      const { result } = await on((surfaces) =>
        surfaces.complete(caller(), { server, ref: { type: "ref/prompt", name: prompt }, argument, value })
      )
      return result["completion"]
    },
    subscribe: async (server, uri) => {
      const queue = await run(
        Effect.flatMap(Surfaces, (surfaces) => Scope.extend(surfaces.subscribe(caller(), { server, uri }), scope))
      )
      return () => run(Queue.take(queue))
    },
    setLevel: (server, level) => on((surfaces) => surfaces.setLevel({ server, level })),
    settle: () => run(Effect.flatMap(Registry, (registry) => registry.settleLists)),
    forms,
    close: () => {
      const close = async (): Promise<void> => {
        await runtime.runPromise(Scope.close(scope, Exit.void))
        await runtime.dispose()
      }
      closing ??= close()
      return closing
    }
  }
}

/** The text of a call's first block. */
export const textOf = ({ result }: CallOutcome): string => {
  const content = result["content"]
  const [first] = Array.isArray(content) ? content : []
  return typeof first === "object" && first !== null && "text" in first ? String(first.text) : ""
}

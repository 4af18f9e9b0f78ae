/**
 * MCP over the standard streams of a child process (K section 9.8).
 *
 * The process tree belongs to the wire's scope and is gone when it closes, whatever the server does
 * (`platform/ProcessTree`). stdout is split into frames by plain functions; stderr is always drained, or a
 * chatty server would block; stdin is written with the backlog counted, because a pipe whose reader sleeps
 * takes bytes without end.
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { StringDecoder } from "node:string_decoder"
import { MIB, SECOND_MS } from "../base/Units.ts"
import { type ExitStatus, type ProcessTree, spawn } from "../platform/ProcessTree.ts"
import { Reaper } from "../platform/Reaper.ts"
import { type FramingFault, makeSplitter, MAX_FRAME_BYTES } from "../protocol/Framing.ts"
import { makeStderrRing } from "./StderrRing.ts"
import { noCarrier, type OpenRequest, type Receiver, Transport, type Wire, type WireEnd } from "./Transport.ts"
import { TransportError } from "./TransportError.ts"

/** stderr bytes allowed per operation and per idle minute (spec section 7). */
export const STDERR_LIMIT_BYTES = 8 * MIB
const IDLE_WINDOW_MS = 60 * SECOND_MS

const faultTexts: { readonly [fault in FramingFault]: string } = {
  frame_too_large: `The server sent a message of more than ${MAX_FRAME_BYTES} bytes.`,
  invalid_utf8: "The server sent bytes on stdout that are not UTF-8.",
  missing_newline: "The server closed its stdout in the middle of a message."
}

const exitText = (exit: ExitStatus): string =>
  exit.signal === null ? `The server exited with code ${exit.code}.` : `The server was ended by ${exit.signal}.`

/** Connects the pipes of a running tree. */
const makeWire = (tree: ProcessTree, clock: Clock.Clock): Wire => {
  const ring = makeStderrRing()
  let receiver: Receiver | undefined
  let early: Array<readonly [string, number]> = []
  let ended: WireEnd | undefined
  let window = 0
  let windowStart = clock.unsafeCurrentTimeMillis()
  let waiters: Array<() => void> = []

  const wake = (): void => {
    const all = waiters
    waiters = []
    for (const resume of all) resume()
  }
  const finish = (end: WireEnd): void => {
    if (ended !== undefined) return
    ended = end
    tree.stdout.pause()
    wake()
    receiver?.end(end)
  }
  const deliver = (text: string, bytes: number): boolean => {
    if (ended !== undefined) return false
    if (receiver !== undefined) return receiver.message(text, bytes)
    early.push([text, bytes])
    return true
  }
  const splitter = makeSplitter(deliver)
  const frameEnd = (fault: FramingFault): void =>
    finish({
      reason: fault,
      text: faultTexts[fault],
      details:
        fault === "frame_too_large"
          ? { limit_bytes: MAX_FRAME_BYTES, observed_at_least_bytes: MAX_FRAME_BYTES + 1 }
          : {}
    })

  /** Both ends count: the last words on stdout may arrive after the exit event. */
  let stdoutEnded = false
  let exit: ExitStatus | undefined
  const leave = (): void => {
    if (stdoutEnded && exit !== undefined) finish({ reason: "connection_closed", text: exitText(exit), exit })
  }

  tree.stdout.on("data", (chunk: Buffer) => {
    if (ended !== undefined) return
    const fault = splitter.push(chunk)
    if (fault !== undefined) frameEnd(fault)
  })
  tree.stdout.on("close", () => {
    stdoutEnded = true
    const fault = ended === undefined ? splitter.end() : undefined
    if (fault !== undefined) return frameEnd(fault)
    if (exit !== undefined) return leave()
    // A server that closes stdout and lives on cannot answer; give its exit event one turn to name the cause.
    setTimeout(
      () => finish({ reason: "stream_closed", text: "The server closed its stdout and kept running." }),
      50
    ).unref()
  })
  const listeners = new Set<(text: string) => void>()
  const decoder = new StringDecoder("utf8")
  tree.stderr.on("data", (chunk: Buffer) => {
    ring.push(chunk)
    if (listeners.size > 0) {
      const text = decoder.write(chunk)
      for (const listener of listeners) listener(text)
    }
    const now = clock.unsafeCurrentTimeMillis()
    if (now - windowStart >= IDLE_WINDOW_MS) {
      window = 0
      windowStart = now
    }
    window += chunk.length
    if (window > STDERR_LIMIT_BYTES) {
      finish({
        reason: "stderr_limit",
        text: `The server wrote more than ${STDERR_LIMIT_BYTES} bytes to stderr.`,
        details: { stderr_total_bytes: ring.view().totalBytes, stderr_limit_bytes: STDERR_LIMIT_BYTES }
      })
    }
  })
  // A reader that is gone is the end unless the exit of the process, a moment later, says more.
  tree.stdin.on("error", () => {
    setTimeout(
      () => finish({ reason: "write_failed", text: "The server closed its stdin and kept running." }),
      50
    ).unref()
  })
  tree.stdin.on("drain", wake)
  tree.stdin.on("close", wake)

  /** Messages of one turn of the event loop leave in one write: concurrent calls share the system call. */
  let queued = ""
  const flush = (): void => {
    if (queued === "") return
    const text = queued
    queued = ""
    if (tree.stdin.writable) tree.stdin.write(text)
  }

  return {
    pid: tree.pid,
    listen: (given) => {
      receiver = given
      const kept = early
      early = []
      for (const [text, bytes] of kept) if (!given.message(text, bytes)) break
      if (ended !== undefined) given.end(ended)
      tree.exited.pipe(
        Deferred.await,
        Effect.map((status) => {
          exit = status
          leave()
          // A grandchild may hold stdout open for ever after the leader is gone.
          if (!stdoutEnded)
            setTimeout(() => finish({ reason: "connection_closed", text: exitText(status), exit: status }), 100).unref()
        }),
        Effect.runFork
      )
    },
    send: (text) => {
      if (ended !== undefined || !tree.stdin.writable) return false
      if (queued === "") queueMicrotask(flush)
      queued += `${text}\n`
      return true
    },
    backlogBytes: () => tree.stdin.writableLength + queued.length,
    drained: Effect.async<void>((resume) => {
      if (ended !== undefined || !tree.stdin.writableNeedDrain) return resume(Effect.void)
      waiters.push(() => resume(Effect.void))
    }),
    openWindow: () => {
      window = 0
      windowStart = clock.unsafeCurrentTimeMillis()
    },
    stderr: ring.view,
    onStderr: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: Effect.suspend(() => {
      flush()
      finish({ reason: "closed", text: "sigil closed the connection." })
      return tree.terminate
    })
  }
}

/** Opens one stdio wire. */
const open = (request: OpenRequest) =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const { plan } = request
    if (plan._tag !== "stdio") return yield* noCarrier(request)
    const tree = yield* spawn({
      file: plan.file,
      argv0: plan.command,
      args: plan.args,
      cwd: plan.cwd,
      env: plan.env,
      generation: request.generation,
      graceMs: plan.graceMs,
      ...(plan.launcher === undefined ? {} : { launcher: plan.launcher })
    }).pipe(
      Effect.mapError(
        (error) =>
          new TransportError({
            code: error.code,
            reason: error.reason,
            text: error.text,
            fix: error.fix,
            where: { ...error.where, server: request.server, operation: "spawn" },
            details: error.details
          })
      )
    )
    return makeWire(tree, clock)
  })

/** The stdio transport over real processes. */
export const layer: Layer.Layer<Transport, never, Reaper> = Layer.effect(
  Transport,
  Effect.map(Effect.context<Reaper>(), (context) => ({
    open: (request) => Effect.provide(open(request), Context.pick(Reaper)(context))
  }))
)

/**
 * What a command handler is: from typed input to an exit code.
 *
 * Every module in `handlers/` exports `handler: Handler<Input>` with the `Input` of its descriptor. It prints
 * through `Output` (or `Terminal`, to ask) and returns the exit code of a command that ran; failures go into
 * the error channel and are printed once, by `Main.ts`, which also takes the exit code from the failure.
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Failure } from "../base/Failure.ts"
import type { HostEnvironment } from "../platform/HostEnvironment.ts"
import type { Terminal } from "../platform/Terminal.ts"
import type { GlobalOptions } from "./GlobalOptions.ts"
import type { Output } from "./Output.ts"

/** What is there for a handler. It brings its other layers itself, so that nobody else pays for loading them. */
export type HandlerServices = Terminal | Output | GlobalOptions | HostEnvironment | Scope.Scope

/** A handler. The scope closes after it, before the process ends. */
export type Handler<Input> = (input: Input) => Effect.Effect<number, Failure, HandlerServices>

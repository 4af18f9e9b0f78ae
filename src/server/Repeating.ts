/** Sends requests to a remote server again where `Retries.ts` says that they may be; each attempt is one of its own. */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type JsonObject, own } from "../base/Json.ts"
import type { ServerDeclaration } from "../config/ServerDeclaration.ts"
import type { AskOptions } from "./Asking.ts"
import * as Retries from "./Retries.ts"
import type { ConnectionError, RemoteError } from "./ServerError.ts"

type Answer = Effect.Effect<JsonObject, ConnectionError | RemoteError>

/** What decides about repetition. */
export interface Facts {
  readonly declaration: ServerDeclaration
  readonly clock: Clock.Clock
  /** From 0 to 1. */
  readonly jitter: () => number
}

/** Sends again what may be sent again, inside the deadline of the whole. */
export const repeating =
  <Options extends AskOptions>(
    { clock, declaration, jitter }: Facts,
    once: (method: string, params: JsonObject | undefined, options: Options) => Answer
  ) =>
  (method: string, params: JsonObject | undefined, options: Options): Answer => {
    const request: Retries.Repeatable = {
      method,
      idempotent: options.idempotent ?? false,
      retries: declaration.retries,
      written: own(declaration.raw, "retries") !== undefined
    }
    const endsAt = clock.unsafeCurrentTimeMillis() + options.deadlineMs
    const attempt = (made: number, deadlineMs: number): Answer =>
      Effect.catchTag(once(method, params, { ...options, deadlineMs }), "ConnectionError", (failure) => {
        const wait = Retries.delayBefore(failure, request, made, jitter())
        const left = endsAt - clock.unsafeCurrentTimeMillis()
        if (wait === undefined || wait >= left) return Effect.fail(failure)
        return Effect.zipRight(
          Effect.sleep(Duration.millis(wait)),
          Effect.suspend(() => attempt(made + 1, Math.max(1, endsAt - clock.unsafeCurrentTimeMillis())))
        )
      })
    return attempt(1, options.deadlineMs)
  }

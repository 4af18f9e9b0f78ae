/**
 * One OTLP request over HTTP, and what its answer means.
 *
 * Plain `node:http(s)`, because the guarded client is for servers' addresses and this one comes from the
 * environment of whoever runs sigil. An exchange never fails: every outcome is a value. Redirects are not
 * followed, since the headers hold credentials. Of an answer at most 64 KiB are read. Interruption closes the
 * socket.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as http from "node:http"
import * as https from "node:https"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { isJsonObject, own } from "../base/Json.ts"
import { KIB, SECOND_MS } from "../base/Units.ts"
import { VERSION } from "../base/Version.ts"
import type { Target } from "./OtlpSettings.ts"

/** Bytes of an answer that are read. */
const MAX_ANSWER_BYTES = 64 * KIB
/** Statuses after which the same request may be sent again (OTLP specification). */
const retryable = new Set([429, 502, 503, 504])

/** How a request ended. */
export type Answer =
  /** The collector took it; `rejected` items were refused by a partial success, `message` is the collector's. */
  | { readonly _tag: "Accepted"; readonly rejected: number; readonly message: string | undefined }
  /** The collector answered with a status that is no success. */
  | {
      readonly _tag: "Refused"
      readonly status: number
      readonly retryable: boolean
      readonly afterMs: number | undefined
    }
  /** No answer: the code of the system's error, or `timeout`. */
  | { readonly _tag: "Unreachable"; readonly code: string }

/** Sends requests to one target over connections that are kept. */
export interface Sender {
  readonly post: (body: string, rejectedKey: string) => Effect.Effect<Answer>
  /** Closes all connections. */
  readonly destroy: () => void
}

/** Wait that a `Retry-After` header asks for: seconds or an HTTP date; `undefined` when it says nothing usable. */
export const retryAfterMs = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined) return undefined
  if (/^\d{1,9}$/.test(header.trim())) return Number(header.trim()) * SECOND_MS
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

/** The partial success in the body of an answer; a body that is none counts as a full success. */
const partial = (
  body: string,
  rejectedKey: string
): { readonly rejected: number; readonly message: string | undefined } => {
  try {
    const answer: unknown = JSON.parse(body)
    const part = isJsonObject(answer) ? own(answer, "partialSuccess") : undefined
    if (!isJsonObject(part)) return { rejected: 0, message: undefined }
    const rejected = Number(own(part, rejectedKey) ?? 0)
    const message = own(part, "errorMessage")
    return {
      rejected: Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0,
      message: typeof message === "string" && message !== "" ? message : undefined
    }
  } catch {
    return { rejected: 0, message: undefined }
  }
}

const codeOf = (error: Error): string =>
  "code" in error && typeof error.code === "string" ? error.code : "connection_failed"

const compress = promisify(gzip)

/** A sender for one target. */
export const make = (target: Target): Sender => {
  const client = target.url.protocol === "https:" ? https : http
  const agent = new client.Agent({ keepAlive: true, maxSockets: 2 })

  const exchange = (body: Buffer, rejectedKey: string, now: () => number): Effect.Effect<Answer> =>
    Effect.async<Answer>((resume) => {
      let settled = false
      const settle = (answer: Answer): void => {
        if (settled) return
        settled = true
        resume(Effect.succeed(answer))
      }
      const request = client.request(target.url, {
        method: "POST",
        agent,
        headers: {
          ...Redacted.value(target.headers),
          "content-type": "application/json",
          "content-length": body.length,
          ...(target.gzip ? { "content-encoding": "gzip" } : {}),
          "user-agent": `sigil/${VERSION}`
        }
      })
      request.on("error", (error) => settle({ _tag: "Unreachable", code: codeOf(error) }))
      request.on("response", (response) => {
        const status = response.statusCode ?? 0
        const chunks: Array<Buffer> = []
        let bytes = 0
        const judge = (): void => {
          settle(
            status >= 200 && status < 300
              ? { _tag: "Accepted", ...partial(Buffer.concat(chunks).toString("utf8"), rejectedKey) }
              : {
                  _tag: "Refused",
                  status,
                  retryable: retryable.has(status),
                  afterMs: retryAfterMs(response.headers["retry-after"], now())
                }
          )
        }
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes <= MAX_ANSWER_BYTES) chunks.push(chunk)
          else {
            // The status has said what matters; nobody reads a collector's novel.
            judge()
            request.destroy()
          }
        })
        response.on("end", judge)
        // The status line of a cut answer came: the collector has decided.
        response.on("close", judge)
        response.on("error", judge)
      })
      request.end(body)
      return Effect.sync(() => {
        settled = true
        request.destroy()
      })
    })

  return {
    post: (body, rejectedKey) =>
      Effect.gen(function* () {
        const clock = yield* Effect.clock
        const plain = Buffer.from(body, "utf8")
        const bytes = target.gzip ? yield* Effect.promise(() => compress(plain)) : plain
        return yield* exchange(bytes, rejectedKey, () => clock.unsafeCurrentTimeMillis())
      }).pipe(
        Effect.timeoutTo({
          duration: target.timeoutMs,
          onSuccess: (answer: Answer) => answer,
          onTimeout: (): Answer => ({ _tag: "Unreachable", code: "timeout" })
        })
      ),
    destroy: () => agent.destroy()
  }
}

/** What a server tells of a request that is under way (K section 9.12): read, checked, nothing more. */
import { type JsonObject, own } from "../base/Json.ts"

/** One progress note of a request. */
export interface Progress {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

/** The request a note is about. sigil's tokens are numbers; a server may send one back as text. */
export const tokenOf = (params: JsonObject): number | undefined => {
  const token = own(params, "progressToken")
  const key = typeof token === "string" && /^\d+$/.test(token) ? Number(token) : token
  return typeof key === "number" ? key : undefined
}

/** Shows notes with what `redact` leaves of their messages; they are one stream, and the next line may end a value. */
export const redacted =
  (redact: (text: string) => string, show: (note: Progress) => void) =>
  (note: Progress): void =>
    show(note.message === undefined ? note : { ...note, message: redact(note.message) })

/** The note itself; `undefined` when it tells no progress. */
export const noteOf = (params: JsonObject): Progress | undefined => {
  const progress = own(params, "progress")
  if (typeof progress !== "number") return undefined
  const total = own(params, "total")
  const message = own(params, "message")
  return {
    progress,
    ...(typeof total === "number" ? { total } : {}),
    ...(typeof message === "string" ? { message } : {})
  }
}

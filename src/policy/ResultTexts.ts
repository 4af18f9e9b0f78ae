/**
 * Hides secrets that a server spread over the texts of one answer: blocks of a result, contents of a resource,
 * messages of a prompt.
 *
 * They are shown one after the other, so they are searched as one text, with nothing and with a line break between
 * them. The first piece of a secret becomes the placeholder, the others go.
 */
import { isJsonObject, type Json, type JsonObject, own } from "../base/Json.ts"
import { PLACEHOLDER, type SecretSearch } from "./SecretSearch.ts"
import * as Spans from "./TextSpans.ts"

/** Lists of an answer that are shown in their order. */
const lists = ["content", "contents", "messages"] as const

/** Texts of one entry, each with what puts another one in its place. */
interface Slot {
  readonly text: string
  readonly put: (entry: JsonObject, text: string) => JsonObject
}

const slotOf = (entry: JsonObject): Slot | undefined => {
  const text = own(entry, "text")
  if (typeof text === "string") return { text, put: (into, next) => ({ ...into, text: next }) }
  const said = own(entry, "content")
  if (typeof said === "string") return { text: said, put: (into, next) => ({ ...into, content: next }) }
  for (const member of ["resource", "content"]) {
    const inner = own(entry, member)
    const nested = isJsonObject(inner) ? own(inner, "text") : undefined
    if (isJsonObject(inner) && typeof nested === "string") {
      return { text: nested, put: (into, next) => ({ ...into, [member]: { ...inner, text: next } }) }
    }
  }
  return undefined
}

/** The texts with every secret gone that stands in one or in several of them. */
export const hideAcross = (texts: ReadonlyArray<string>, search: SecretSearch): ReadonlyArray<string> => {
  if (texts.length < 2) return texts
  let parts: ReadonlyArray<ReadonlyArray<number>> = texts.map(() => [])
  /** Texts in which a part goes on that began in an earlier one. */
  const continued = new Set<string>()
  for (const between of ["", "\n"]) {
    const spans = search.spans(texts.join(between)) ?? []
    if (spans.length === 0) continue
    let from = 0
    parts = texts.map((text, index) => {
      const own = Spans.within(spans, from, from + text.length)
      const start = from
      if (own[0] === 0 && spans.some((at, which) => which % 2 === 0 && at < start && (spans[which + 1] ?? 0) > start)) {
        continued.add(`${index}`)
      }
      from += text.length + between.length
      return Spans.union(parts[index], own) ?? []
    })
  }
  return texts.map((text, index) => {
    const spans = parts[index] ?? []
    if (spans.length === 0 || !continued.has(`${index}`)) return Spans.replace(text, spans, PLACEHOLDER)
    const [, end = 0] = spans
    return Spans.replace(
      text.slice(end),
      spans.slice(2).map((at) => at - end),
      PLACEHOLDER
    )
  })
}

/** The answer with secrets hidden that stand across its texts; the same object when there are none. */
export const hideInAnswer = (answer: JsonObject, search: SecretSearch): JsonObject => {
  let changed = answer
  for (const name of lists) {
    const list: Json | undefined = own(answer, name)
    if (!Array.isArray(list) || list.length < 2) continue
    const entries = list as ReadonlyArray<Json>
    const slots = entries.map((entry) => (isJsonObject(entry) ? slotOf(entry) : undefined))
    const texts = slots.flatMap((slot) => (slot === undefined ? [] : [slot.text]))
    const hidden = hideAcross(texts, search)
    if (hidden.every((text, index) => text === texts[index])) continue
    let at = 0
    const next = entries.map((entry, index) => {
      const slot = slots[index]
      if (slot === undefined || !isJsonObject(entry)) return entry
      const text = hidden[at] ?? ""
      at += 1
      return text === slot.text ? entry : slot.put(entry, text)
    })
    changed = { ...changed, [name]: next }
  }
  return changed
}

/**
 * The forms in which a known value travels: as it is, JSON-escaped, URL-encoded, as HTML text, in base64, and as
 * the single bytes of its UTF-8 text; escaped where that is needed, and throughout.
 *
 * Writers differ in what they escape and how, so each encoding has several spellings; equal ones are listed once.
 * In base64 a value has three alignments. The characters that it shares with its neighbours cannot be known, so the
 * form holds only those in between, and says on which side a shared one stands (`before`, `after`): it carries some
 * bits of the value and goes with it.
 */
import { pointerSegment } from "../base/Json.ts"

/** Shorter values are matched as whole strings only, and shorter forms not at all. */
export const MIN_LENGTH = 6

/** One text to search for. */
export interface Form {
  readonly text: string
  /** The base64 character before it holds bits of the value. */
  readonly before: boolean
  /** The base64 character after it holds bits of the value. */
  readonly after: boolean
}

const whole = (text: string): Form => ({ text, before: false, after: false })

/** How many characters of base64 stand before the first that the value has for itself, by its offset. */
const LEADING = [0, 2, 3] as const

const base64Forms = (value: string): ReadonlyArray<Form> => {
  const bytes = Buffer.from(value)
  return LEADING.flatMap((from, offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString("base64")
      .replace(/=+$/, "")
    const after = (offset + bytes.length) % 3 !== 0
    const text = encoded.slice(from, after ? encoded.length - 1 : encoded.length)
    const urlSafe = text.replaceAll("+", "-").replaceAll("/", "_")
    return [text, urlSafe].map((one) => ({ text: one, before: offset > 0, after }))
  })
}

const unicode = (text: string, units: RegExp, upper: boolean): string =>
  text.replace(units, (unit) => {
    const hex = unit.charCodeAt(0).toString(16).padStart(4, "0")
    return `\\u${upper ? hex.toUpperCase() : hex}`
  })

/**
 * JSON text of a string without its quotes: non-ASCII as it is or escaped, `/` with or without `\`, the characters
 * of HTML escaped as Go and .NET do.
 */
const jsonForms = (value: string): ReadonlyArray<string> => {
  const plain = JSON.stringify(value).slice(1, -1)
  const nonAscii = /[\u007f-\uffff]/g
  const ascii = unicode(plain, nonAscii, false)
  const dotnet = unicode(plain.replace(/\\"/g, "\\u0022"), /[\u007f-\uffff'+<>&`]/g, true)
  const forms = [plain, ascii, unicode(plain, nonAscii, true), unicode(plain, /[<>&\u2028\u2029]/g, false), dotnet]
  const slashed = [plain, ascii].map((form) => form.replaceAll("/", "\\/"))
  const every = [false, true].map((upper) => unicode(value, /[^]/g, upper))
  return [...forms, ...slashed, ...every]
}

const upperHex = (one: string): string => `%${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`

/** Percent-encoding: of every byte, of all that is not plain, of what forms leave, with `/` or all reserved characters as they are. */
const urlForms = (value: string): ReadonlyArray<string> => {
  // A lone surrogate cannot be encoded; the bytes of a process or a file hold U+FFFD in its place.
  const text = Buffer.from(value).toString()
  const component = encodeURIComponent(text)
  const strict = component.replace(/[!'()*~]/g, upperHex)
  const upper = [component, strict, component.replaceAll("%2F", "/"), encodeURI(text)]
  const cases = upper.flatMap((form) => [form, form.replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase())])
  const every = Buffer.from(value).toString("hex").replace(/../g, "%$&")
  return [...cases.flatMap((form) => [form, form.replaceAll("%20", "+")]), every, every.toUpperCase()]
}

const named: { readonly [character: string]: string } = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }

/** How one character is written by its number. */
const entities: ReadonlyArray<(code: number) => string> = [
  (code) => `&#${code};`,
  (code) => `&#x${code.toString(16)};`,
  (code) => `&#x${code.toString(16).toUpperCase()};`
]

/** Characters by their number: all, all but letters and digits, those of markup with or without what is not ASCII. */
const numbered = [/[^]/gu, /[^A-Za-z0-9]/gu, /[&<>"'`=/]/gu, /[&<>"'/]/gu, /[&<>"'/]|[^\0-\x7f]/gu]

/** By name what has one, and the rest of markup, or what is not ASCII, by its number. */
const mixed = [/[&<>"'`=/]/gu, /[&<>"'`/]/gu, /[&<>"'/]/gu, /[&<>"]|[^\0-\x7f]/gu, /[&<>"']|[^\0-\x7f]/gu]

const htmlForms = (value: string): ReadonlyArray<string> => {
  const text = value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
  const quoted = [text.replaceAll('"', "&quot;"), text.replaceAll('"', "&#34;")]
  const byNumber = entities.flatMap((entity) => {
    const numberOf = (one: string): string => entity(one.codePointAt(0) ?? 0)
    return [
      ...numbered.map((which) => value.replace(which, numberOf)),
      ...mixed.map((which) => value.replace(which, (one) => named[one] ?? numberOf(one)))
    ]
  })
  // Some write `'` in decimal beside `/` in hexadecimal.
  const mustache = value.replace(/[&<>"'`=/]/g, (one) =>
    one === "'" ? "&#39;" : (named[one] ?? `&#x${one.charCodeAt(0).toString(16).toUpperCase()};`)
  )
  return [
    text,
    ...quoted,
    ...quoted.flatMap((form) => ["&#39;", "&#x27;", "&apos;"].map((one) => form.replaceAll("'", one))),
    ...byNumber,
    mustache
  ]
}

/** All forms of a value worth searching for, each text once. */
export const formsOf = (value: string): ReadonlyArray<Form> => {
  const forms = new Map<string, Form>()
  const plain = [
    value,
    ...jsonForms(value),
    ...urlForms(value),
    ...htmlForms(value),
    pointerSegment(value),
    Buffer.from(value).toString("latin1")
  ]
  // Servers repeat JSON and HTML inside of JSON text, so each form may be escaped once more.
  const inText = plain.map((form) => JSON.stringify(form).slice(1, -1))
  for (const form of [...[...plain, ...inText].map(whole), ...base64Forms(value)]) {
    if (form.text.length >= MIN_LENGTH && !forms.has(form.text)) forms.set(form.text, form)
  }
  return [...forms.values()]
}

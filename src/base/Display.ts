/**
 * Text from outside, made safe to show.
 *
 * A server must not move the cursor, set the title, hide text or turn it round: control characters, escape
 * sequences and bidirectional overrides are shown as visible escapes. Newlines and tabs may stay.
 */

// C0 and C1 controls, DEL, bidi embeddings/overrides/isolates, zero-width and line separators, BOM.
// eslint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g
// eslint-disable-next-line no-control-regex
const unsafeOrLine = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

const visible = (character: string): string => {
  if (character === "\n") return "\\n"
  if (character === "\t") return "\\t"
  if (character === "\r") return "\\r"
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
}

/** Escapes everything but newlines and tabs. A lone CR before LF is dropped. */
export const escapeBlock = (text: string): string => text.replaceAll("\r\n", "\n").replace(unsafe, visible)

/** Escapes everything that could leave the line, newlines and tabs included. */
export const escapeLine = (text: string): string => text.replace(unsafeOrLine, visible)

/** At most `limit` characters of a line, with an ellipsis when cut; never splits a surrogate pair. */
export const clip = (text: string, limit: number): string => {
  if (text.length <= limit) return text
  const cut = text.slice(0, limit - 1)
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`
}

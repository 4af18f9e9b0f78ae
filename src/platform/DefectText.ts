/**
 * What may be printed of a fault inside sigil: texts with secrets hidden, wherever the fault ends up.
 *
 * A crash is reported outside of any layer, after the runtime that knew the secrets is gone. So each runtime leaves
 * its way of hiding here, and it stays for the life of the process; only the last few are kept.
 */

/** Runtimes whose secrets are remembered; a command has one. */
const MAX_KEPT = 8

const kept: Array<(text: string) => string> = []

/** From now on texts of faults go through `hide`. */
export const hideBy = (hide: (text: string) => string): void => {
  kept.push(hide)
  if (kept.length > MAX_KEPT) kept.shift()
}

/** The text as it may be printed. */
export const safe = (text: string): string => kept.reduce((shown, hide) => hide(shown), text)

/**
 * Parts of a text as numbers: start, end, start, end, in order and without overlap. Parts that only touch stay two.
 *
 * A plain array and no objects: the search makes these for every hit, and most texts have none.
 */

/**
 * Adds a part to the end of the list. It may overlap parts that stand there already; it must not begin before a part
 * that it does not overlap.
 */
export const join = (spans: Array<number>, start: number, end: number): void => {
  const last = spans.length - 1
  if (last > 0 && start < (spans[last] ?? 0) && start >= (spans[last - 1] ?? 0)) {
    if (end > (spans[last] ?? 0)) spans[last] = end
    return
  }
  let from = start
  let to = end
  while (spans.length > 0 && (spans[spans.length - 1] ?? 0) > from) {
    to = Math.max(to, spans.pop() ?? 0)
    from = Math.min(from, spans.pop() ?? 0)
  }
  spans.push(from, to)
}

/** Both lists as one. */
export const union = (
  left: ReadonlyArray<number> | undefined,
  right: ReadonlyArray<number> | undefined
): ReadonlyArray<number> | undefined => {
  if (left === undefined || left.length === 0) return right
  if (right === undefined || right.length === 0) return left
  const all: Array<number> = []
  let l = 0
  let r = 0
  while (l < left.length || r < right.length) {
    const useLeft = r >= right.length || (l < left.length && (left[l] ?? 0) <= (right[r] ?? 0))
    const from = useLeft ? left : right
    const at = useLeft ? l : r
    join(all, from[at] ?? 0, from[at + 1] ?? 0)
    if (useLeft) l += 2
    else r += 2
  }
  return all
}

/** The part of the list that lies in `[from, to)`, counted from `from`. */
export const within = (spans: ReadonlyArray<number>, from: number, to: number): ReadonlyArray<number> => {
  const part: Array<number> = []
  for (let at = 0; at < spans.length; at += 2) {
    const start = Math.max(from, spans[at] ?? 0)
    const end = Math.min(to, spans[at + 1] ?? 0)
    if (start < end) part.push(start - from, end - from)
  }
  return part
}

/** The text with each part replaced; the same string when there is none. */
export const replace = (text: string, spans: ReadonlyArray<number> | undefined, placeholder: string): string => {
  if (spans === undefined || spans.length === 0) return text
  const parts: Array<string> = []
  let at = 0
  for (let index = 0; index < spans.length; index += 2) {
    parts.push(text.slice(at, spans[index]), placeholder)
    at = spans[index + 1] ?? text.length
  }
  return parts.join("") + text.slice(at)
}

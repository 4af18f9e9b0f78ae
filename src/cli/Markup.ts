/**
 * Lines of text with styles, safe to print whatever they hold.
 *
 * Text and style are kept apart until the last moment: `render` escapes every text, so nothing from outside can
 * move the cursor or forge a colour, and adds colours only where the caller says the reader has a terminal.
 */
import { clip, escapeBlock, escapeLine } from "../base/Display.ts"

/** How a text looks on a terminal. */
export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan"

/** A text with a style. */
export interface Styled {
  readonly style: Style
  readonly text: string
}

/** A piece of a line. */
export type Part = string | Styled

/** A line: one piece or several. */
export type Line = Part | ReadonlyArray<Part>

const on: { readonly [style in Style]: number } = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 }

const styled =
  (style: Style) =>
  (text: string): Styled => ({ style, text })

export const bold = styled("bold")
export const dim = styled("dim")
export const red = styled("red")
export const green = styled("green")
export const yellow = styled("yellow")
export const cyan = styled("cyan")

/** The pieces of a line. */
export const partsOf = (line: Line): ReadonlyArray<Part> =>
  typeof line === "string" || "style" in line ? [line] : line

/** The text of a piece, as it was given. */
export const textOf = (part: Part): string => (typeof part === "string" ? part : part.text)

/** Columns that a line takes, counted in code points of its escaped text. */
export const widthOf = (line: Line): number =>
  partsOf(line).reduce((sum, part) => sum + [...escapeLine(textOf(part))].length, 0)

/**
 * A line as text: escaped, and coloured if `colour`. A line stays a line, so that nothing from outside can forge
 * another one; with `block` newlines and tabs stay.
 */
export const render = (line: Line, colour: boolean, block = false): string =>
  partsOf(line)
    .map((part) => {
      const text = block ? escapeBlock(textOf(part)) : escapeLine(textOf(part))
      return colour && typeof part !== "string" && text !== "" ? `\u001b[${on[part.style]}m${text}\u001b[0m` : text
    })
    .join("")

/** Fewest columns that a clipped cell keeps. */
const MIN_CELL = 8
/** Most columns of a cell that is not the last, on a terminal: one long name must not push every row out of sight. */
const MAX_CELL = 40

const clipLine = (line: Line, width: number): Line => {
  const kept: Array<Part> = []
  let left = width
  for (const part of partsOf(line)) {
    if (left <= 0) break
    const text = clip(escapeLine(textOf(part)), left)
    left -= [...text].length
    kept.push(typeof part === "string" ? text : { ...part, text })
  }
  return kept
}

/**
 * Rows as lines with aligned columns, two spaces apart.
 *
 * `width` is the room there is; the last column is clipped to it, the others to 40. Without a width (output that is
 * read by a program) nothing is clipped.
 */
export const table = (rows: ReadonlyArray<ReadonlyArray<Line>>, width?: number): ReadonlyArray<Line> => {
  const columns = rows.reduce((most, row) => Math.max(most, row.length), 0)
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.min(
      width === undefined ? Infinity : MAX_CELL,
      rows.reduce((most, row) => Math.max(most, widthOf(row[column] ?? "")), 0)
    )
  )
  const before = widths.slice(0, -1).reduce((sum, one) => sum + one + 2, 0)
  const last = width === undefined ? Infinity : Math.max(MIN_CELL, width - before)
  return rows.map((row) =>
    row.flatMap((cell, column) => {
      if (column === columns - 1) return partsOf(last === Infinity ? oneLine(cell) : clipLine(cell, last))
      const flat = partsOf(width === undefined ? oneLine(cell) : clipLine(cell, MAX_CELL))
      const isLast = row.slice(column + 1).every((later) => widthOf(later) === 0)
      return isLast ? flat : [...flat, " ".repeat(Math.max(0, (widths[column] ?? 0) - widthOf(flat)) + 2)]
    })
  )
}

const oneLine = (line: Line): ReadonlyArray<Part> =>
  partsOf(line).map((part) => (typeof part === "string" ? escapeLine(part) : { ...part, text: escapeLine(part.text) }))

/** A paragraph as lines of at most `width` columns, broken at spaces. */
export const wrap = (text: string, width: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let line = ""
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** Results in the order of a table, whatever came first. */

/** Takes results as they come and hands each to `tell` once those of all rows before it were told. */
export const inOrder = <Row, Result extends { readonly row: Row }>(
  rows: ReadonlyArray<Row>,
  tell: (result: Result) => void
): ((result: Result) => void) => {
  const waiting = new Map<Row, Result>()
  let at = 0
  return (result) => {
    waiting.set(result.row, result)
    for (let row = rows[at]; row !== undefined; row = rows[(at += 1)]) {
      const next = waiting.get(row)
      if (next === undefined) return
      tell(next)
    }
  }
}

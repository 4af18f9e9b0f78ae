/** Whether a path lies in a directory. Text only: who asks has resolved the links of both. */
import * as path from "node:path"

/** Whether `inner` is `outer` or lies below it; both absolute. */
export const isInside = (inner: string, outer: string): boolean => {
  const relative = path.relative(outer, inner)
  return relative === "" || (relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative))
}

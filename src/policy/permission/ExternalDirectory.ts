/**
 * `[permission.external_directory]`: paths outside the workspace (R section 1.8). Disabled means deny; per path the
 * last matching rule counts, else the default; of several paths the strictest. Network addresses never come here.
 */
import type { Call } from "./Call.ts"
import { glob } from "./Glob.ts"
import { type Ground, strictestOf } from "./Ground.ts"
import type { Policy } from "./Policy.ts"

/** The verdict on the paths of a call; `undefined` when all are inside. */
export const externalGround = ({ permission }: Policy, { externalPaths = [] }: Call): Ground | undefined => {
  const { defaultMode, enabled, rules } = permission.externalDirectory
  const place = (field: string): Pick<Ground, "where"> => {
    const where = permission.places[field]
    return where === undefined ? {} : { where }
  }
  return strictestOf(
    externalPaths.map((path): Ground => {
      const kind = "external_directory"
      if (!enabled)
        return {
          verdict: "deny",
          kind,
          by: `permission.external_directory, which is not enabled ('${path}' is outside the workspace)`,
          ...place("external_directory")
        }
      const index = rules.findLastIndex(({ pathGlob }) => glob(pathGlob, path))
      const rule = rules[index]
      return rule === undefined
        ? {
            verdict: defaultMode,
            kind,
            by: `permission.external_directory.default_mode = "${defaultMode}"`,
            ...place("external_directory")
          }
        : {
            verdict: rule.mode,
            kind,
            by: `the rule for '${rule.pathGlob}' in permission.external_directory`,
            ...place(`external_directory.rules[${index}]`)
          }
    })
  )
}

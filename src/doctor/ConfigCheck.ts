/** Whether every configuration file and every entry can be read. */
import type { ConfigSnapshot } from "../config/Configuration.ts"
import type { Failure } from "../base/Failure.ts"
import { fixOf } from "../base/Failure.ts"
import { type Finding, fine } from "./Check.ts"

const finding = (code: string, subject: string, status: "warn" | "error", failure: Failure): Finding => ({
  code,
  subject,
  status,
  message: failure.text,
  fix: fixOf(failure),
  ...(failure.where === undefined ? {} : { where: failure.where })
})

/** A problem that costs nothing is a remark; one of these codes costs a file or an entry. */
const costly = new Set(["SIGIL_CONFIG_INVALID", "SIGIL_CONFIG_UNREADABLE", "SIGIL_DUPLICATE_NAME"])

/** Findings about files, entries and safety settings. */
export const checkConfig = (snapshot: ConfigSnapshot): ReadonlyArray<Finding> => {
  const problems = snapshot.problems.map((problem) =>
    finding("config:load", problem.where?.file ?? "configuration", costly.has(problem.code) ? "error" : "warn", problem)
  )
  const broken = snapshot.servers.flatMap((entry) =>
    entry._tag === "Broken" ? [finding("config:entry", entry.broken.name, "error", entry.broken.error)] : []
  )
  const remarks = snapshot.servers.flatMap((entry) =>
    entry._tag === "Valid"
      ? entry.declaration.warnings.map((warning): Finding => ({
          code: "config:entry",
          subject: entry.declaration.name,
          status: "warn",
          message: warning,
          where: { ...entry.declaration.source, server: entry.declaration.name }
        }))
      : []
  )
  // The managed file has findings of its own (`PolicyCheck.ts`).
  const settings = snapshot.unsupportedSafety.filter(({ source }) => source !== snapshot.managed?.file)
  const safety = settings.map(({ at, field, fix, source, why }): Finding => ({
    code: "config:safety",
    subject: field,
    status: "error",
    message: `'${field}' is a safety setting that this version cannot enforce${why === undefined ? "" : ` (${why})`}; no server is started.`,
    fix: fix ?? (why === undefined ? "Remove the setting, or use a version of sigil that enforces it." : "Correct it."),
    where: { file: source, ...at, field }
  }))
  const hidden = snapshot.shadowed.map(({ name, scope, source, by, why }): Finding => ({
    code: "config:hidden",
    subject: name,
    status: "warn",
    message: `The entry of scope ${scope} is hidden by '${by.name}' of scope ${by.scope} (same ${why === "name" ? "name" : "command or URL"}).`,
    fix: "Rename one of the two, or remove the one that is not wanted.",
    where: { file: source.file, line: source.line, server: name }
  }))
  const found = [...problems, ...broken, ...safety, ...remarks, ...hidden]
  return found.length > 0
    ? found
    : [fine("config:load", "configuration", `${snapshot.servers.length} server(s) declared`)]
}

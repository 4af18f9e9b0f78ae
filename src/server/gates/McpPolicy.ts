/** Whether the company or the user lets this server exist (spec section 3). */
import * as Effect from "effect/Effect"
import type { CompanyPolicy, PolicyPlace } from "../../config/CompanyPolicy.ts"
import * as Policy from "../../policy/McpPolicy.ts"
import { AdmissionError } from "../ServerError.ts"
import { type Gate, known } from "./Gate.ts"

/** Where a decision stands, for people. */
const placeText = (policy: CompanyPolicy, { at, field }: PolicyPlace): string =>
  `${field} (${policy.file}:${at.line}:${at.column})`

/** Refuses what a policy denies, or what an allow list does not hold; judged by the values that would run. */
export const mcpPolicy: Gate = (state) =>
  Effect.gen(function* () {
    const declaration = yield* known(state.declaration, "mcp_policy")
    const { endpoint } = yield* known(state.expanded, "mcp_policy")
    const { company } = state.facts.snapshot.settings
    const { name } = declaration
    const outcome = Policy.decide(company, { name, endpoint })
    if (outcome._tag === "Allowed") {
      if (outcome.by.length > 0)
        return `allowed by ${outcome.by.map(({ entry, policy }) => placeText(policy, entry)).join(" and ")}`
      return company.some((policy) => policy.mcpPolicy !== undefined)
        ? "no entry of mcpPolicy denies it, and there is no allow list"
        : "no mcpPolicy is set"
    }
    const { entry, policy } = outcome.by
    const where = {
      file: policy.file,
      line: entry.at.line,
      column: entry.at.column,
      field: entry.field,
      server: name,
      operation: "mcp_policy"
    }
    const { file, managed } = policy
    const words = { name: "name", command: "command line", url: "URL" } as const
    if (outcome._tag === "Denied")
      return yield* new AdmissionError({
        code: "SIGIL_DENIED",
        reason: "mcp_policy_denied",
        text: `The server '${name}' is denied by ${entry.field} in ${file}: its ${words[outcome.key]} matches.`,
        fix: managed
          ? `Ask whoever administers this machine to change ${file}, or remove the server.`
          : `Change or remove that entry in ${file}, if you want the server.`,
        where
      })
    const empty = outcome.by.entry.entries.length === 0
    return yield* new AdmissionError({
      code: "SIGIL_DENIED",
      reason: "mcp_policy_not_allowed",
      text: empty
        ? `The server '${name}' is not allowed: ${entry.field} in ${file} is empty, so no server is.`
        : `The server '${name}' is not allowed: no entry of ${entry.field} in ${file} matches it in all of its keys.`,
      fix: managed
        ? `Ask whoever administers this machine to allow it in ${file}, or remove the server.`
        : `Add an entry such as {"name": ${JSON.stringify(name)}} to ${entry.field} in ${file}, if you want the server.`,
      where
    })
  })

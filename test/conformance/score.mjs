// What a run of a scenario is worth. Stricter than the harness's own exit code, which lets a client pass that never
// connected: at least one success, no failure, no warning, and a client that exits 0 where a success is expected.

/** Scenarios of this prefix need a client that signs in (OAuth). */
const SIGN_IN = "auth/"
/** Characters of a reason that are shown. */
const MAX_REASON = 240

/** Whether the scenario can only pass with sign-in. */
export const needsSignIn = (name) => name.startsWith(SIGN_IN)

const reasonOf = ({ id, status, errorMessage, description }) => {
  const text = String(errorMessage ?? description ?? "").replaceAll(/\s+/g, " ")
  return `${id}${status === "WARNING" ? " (warning)" : ""}: ${text.slice(0, MAX_REASON)}`
}

/** The verdict: `{ passed, successes, reasons }`; a run that passed has no reasons. */
export const judge = ({ code, checks }) => {
  if (!Array.isArray(checks))
    return { passed: false, successes: 0, reasons: ["no result: the scenario did not finish"] }
  const successes = checks.filter(({ status }) => status === "SUCCESS").length
  const reasons = checks.filter(({ status }) => status === "FAILURE" || status === "WARNING").map(reasonOf)
  if (reasons.length === 0 && successes === 0) {
    const skipped = checks.some(({ status }) => status === "SKIPPED")
    reasons.push(skipped ? "every check was skipped" : "no check ran: no request arrived")
  }
  if (reasons.length === 0 && code !== 0) reasons.push("every check passed, but the client failed or was timed out")
  return { passed: reasons.length === 0, successes, reasons }
}

const count = (results) => {
  const passed = results.filter(({ verdict }) => verdict.passed).length
  return { passed, failed: results.length - passed, total: results.length }
}

/** The figures of all required scenarios, those that need sign-in apart. */
export const totals = (results) => {
  const required = results.filter(({ unscored }) => unscored === undefined)
  return {
    plain: count(required.filter(({ name }) => !needsSignIn(name))),
    signIn: count(required.filter(({ name }) => needsSignIn(name)))
  }
}

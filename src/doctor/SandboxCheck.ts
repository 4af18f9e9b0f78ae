/** Whether the sandbox that the settings ask for, or that the network policy needs, is to be had. Starts no server. */
import type { Settings } from "../config/Settings.ts"
import { describe, lacks, type Receipt } from "../platform/Sandbox.ts"
import { atSpawn } from "../policy/NetworkPolicy.ts"
import { confinementOf } from "../server/ProcessCoverage.ts"
import { type Finding, fine } from "./Check.ts"

const CODE = "execution:sandbox"

/** The finding, from the answer of the system; `undefined` where no sandbox is asked for. */
export const checkSandbox = (settings: Settings, receipt: Receipt | undefined): Finding => {
  const { execution, networkMode } = settings
  const broken = (message: string, fix: string | undefined): Finding => ({
    code: CODE,
    subject: execution.backend,
    status: "error",
    message: `${message} No server is started.`,
    fix: fix ?? 'Set strategy = "local" in [execution] of sigil.toml.'
  })
  if (receipt?._tag === "Unavailable") return broken(receipt.text, receipt.fix)
  const [lack] = receipt === undefined ? [] : lacks(receipt)
  if (receipt !== undefined && lack !== undefined)
    return broken(`'${receipt.file}' did not prove ${lack}.`, "Update bubblewrap.")
  // A yes to an ask can come from a person; a deny cannot be answered.
  const verdict = atSpawn(networkMode, true, confinementOf(receipt))
  if (verdict._tag === "Refuse") return broken(`network_mode is ${networkMode}: ${verdict.why}`, verdict.fix)
  return receipt === undefined
    ? fine(CODE, "local", "no sandbox is asked for; servers run with the rights of the user")
    : fine(CODE, receipt.backend, `servers run ${describe(receipt)}`)
}

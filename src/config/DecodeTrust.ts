/** Decodes the trust table of an entry (R section 1.5); absent fields take the defaults. */
import type { FieldReader } from "./Fields.ts"
import { defaultTrust } from "./Scopes.ts"
import type { Trust } from "./ServerDeclaration.ts"

const fingerprintForm = /^sha256:[0-9a-f]{64}$/

/** Reads `trust`; every fault goes to the reader's issues. */
export const decodeTrust = (entry: FieldReader): Trust => {
  const reader = entry.table("trust")
  if (reader === undefined) return defaultTrust
  const trust = {
    trustClass: reader.choice("trust_class", ["official", "self_hosted", "third_party"]) ?? defaultTrust.trustClass,
    approvalDefault: reader.choice("approval_default", ["allow", "ask", "deny"]) ?? defaultTrust.approvalDefault,
    egressLogging: reader.bool("egress_logging") ?? defaultTrust.egressLogging,
    allowSecrets: reader.bool("allow_secrets") ?? defaultTrust.allowSecrets,
    pinVersion: reader.bool("pin_version") ?? defaultTrust.pinVersion
  }
  const pinned = decodePinned(reader)
  reader.refuseUnused("trust")
  if (trust.pinVersion && !reader.has("pinned"))
    reader.add(
      reader.missingPath("pinned"),
      reader.object.at,
      "pin_version = true needs the table pinned with the four values to compare"
    )
  if (!trust.pinVersion && reader.has("pinned"))
    reader.add(
      reader.missingPath("pinned"),
      reader.object.at,
      "pinned values have no effect without pin_version = true; add it or remove them"
    )
  return pinned === undefined ? trust : { ...trust, pinned }
}

const decodePinned = (trust: FieldReader): Trust["pinned"] => {
  const reader = trust.table("pinned")
  if (reader === undefined) return undefined
  const required = (name: string): string => {
    const text = reader.text(name)
    if (text === undefined && !reader.has(name))
      reader.add(
        reader.missingPath(name),
        reader.object.at,
        "this value is missing; all four pinned values are required"
      )
    return text ?? ""
  }
  const pinned = {
    transportFingerprint: required("transport_fingerprint"),
    protocolVersion: required("protocol_version"),
    serverName: required("server_name"),
    serverVersion: required("server_version")
  }
  if (pinned.transportFingerprint !== "" && !fingerprintForm.test(pinned.transportFingerprint))
    reader.add(
      reader.missingPath("transport_fingerprint"),
      reader.object.at,
      'expected "sha256:" and 64 lower-case hex digits'
    )
  reader.refuseUnused("pinned")
  return pinned
}

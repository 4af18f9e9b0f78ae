/** A certificate for tests, made when it is needed: no key is kept in the repository. */
import { createSign, generateKeyPairSync } from "node:crypto"

const der = (tag: number, ...parts: ReadonlyArray<Uint8Array>): Buffer => {
  const body = Buffer.concat(parts)
  const { length } = body
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}
const sequence = (...parts: ReadonlyArray<Uint8Array>): Buffer => der(0x30, ...parts)
const oid = (...bytes: ReadonlyArray<number>): Buffer => der(0x06, Buffer.from(bytes))
const time = (at: Date): Buffer => der(0x18, Buffer.from(`${at.toISOString().replaceAll(/[-:T]/g, "").slice(0, 14)}Z`))
const octets = (bytes: Uint8Array): Buffer => der(0x04, bytes)
const yes = der(0x01, Buffer.from([0xff]))

/** A self-signed certificate for `host` and its key, both PEM. It is its own authority. `days` shift its two days. */
export const certificateFor = (host: string, days = 0): { readonly cert: string; readonly key: string } => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const ecdsaSha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02))
  const name = sequence(der(0x31, sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from(host)))))
  const day = 86_400_000
  const middle = Date.now() + days * day
  const validity = sequence(time(new Date(middle - day)), time(new Date(middle + day)))
  const basicConstraints = sequence(oid(0x55, 0x1d, 0x13), yes, octets(sequence(yes)))
  const alternativeName = sequence(oid(0x55, 0x1d, 0x11), octets(sequence(der(0x82, Buffer.from(host)))))
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaSha256,
    name,
    validity,
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(basicConstraints, alternativeName))
  )
  const signature = createSign("sha256").update(body).sign(privateKey)
  const whole = sequence(body, ecdsaSha256, der(0x03, Buffer.from([0]), signature))
  const lines = whole.toString("base64").match(/.{1,64}/g) ?? []
  return {
    cert: ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n"),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  }
}

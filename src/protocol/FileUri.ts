/** `file:` URIs of directories, as MCP roots use them: every byte that is not plain is percent-encoded (R section 9.1). */

const plain = /[A-Za-z0-9/:\-._~]/

/** The URI of an absolute path. */
export const fileUri = (absolute: string): string => {
  const slashed = absolute.replaceAll("\\", "/")
  const rooted = slashed.startsWith("/") ? slashed : `/${slashed}`
  const encoded = [...Buffer.from(rooted)].map((byte) => {
    const character = String.fromCharCode(byte)
    return byte < 0x80 && plain.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`
  })
  return `file://${encoded.join("")}`
}

/**
 * What a server's URL must look like (R section 1.4).
 *
 * Checked when a URL without variables is decoded, and again on the expanded one before anything is dialled.
 */
import type { RemoteTransport } from "./ServerDeclaration.ts"

/** What is wrong with a URL, without repeating it: it may carry a credential. `undefined` when it is fine. */
export const urlFault = (text: string, transport: RemoteTransport): string | undefined => {
  const schemes = transport === "ws" ? ["wss:", "ws:"] : ["https:", "http:"]
  const expected = schemes.map((scheme) => `${scheme}//`).join(" or ")
  if (!URL.canParse(text)) return `this is not a URL; expected one that begins with ${expected}`
  const url = new URL(text)
  if (!schemes.includes(url.protocol)) return `the scheme is "${url.protocol}", expected ${expected}`
  if (url.hostname === "") return "the URL names no host"
  if (url.username !== "" || url.password !== "") return "the URL holds a user name or password; use a header instead"
  if (url.hash !== "" || text.includes("#")) return "the URL holds a fragment (#…), which is never sent; remove it"
  return undefined
}

/** The transport of a URL whose entry names none. One whose scheme a variable fills in counts as HTTP. */
export const transportOfUrl = (text: string): "ws" | "http" => (/^wss?:/i.test(text.trimStart()) ? "ws" : "http")

/** Whether what is sent to this URL is encrypted. */
export const isEncrypted = (text: string): boolean => /^(?:https|wss):/i.test(text)

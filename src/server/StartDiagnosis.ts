/**
 * Turns a failed start into a message that helps: last stderr lines, what the child lacks, the field to change.
 *
 * The most common cause of a failed start is the isolated environment: a variable the parent has and the child
 * was not granted. Where stderr points that way, the variables are named (spec section 1, "Texts").
 */
import { escapeBlock } from "../base/Display.ts"

/** Lines of stderr that go into an error. */
const TAIL_LINES = 20
/** Characters of stderr that go into an error. */
const TAIL_CHARACTERS = 4_096

const homeNames = ["HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"]
const networkNames = [
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "NO_PROXY",
  "http_proxy",
  "https_proxy",
  "all_proxy",
  "no_proxy",
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE"
]
const displayNames = ["DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"]
const agentNames = ["SSH_AUTH_SOCK"]

const hints: ReadonlyArray<readonly [RegExp, ReadonlyArray<string>]> = [
  [/\bhome\b|~\/|getpwuid|config(uration)? director/i, homeNames],
  [
    /ENOTFOUND|ECONNREFUSED|ETIMEDOUT|ECONNRESET|EAI_AGAIN|getaddrinfo|proxy|certificate|network|resolve host/i,
    networkNames
  ],
  [/\bdisplay\b|dbus|wayland|x11/i, displayNames],
  [/ssh-?agent|publickey|ssh_auth/i, agentNames]
]

/** The last lines of stderr, escaped and bounded; empty when there were none. */
export const tail = (stderr: string): ReadonlyArray<string> => {
  const clean = escapeBlock(stderr.slice(-TAIL_CHARACTERS * 2)).trimEnd()
  if (clean === "") return []
  return clean.slice(-TAIL_CHARACTERS).split("\n").slice(-TAIL_LINES)
}

/** Variables that the parent has, the child lacks, and stderr seems to miss; sorted. */
export const lackingVariables = (
  stderr: string,
  childNames: ReadonlyArray<string>,
  parentNames: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const child = new Set(childNames)
  const absent = parentNames.filter((name) => !child.has(name))
  const wanted = new Set<string>()
  for (const [pattern, names] of hints) {
    if (pattern.test(stderr)) for (const name of names) wanted.add(name)
  }
  // A long enough name that stderr spells out is wanted whatever it is: API_KEY, GITHUB_TOKEN.
  const words = new Set(stderr.match(/[A-Za-z_][A-Za-z0-9_]{3,}/g) ?? [])
  return absent.filter((name) => wanted.has(name) || (words.has(name) && /[A-Z]/.test(name))).sort()
}

/** What a start error says beyond its first sentence. */
export interface Explanation {
  /** Appended to the message; empty, or begins with a line break. */
  readonly text: string
  readonly tail: ReadonlyArray<string>
  readonly lacking: ReadonlyArray<string>
  readonly fix: string | undefined
}

/** Explains a failed start from the redacted stderr and the two environments' names. */
export const explain = (
  stderr: string,
  childNames: ReadonlyArray<string>,
  parentNames: ReadonlyArray<string>
): Explanation => {
  const lines = tail(stderr)
  const lacking = lackingVariables(stderr, childNames, parentNames)
  const shown = lines.length === 0 ? "" : `\nIts last stderr lines:\n${lines.map((line) => `  | ${line}`).join("\n")}`
  return {
    text: shown,
    tail: lines,
    lacking,
    fix:
      lacking.length === 0
        ? undefined
        : `The server may miss variables that sigil does not pass on by itself. Grant them by name: ${lacking
            .map((name) => `--inherit-env ${name}`)
            .join(" ")} (inherit_env in the server's entry).`
  }
}

/**
 * The company policy of this machine: `/etc/sigil/managed.json` (macOS `/Library/Application Support/sigil/`, Windows
 * `C:\ProgramData\sigil\`; spec section 3).
 *
 * Fails closed. It counts only if root owns it and nobody else can write it or put another in its place; a file that is
 * there and cannot be trusted, read or understood whole refuses every start, with the place and what to do. Only its
 * absence means that there is no policy. The place is fixed: nothing an unprivileged user controls can move it. On
 * Windows, where Node cannot tell an owner, the access rights of the directory are whoever installs it to set.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fs from "node:fs"
import * as path from "node:path"
import type { HostEnvironment } from "../platform/HostEnvironment.ts"
import type * as Context from "effect/Context"
import { type CompanyPolicy, decodeCompanyPolicy } from "./CompanyPolicy.ts"
import { FieldReader } from "./Fields.ts"
import * as JsonText from "./JsonText.ts"
import { deepDuplicate, type LocatedObject, type Position } from "./Located.ts"
import { decodeLists, noLists, type PermissionLists } from "./PermissionLists.ts"
import { type Issues, kindText } from "./Problem.ts"
import type { UnsupportedSafety } from "./Settings.ts"
import { MAX_FILE_BYTES } from "./TextBounds.ts"

/** Who has to own the file. */
const ROOT = 0
/** Name of the file as a whole in findings. */
const WHOLE = "managed.json"
/** Write permission of group and others. */
const WRITABLE = 0o022
/** In such a directory nobody may replace another one's file. */
const STICKY = 0o1000

/** What the doctor shows of the file. */
export interface ManagedFacts {
  readonly file: string
  readonly present: boolean
  readonly ownerId?: number
  /** Permission bits. */
  readonly mode?: number
}

/** The policy of the machine, or why nothing may start. */
export interface Managed {
  readonly facts: ManagedFacts
  /** One at most. */
  readonly company: ReadonlyArray<CompanyPolicy>
  /** Counted together with the user's: deny goes before ask, ask before allow, wherever they stand. */
  readonly lists: PermissionLists
  readonly unsupportedSafety: ReadonlyArray<UnsupportedSafety>
}

interface Refused {
  readonly why: string
  readonly fix: string
}

interface Opened {
  readonly facts: ManagedFacts
  readonly text?: string
  readonly refusal?: UnsupportedSafety
}

const modeText = (mode: number): string => `0${(mode & 0o7777).toString(8).padStart(3, "0")}`

const refusal = (file: string, reason: string, why: string, fix: string, at?: Position): UnsupportedSafety => ({
  field: WHOLE,
  source: file,
  reason,
  why,
  fix,
  ...(at === undefined ? {} : { at })
})

const codeOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error ? String(error.code) : "unknown error"

/** Only who may write the file can mend it. */
const ASK = "Ask whoever administers this machine"

const readableFix = (file: string): string =>
  `${ASK} to make ${file} readable for everybody (chmod 644), and its directory (chmod 755).`

/** Whose a file or directory may be, and what to call them. */
interface Rightful {
  readonly ownerId: number
  readonly name: string
}

/** Why a file or directory could be changed by others than its owner, or belongs to the wrong one. */
const distrust = (target: string, stat: fs.Stats, { name, ownerId }: Rightful): Refused | undefined => {
  const directory = stat.isDirectory()
  const what = directory ? `the directory ${target}` : target
  const rightful = stat.uid === ownerId || (directory && stat.uid === ROOT)
  if (!rightful)
    return {
      why: `${what} belongs to user ${stat.uid}, not to ${name}`,
      fix: `${ASK} to run 'chown ${ownerId === ROOT ? "root" : ownerId} ${target}'.`
    }
  const guarded = directory && (stat.mode & STICKY) !== 0
  if ((stat.mode & WRITABLE) === 0 || guarded) return undefined
  return {
    why: `${what} can be written by others than ${name} (mode ${modeText(stat.mode)})`,
    fix: `${ASK} to run 'chmod go-w ${target}'.`
  }
}

const ancestors = (directory: string): ReadonlyArray<string> => {
  const parent = path.dirname(directory)
  return parent === directory ? [directory] : [directory, ...ancestors(parent)]
}

/** Whoever can write a directory on the way to the file can take the policy away. */
const distrustWay = (directory: string, rightful: Rightful): Refused | undefined => {
  for (const step of new Set([...ancestors(directory), ...ancestors(fs.realpathSync(directory))])) {
    const fault = distrust(step, fs.statSync(step), rightful)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Reads what is there through one descriptor, so that what is judged is what is read. */
const open = (file: string, rightful: Rightful, checked: boolean): Opened => {
  const directory = path.dirname(file)
  let facts: ManagedFacts = { file, present: true }
  let descriptor: number | undefined
  const refused = (reason: string, found: Refused): Opened => ({
    facts,
    refusal: refusal(file, reason, found.why, found.fix)
  })
  const unreadable = (why: string): Opened => refused("managed_file_unreadable", { why, fix: readableFix(file) })
  try {
    // Links are not followed here: a link that leads nowhere is no absence.
    const present = [directory, file].every((target) => fs.lstatSync(target, { throwIfNoEntry: false }) !== undefined)
    facts = { file, present }
    if (checked && fs.lstatSync(directory, { throwIfNoEntry: false }) !== undefined) {
      const fault = distrustWay(directory, rightful)
      if (fault !== undefined) return refused("managed_file_untrusted", fault)
    }
    if (!present) return { facts }
    // Not blocking: a pipe of this name must not hang every command.
    descriptor = fs.openSync(file, fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0))
    const stat = fs.fstatSync(descriptor)
    facts = { ...facts, ...(checked ? { ownerId: stat.uid } : {}), mode: stat.mode & 0o7777 }
    if (!stat.isFile()) return unreadable("it is no regular file")
    const real = fs.realpathSync(file)
    const fault = checked
      ? (distrust(file, stat, rightful) ?? (real === file ? undefined : distrustWay(path.dirname(real), rightful)))
      : undefined
    if (fault !== undefined) return refused("managed_file_untrusted", fault)
    if (stat.size > MAX_FILE_BYTES) return unreadable("it is too large")
    const bytes = fs.readFileSync(descriptor)
    return { facts, text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch (error) {
    const code = codeOf(error)
    if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return unreadable("it is not UTF-8")
    return unreadable(`it cannot be read: ${code === "EACCES" ? "permission denied" : code}`)
  } finally {
    if (descriptor !== undefined) fs.closeSync(descriptor)
  }
}

/** What the file says; anything that is not understood whole is a fault. */
const decode = (root: LocatedObject, file: string): Pick<Managed, "company" | "lists" | "unsupportedSafety"> => {
  const issues: Issues = []
  const reader = new FieldReader(root, "", "json", issues)
  reader.takeExact("$schema")
  const company = decodeCompanyPolicy(reader, { file, managed: true })
  const lists = decodeLists(reader, file)
  reader.refuseUnused(WHOLE)
  const twice = deepDuplicate(root, "")
  if (twice !== undefined)
    issues.push({ field: twice.path, at: twice.at, text: "this key is written twice; keep one of them" })
  const faults = issues.map(({ at, field, text }): UnsupportedSafety => ({
    field: field === "" ? WHOLE : field,
    source: file,
    reason: "managed_file_invalid",
    why: text,
    fix: `${ASK} to correct ${file} at line ${at.line}, column ${at.column}.`,
    at
  }))
  return { company: company === undefined ? [] : [company], lists, unsupportedSafety: faults }
}

/** Reads the policy. Never fails: what is wrong with it refuses every start. */
export const read = (
  file: string,
  host: Pick<Context.Tag.Service<typeof HostEnvironment>, "platform" | "managed">
): Effect.Effect<Managed> =>
  Effect.sync(() => {
    const ownerId = host.managed?.ownerId ?? ROOT
    const rightful = { ownerId, name: ownerId === ROOT ? "root" : `user ${ownerId}` }
    const { facts, refusal: refused, text } = open(file, rightful, host.platform !== "win32")
    if (text === undefined)
      return { facts, company: [], lists: noLists, unsupportedSafety: refused === undefined ? [] : [refused] }
    const invalid = (why: string, at?: Position): Managed => {
      const place = at === undefined ? "" : ` at line ${at.line}, column ${at.column}`
      const fix = `${ASK} to correct ${file}${place}.`
      return {
        facts,
        company: [],
        lists: noLists,
        unsupportedSafety: [refusal(file, "managed_file_invalid", why, fix, at)]
      }
    }
    const parsed = JsonText.parse(text, file)
    if (Either.isRight(parsed)) {
      const root = parsed.right
      return root.kind === "object"
        ? { facts, ...decode(root, file) }
        : invalid(`found ${kindText(root)}, expected a JSON object`, root.at)
    }
    const { text: why, where } = parsed.left
    const at = where?.line === undefined ? undefined : { line: where.line, column: where.column ?? 1 }
    return invalid(why.replace(/\.$/, ""), at)
  })

/**
 * The files of one log: the present one, those it was rotated to, and the head beside them.
 *
 * `audit.jsonl` is written to; full ones become `audit.1.jsonl`, `audit.2.jsonl` and so on, the lowest number
 * being the oldest. `audit.head` says how many records there are and the hash of the last, so that a missing
 * end is noticed. It is one line of fixed length, rewritten in place.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { HASH_FORM, type Link } from "./AuditRecord.ts"

/** Where a log is (spec section 2). */
export interface LogPaths {
  /** `audit.jsonl`. */
  readonly log: string
  /** `audit.head`. */
  readonly head: string
}

/** Digits of each number in a head, padded with spaces, so that every head has one length. */
const NUMBER_WIDTH = 16

/** What the head says. */
export interface Head extends Link {
  /** Size of `audit.jsonl` after the last record; a hint that saves reading the log's end. */
  readonly bytes: number
}

/** The text of a head. */
export const encodeHead = ({ count, hash, bytes }: Head): string =>
  `{"count":${String(count).padStart(NUMBER_WIDTH)},"hash":"${hash}","bytes":${String(bytes).padStart(NUMBER_WIDTH)}}\n`

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0

/** Reads the text of a head; `undefined` when it is none. */
export const decodeHead = (text: string): Head | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== "object" || value === null || !("count" in value) || !("hash" in value)) return undefined
    if (!isCount(value.count) || typeof value.hash !== "string" || !HASH_FORM.test(value.hash)) return undefined
    // Without the hint every look at the log reads its end.
    return { count: value.count, hash: value.hash, bytes: "bytes" in value && isCount(value.bytes) ? value.bytes : -1 }
  } catch {
    return undefined
  }
}

/** The name of rotated file `number`. */
export const rotatedName = (log: string, number: number): string => {
  const { dir, name, ext } = path.parse(log)
  return path.join(dir, `${name}.${number}${ext}`)
}

/** Numbers of the rotated files, oldest first; empty where the directory is missing. Throws what the system says. */
export const rotatedNumbers = (log: string): ReadonlyArray<number> => {
  const { dir, name, ext } = path.parse(log)
  let names: ReadonlyArray<string>
  try {
    names = fs.readdirSync(dir)
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return []
    throw error
  }
  return names
    .flatMap((file) => {
      if (!file.startsWith(`${name}.`) || !file.endsWith(ext)) return []
      const number = file.slice(name.length + 1, file.length - ext.length)
      return /^[1-9]\d{0,8}$/.test(number) ? [Number(number)] : []
    })
    .sort((a, b) => a - b)
}

/** Every file of the log that exists, oldest first. Throws what the system says. */
export const logFiles = (log: string): ReadonlyArray<string> => [
  ...rotatedNumbers(log).map((number) => rotatedName(log, number)),
  ...(fs.existsSync(log) ? [log] : [])
]

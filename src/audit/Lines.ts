/**
 * Lines of an open file, forwards and backwards, with bounded memory.
 *
 * Lines are bytes between newlines, because what is verified is bytes. Reading is synchronous and in chunks; a
 * caller with much to read lets others run between lines. Throws what the system says.
 */
import * as fs from "node:fs"
import { KIB, MIB } from "../base/Units.ts"

const CHUNK_BYTES = 256 * KIB
/** Chunk of the first look at an end; most looks want one line. */
const TAIL_BYTES = 4 * KIB
/** Longest line that is kept: a record with the largest payload, and some room. Longer ones are cut to this. */
export const MAX_LINE_BYTES = 2 * MIB
const NEWLINE = 0x0a

/** One line without its newline. */
export interface FileLine {
  readonly bytes: Buffer
  /** Whether a newline ends it; only the last line of a file may lack one. */
  readonly complete: boolean
  /** Offset of its first byte. */
  readonly start: number
}

const readAt = (fd: number, start: number, end: number): Buffer => {
  const buffer = Buffer.allocUnsafe(end - start)
  let filled = 0
  while (filled < buffer.length) {
    const read = fs.readSync(fd, buffer, filled, buffer.length - filled, start + filled)
    if (read === 0) break
    filled += read
  }
  return buffer.subarray(0, filled)
}

/** Lines from `from` to `size`. */
export function* forwardLines(fd: number, size: number, from = 0): Generator<FileLine, void, void> {
  let kept: Array<Buffer> = []
  let keptBytes = 0
  let start = from
  const keep = (piece: Buffer): void => {
    if (keptBytes < MAX_LINE_BYTES) kept.push(piece.subarray(0, MAX_LINE_BYTES - keptBytes))
    keptBytes += piece.length
  }
  for (let at = from; at < size;) {
    const chunk = readAt(fd, at, Math.min(at + CHUNK_BYTES, size))
    if (chunk.length === 0) break
    let begin = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, begin)) {
      keep(chunk.subarray(begin, end))
      yield { bytes: kept.length === 1 ? (kept[0] ?? chunk) : Buffer.concat(kept), complete: true, start }
      kept = []
      keptBytes = 0
      begin = end + 1
      start = at + begin
    }
    if (begin < chunk.length) keep(chunk.subarray(begin))
    at += chunk.length
  }
  if (keptBytes > 0) yield { bytes: Buffer.concat(kept), complete: false, start }
}

/** Lines from `size` back to the start, last first. */
export function* backwardLines(fd: number, size: number): Generator<FileLine, void, void> {
  if (size <= 0) return
  let at = size
  let chunkBytes = TAIL_BYTES
  /** Bytes from `at` on that belong to the line whose start is not found yet. */
  let pieces: Array<Buffer> = []
  let complete = false
  const joined = (first: Buffer): Buffer => {
    const whole = pieces.length === 0 ? first : Buffer.concat([first, ...pieces.toReversed()])
    return whole.subarray(0, MAX_LINE_BYTES)
  }
  let first = true
  while (at > 0) {
    const from = Math.max(0, at - chunkBytes)
    let chunk = readAt(fd, from, at)
    at = from
    chunkBytes = CHUNK_BYTES
    if (first) {
      first = false
      complete = chunk.at(-1) === NEWLINE
      if (complete) chunk = chunk.subarray(0, -1)
    }
    let end = chunk.length
    for (let found = chunk.lastIndexOf(NEWLINE); found >= 0;) {
      const bytes = joined(chunk.subarray(found + 1, end))
      yield { bytes, complete, start: from + found + 1 }
      pieces = []
      complete = true
      end = found
      // An offset of -1 would mean the last byte.
      found = found === 0 ? -1 : chunk.lastIndexOf(NEWLINE, found - 1)
    }
    pieces.push(chunk.subarray(0, end))
  }
  yield { bytes: joined(Buffer.alloc(0)), complete, start: 0 }
}

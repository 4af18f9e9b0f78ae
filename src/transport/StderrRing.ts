/**
 * The kept part of a server's stderr: its first 16 KiB and its last 48 KiB (R section 3.10).
 *
 * Pure buffer arithmetic; the text is redacted by whoever shows it, after decoding, never here: a secret may be
 * cut by the gap, so the view removes partial lines around it.
 */
import { KIB } from "../base/Units.ts"
import type { StderrView } from "./Transport.ts"

/** Bytes kept from the start. */
export const HEAD_BYTES = 16 * KIB
/** Bytes kept from the end. */
export const TAIL_BYTES = 48 * KIB

/** A bounded record of a byte stream. */
export interface StderrRing {
  readonly push: (chunk: Buffer) => void
  readonly view: () => StderrView
}

/** An empty ring. */
export const makeStderrRing = (): StderrRing => {
  const head: Array<Buffer> = []
  let headBytes = 0
  let tail: Array<Buffer> = []
  let tailBytes = 0
  let total = 0

  const push = (chunk: Buffer): void => {
    total += chunk.length
    let rest = chunk
    if (headBytes < HEAD_BYTES) {
      const taken = rest.subarray(0, HEAD_BYTES - headBytes)
      // A copy: the chunk's own memory may be a large pooled block.
      head.push(Buffer.from(taken))
      headBytes += taken.length
      rest = rest.subarray(taken.length)
    }
    if (rest.length === 0) return
    tail.push(Buffer.from(rest.length > TAIL_BYTES ? rest.subarray(rest.length - TAIL_BYTES) : rest))
    tailBytes += Math.min(rest.length, TAIL_BYTES)
    if (tailBytes > 2 * TAIL_BYTES) {
      const joined = Buffer.concat(tail)
      const kept = Buffer.from(joined.subarray(joined.length - TAIL_BYTES))
      tail = [kept]
      tailBytes = kept.length
    }
  }

  const view = (): StderrView => {
    const start = Buffer.concat(head)
    const all = Buffer.concat(tail)
    const end = all.length > TAIL_BYTES ? all.subarray(all.length - TAIL_BYTES) : all
    const gap = total - start.length - end.length
    if (gap <= 0) return { text: Buffer.concat([start, end]).toString("utf8"), totalBytes: total }
    const before = start.toString("utf8")
    const after = end.toString("utf8")
    const cut = before.lastIndexOf("\n")
    const resume = after.indexOf("\n")
    return {
      text: `${cut < 0 ? "" : before.slice(0, cut)}\n[${gap} bytes not kept]\n${resume < 0 ? "" : after.slice(resume + 1)}`,
      totalBytes: total
    }
  }

  return { push, view }
}

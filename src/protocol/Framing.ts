/**
 * Newline-delimited frames from a byte stream (MCP stdio transport).
 *
 * Pure: bytes in, frames or one fault out. Only new chunks are scanned, bytes are counted before they are
 * joined, so a frame without end costs at most the limit. UTF-8 is checked by whole line, so characters split
 * over chunks are fine. `\r\n` is accepted. Limits and reasons: R sections 4.1 to 4.3.
 */
import { isUtf8 } from "node:buffer"
import { MIB } from "../base/Units.ts"

/** Largest frame body in either direction, bytes (R section 4.2). */
export const MAX_FRAME_BYTES = 4 * MIB

const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d

/** Why a stream of frames ended. */
export type FramingFault = "frame_too_large" | "invalid_utf8" | "missing_newline"

/** Receives frames in order. Return false to stop (the connection was closed by what the frame said). */
export type OnFrame = (text: string, bytes: number) => boolean

/** Splits a byte stream into frames. */
export interface Splitter {
  /** Takes the next bytes; a fault is final. */
  readonly push: (chunk: Buffer) => FramingFault | undefined
  /** The stream ended; a rest without newline is a fault. */
  readonly end: () => FramingFault | undefined
}

/** A splitter that hands each non-blank line to `onFrame`. */
export const makeSplitter = (onFrame: OnFrame, limit: number = MAX_FRAME_BYTES): Splitter => {
  let parts: Array<Buffer> = []
  let held = 0
  let done = false

  const emit = (line: Buffer): FramingFault | undefined => {
    const end = line.length > 0 && line[line.length - 1] === CARRIAGE_RETURN ? line.length - 1 : line.length
    if (end > limit) return "frame_too_large"
    if (end === 0) return undefined
    const body = end === line.length ? line : line.subarray(0, end)
    if (!isUtf8(body)) return "invalid_utf8"
    const text = body.toString("utf8")
    if (text.trim() === "") return undefined
    if (!onFrame(text, end)) done = true
    return undefined
  }

  return {
    push: (chunk) => {
      for (let from = 0; ;) {
        if (done) return undefined
        const at = chunk.indexOf(NEWLINE, from)
        if (at < 0) {
          const rest = chunk.length - from
          // One byte more than the limit may still be the CR of a CRLF.
          if (held + rest > limit + 1) return "frame_too_large"
          if (rest > 0) {
            parts.push(from === 0 ? chunk : chunk.subarray(from))
            held += rest
          }
          return undefined
        }
        const piece = chunk.subarray(from, at)
        from = at + 1
        let line = piece
        if (held > 0) {
          if (held + piece.length > limit + 1) return "frame_too_large"
          parts.push(piece)
          line = Buffer.concat(parts, held + piece.length)
          parts = []
          held = 0
        }
        const fault = emit(line)
        if (fault !== undefined) return fault
      }
    },
    end: () => {
      if (done || held === 0) return undefined
      const blank = Buffer.concat(parts, held).toString("utf8").trim() === ""
      return blank ? undefined : "missing_newline"
    }
  }
}

/** Whether a line is the header of LSP-style framing, which MCP does not use. */
export const isContentLengthHeader = (text: string): boolean => /^content-length\s*:\s*\d+/i.test(text.trimStart())

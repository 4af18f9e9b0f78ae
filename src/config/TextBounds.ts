/** The size bound of every configuration text, so that a wrong path never fills the memory. */
import { MIB } from "../base/Units.ts"
import type { ConfigError } from "./ConfigError.ts"
import { unreadable } from "./Problem.ts"

/** Largest configuration file in bytes. */
export const MAX_FILE_BYTES = 4 * MIB

/** The refusal of a text or file of too many bytes; `undefined` when it fits. */
export const tooLarge = (size: string | number, file: string): ConfigError | undefined => {
  const bytes = typeof size === "number" ? size : Buffer.byteLength(size)
  return bytes > MAX_FILE_BYTES
    ? unreadable(file, `The file has ${bytes} bytes; a configuration file may have at most ${MAX_FILE_BYTES}.`)
    : undefined
}

/** Sizes and times under names that carry their unit. */

/** Bytes in a kibibyte. */
export const KIB = 1024
/** Bytes in a mebibyte. */
export const MIB = 1024 * KIB
/** Milliseconds in a second. */
export const SECOND_MS = 1_000
/** Milliseconds in a day: the cap of every deadline (R section 4.2). */
export const DAY_MS = 86_400 * SECOND_MS

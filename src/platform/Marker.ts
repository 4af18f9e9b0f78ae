/**
 * The variable that every process of a generation carries in its environment.
 *
 * A process may leave its group and its session, but its environment goes with it; so whatever carries the
 * marker belongs to the generation. A process that clears its environment as well is out of reach without a
 * PID namespace (spec section 7).
 */
import type { GenerationId } from "../base/Ids.ts"

/** Name of the marker variable. */
export const MARKER_VARIABLE = "SIGIL_GENERATION"

/** The marker as it stands in an environment block. */
export const markerOf = (generation: GenerationId): string => `${MARKER_VARIABLE}=${generation}`

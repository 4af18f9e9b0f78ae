/** The revisions this build speaks, newest first, and how one is agreed on. */
import type { Revision } from "./Revision.ts"
import { revision as v2024 } from "./revisions/V2024_11_05.ts"
import { revision as v2025a } from "./revisions/V2025_03_26.ts"
import { revision as v2025b } from "./revisions/V2025_06_18.ts"
import { revision as v2025c } from "./revisions/V2025_11_25.ts"

/** Known revisions, newest first. */
export const revisions: ReadonlyArray<Revision> = [v2025c, v2025b, v2025a, v2024]

/** The revision offered when the entry says `protocol = "auto"`. */
export const newest: Revision = v2025c

/** The adapter of a version string; `undefined` when this build does not speak it. */
export const find = (version: string): Revision | undefined => revisions.find((known) => known.version === version)

/** All versions as one text, for messages. */
export const versionsText = revisions.map((known) => known.version).join(", ")

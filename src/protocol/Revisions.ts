/** The revisions this build speaks, newest first, and how one is agreed on. */
import type { Revision } from "./Revision.ts"
import { revision as v2024 } from "./revisions/V2024_11_05.ts"
import { revision as v2025a } from "./revisions/V2025_03_26.ts"
import { revision as v2025b } from "./revisions/V2025_06_18.ts"
import { revision as v2025c } from "./revisions/V2025_11_25.ts"
import { revision as v2026 } from "./revisions/V2026_07_28.ts"

/** Known revisions, newest first. */
export const revisions: ReadonlyArray<Revision> = [v2026, v2025c, v2025b, v2025a, v2024]

/** The revision that a server without a handshake is asked in. */
export const stateless: Revision = v2026

/** The revision that `initialize` offers when the entry says `protocol = "auto"`. */
export const newest: Revision = v2025c

/** What holds before a handshake has agreed on anything: no header, no batches. */
export const unagreed: Revision = { ...v2025c, version: "", versionHeader: false }

/** The adapter of a version string; `undefined` when this build does not speak it. */
export const find = (version: string): Revision | undefined => revisions.find((known) => known.version === version)

/** The newest stateless revision that is among these; `undefined` when none is. */
export const mutual = (versions: ReadonlyArray<unknown>): Revision | undefined =>
  revisions.find(({ era, version }) => era === "stateless" && versions.includes(version))

/** All versions as one text, for messages. */
export const versionsText = revisions.map((known) => known.version).join(", ")

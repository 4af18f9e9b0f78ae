/** The fields of a document that say how a result was bounded and where it came from. */
import type { Generation } from "../server/Generation.ts"
import type { Shown } from "../tools/Result.ts"

/** What is common to the documents of calls, reads and prompts. */
export const boundsOf = (
  generation: Generation,
  shown: Shown,
  facts: {
    readonly kind: string
    readonly operation: string
    readonly durationMs: number
    readonly warnings: ReadonlyArray<string>
  }
) => ({
  truncated: shown.truncated,
  // JSON has no infinity: a whole result has the limits of the largest number.
  limit_bytes: finite(shown.limits.bytes),
  limit_lines: finite(shown.limits.lines),
  limit_tokens: finite(shown.limits.tokens),
  returned_bytes: shown.returnedBytes,
  total_bytes: shown.totalBytes,
  ...(shown.artifact === undefined ? {} : { artifact: shown.artifact }),
  details: {
    mcp: {
      server: generation.server,
      trust_class: generation.declaration.trust.trustClass,
      kind: facts.kind,
      operation: facts.operation,
      server_identity: { protocol_version: generation.revision.version, ...generation.info },
      generation: generation.id
    }
  },
  duration_ms: Math.round(facts.durationMs),
  warnings: [...facts.warnings, ...shown.warnings]
})

const finite = (value: number): number => (Number.isFinite(value) ? value : Number.MAX_SAFE_INTEGER)

/** Identities that must not be mixed up. Server and tool names are exact strings as their owners wrote them. */
import * as Brand from "effect/Brand"

/** One live connection of one server: a UUID, never reused (spec: words). */
export type GenerationId = string & Brand.Brand<"GenerationId">
/** Brands a UUID as a generation id. */
export const GenerationId = Brand.nominal<GenerationId>()

/** Names one stored artifact: 26 lower-case characters. */
export type ArtifactHandle = string & Brand.Brand<"ArtifactHandle">
/** Brands a string as an artifact handle. */
export const ArtifactHandle = Brand.nominal<ArtifactHandle>()

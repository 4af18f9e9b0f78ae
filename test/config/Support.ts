/** Decodes texts the way the sources do, for tests. */
import * as Either from "effect/Either"
import { assert } from "vitest"
import type { DecodeContext } from "../../src/config/DecodeEntry.ts"
import { decodeJson } from "../../src/config/DecodeJson.ts"
import { type Decoded, decodeToml } from "../../src/config/DecodeToml.ts"
import * as JsonText from "../../src/config/JsonText.ts"
import type { BrokenDeclaration, Entry, Scope, ServerDeclaration } from "../../src/config/ServerDeclaration.ts"
import * as Toml from "../../src/config/Toml.ts"

export const right = <A, E>(either: Either.Either<A, E>): A => {
  if (Either.isLeft(either)) assert.fail(`expected a value, got ${String(either.left)}`)
  return either.right
}

export const left = <A, E>(either: Either.Either<A, E>): E => {
  if (Either.isRight(either)) assert.fail("expected a failure")
  return either.left
}

export const context = (scope: Scope, file: string, more: Partial<DecodeContext> = {}): DecodeContext => ({
  scope,
  file,
  projectRemote: false,
  userFile: "/home/u/.sigil/sigil.toml",
  insideWorkspace: () => true,
  defaults: {},
  ...more
})

export const toml = (text: string, more: Partial<DecodeContext> = {}): Decoded =>
  decodeToml(right(Toml.parse(text, "/f/sigil.toml")).root, context("user", "/f/sigil.toml", more))

export const json = (
  text: string,
  scope: Scope = "project",
  options: { readonly infer?: boolean; readonly more?: Partial<DecodeContext> } = {}
): Decoded =>
  decodeJson(
    right(JsonText.parse(text, "/p/.mcp.json")),
    { infer: options.infer ?? true, mayBeBare: true },
    context(scope, "/p/.mcp.json", options.more)
  )

export const valid = (entry: Entry | undefined): ServerDeclaration => {
  if (entry?._tag !== "Valid")
    assert.fail(`expected a usable entry, got ${entry?._tag === "Broken" ? entry.broken.error.text : "none"}`)
  return entry.declaration
}

export const broken = (entry: Entry | undefined): BrokenDeclaration => {
  if (entry?._tag !== "Broken") assert.fail("expected a broken entry")
  return entry.broken
}

/** One entry of `{"mcpServers":{"s": …}}`. */
export const jsonEntry = (body: string, scope: Scope = "local", infer = true): Entry | undefined =>
  json(`{"mcpServers":{"s":${body}}}`, scope, { infer }).entries[0]

/** One `[[mcp_servers]]` named "s" with more lines. */
export const tomlEntry = (...lines: ReadonlyArray<string>): Entry | undefined =>
  toml(["[[mcp_servers]]", 'name = "s"', ...lines, ""].join("\n")).entries[0]

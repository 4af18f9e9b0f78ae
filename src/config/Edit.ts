/**
 * Changes to configuration files that people also edit by hand.
 *
 * Every change is computed on the text that is on disk at that moment, inside the file's lock, and is checked before
 * it is written: the new text must parse to exactly the intended change. If not, nothing is written. A file that does
 * not parse is never touched, and a literal credential is never put into a file that a project shares.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { canonicalize } from "json-canonicalize"
import * as path from "node:path"
import type { Json, JsonObject } from "../base/Json.ts"
import { update } from "../platform/AtomicFile.ts"
import type { FileError } from "../platform/FileError.ts"
import { near } from "../base/Near.ts"
import { ConfigError } from "./ConfigError.ts"
import { knownCredentials, literalCredentials } from "./Credentials.ts"
import type { DecodeContext } from "./DecodeEntry.ts"
import { nameFault } from "./DecodeEntry.ts"
import { decodeJson } from "./DecodeJson.ts"
import { decodeToml } from "./DecodeToml.ts"
import { addToJson, namesInJson, removeFromJson, setTrustInJson } from "./EditJson.ts"
import { addToLists, type ListAdditions } from "./EditLists.ts"
import { addToToml, appendRule, type Edited, namesInToml, removeFromToml, setTrustInToml } from "./EditToml.ts"
import * as JsonText from "./JsonText.ts"
import { childPath, record, toJson } from "./Located.ts"
import type { Paths } from "./Locations.ts"
import type { Decision } from "./PermissionSettings.ts"
import { nameOf, type Scope } from "./ServerDeclaration.ts"
import * as Toml from "./Toml.ts"

/** Mode of a new file that is shared with the project. */
const SHARED_MODE = 0o644
/** Mode of the user's own files. */
const PRIVATE_MODE = 0o600

/** A file that servers can be written to. */
export interface EditTarget {
  readonly file: string
  readonly scope: Scope
  readonly kind: "sigil.toml" | "settings.json" | ".mcp.json" | "mcp.local.json"
}

/** The file of a scope that the command line can write (spec section 1, `mcp add`). */
export const targetOf = (
  scope: "project" | "user" | "local",
  paths: Pick<Paths, "sigilToml" | "settingsJson" | "mcpLocalJson">,
  facts: { readonly launchDirectory: string; readonly projectIdentity: string; readonly settings?: boolean }
): EditTarget => {
  switch (scope) {
    case "user":
      return facts.settings === true
        ? { file: paths.settingsJson, scope, kind: "settings.json" }
        : { file: paths.sigilToml, scope, kind: "sigil.toml" }
    case "local":
      return { file: paths.mcpLocalJson(facts.projectIdentity), scope, kind: "mcp.local.json" }
    case "project":
      return { file: path.join(facts.launchDirectory, ".mcp.json"), scope, kind: ".mcp.json" }
  }
}

/** A new entry in the spelling of its file; `undefined` values are left out. */
export interface NewEntry {
  readonly name: string
  readonly fields: JsonObject
}

const modeOf = (target: EditTarget): number => (target.kind === ".mcp.json" ? SHARED_MODE : PRIVATE_MODE)
const mayBeBare = (target: EditTarget): boolean => target.kind !== "settings.json"

const failure = (
  target: { readonly file: string },
  fields: Omit<ConstructorParameters<typeof ConfigError>[0], "where">,
  where: { readonly server?: string; readonly field?: string } = {}
): ConfigError => new ConfigError({ ...fields, where: { file: target.file, ...where } })

const parseAny = (text: string, file: string, toml: boolean): Either.Either<Json, ConfigError> =>
  toml ? Either.map(Toml.parse(text, file), ({ root }) => toJson(root)) : Either.map(JsonText.parse(text, file), toJson)

/** The new text, once it is proven to say exactly what was intended. */
const proven = (edited: Edited, file: string, toml: boolean): Either.Either<string, ConfigError> => {
  const parsed = parseAny(edited.text, file, toml)
  const same = Either.isRight(parsed) && canonicalize(parsed.right) === canonicalize(edited.expected)
  return same
    ? Either.right(edited.text)
    : Either.left(
        failure(
          { file },
          {
            code: "SIGIL_CONFIG_WRITE",
            reason: "edit_not_exact",
            text: `${file} cannot be edited without changing something else in it; nothing was written.`,
            fix: "Make the change in an editor."
          }
        )
      )
}

/** Drops `undefined`; refuses what the format cannot hold. */
const cleaned = (value: Json | undefined): Json | undefined => {
  if (Array.isArray(value)) return value.map((item) => cleaned(item) ?? null)
  if (typeof value !== "object" || value === null || "isLosslessNumber" in value) return value
  return record(
    Object.entries(value).flatMap(([key, inner]) => {
      const kept = cleaned(inner)
      return kept === undefined ? [] : [[key, kept] as const]
    })
  )
}

const checkCredentials = (
  target: EditTarget,
  entry: NewEntry,
  secretOf: (text: string) => string | undefined = () => undefined
): ConfigError | undefined => {
  if (target.scope !== "project") return undefined
  const known = knownCredentials(entry.fields, secretOf)
  const literal = literalCredentials(entry.fields)
  const found = [...known, ...literal.filter(({ field }) => known.every((other) => other.field !== field))]
  const [first] = found
  if (first === undefined) return undefined
  const fields = found.map(({ field }) => field)
  return failure(
    target,
    {
      code: "SIGIL_LITERAL_CREDENTIAL",
      reason: "literal_credential",
      text: `${fields.join(", ")} of '${entry.name}' ${fields.length === 1 ? "looks like a credential" : "look like credentials"}, and ${target.file} is shared with everybody who has the project; nothing was written.`,
      fix: `Write \${${first.variable}} instead of the value and set ${first.variable} in the environment, or use --scope user.${known.length === 0 ? "" : ` If ${first.variable} is no secret, list it in public_env of your entries that read it.`}`,
      details: { fields }
    },
    { server: entry.name, field: first.field }
  )
}

/** The fault that the decoder would find in the new text's entry; an entry that cannot be used is not written. */
const checkEntry = (target: EditTarget, name: string, text: string): ConfigError | undefined => {
  const context: DecodeContext = {
    scope: target.scope,
    file: target.file,
    // Whether the user allows remote servers of projects is decided at every start, not here.
    projectRemote: true,
    userFile: "sigil.toml",
    insideWorkspace: () => true,
    defaults: {}
  }
  const decoded =
    target.kind === "sigil.toml"
      ? Either.map(Toml.parse(text, target.file), ({ root }) => decodeToml(root, context))
      : Either.map(JsonText.parse(text, target.file), (root) =>
          decodeJson(root, { infer: target.kind !== "settings.json", mayBeBare: mayBeBare(target) }, context)
        )
  if (Either.isLeft(decoded)) return decoded.left
  const entry = decoded.right.entries.find((candidate) => nameOf(candidate) === name)
  return entry?._tag === "Broken" ? unwritten(entry.broken.error, name) : undefined
}

/**
 * The decoder's error without the places in a text that nobody will ever see: its fields count from the entry, and it
 * has no line. What else is wrong stays in `details.further`, in the same way.
 */
const unwritten = (error: ConfigError, name: string): ConfigError => {
  const roots = ["mcpServers", "mcp_servers", ""].map((key) => childPath(key, name))
  const inEntry = (field: string): string => {
    const root = /^mcp_servers\[\d+\]/.exec(field)?.[0] ?? roots.find((one) => field.startsWith(one)) ?? ""
    return field.slice(root.length).replace(/^\./, "")
  }
  const shortened = (text: string, field: string): string =>
    field !== "" && text.startsWith(`${field}: `)
      ? `${inEntry(field)}${inEntry(field) === "" ? "" : ": "}${text.slice(field.length + 2)}`
      : text
  const { column: _, field = "", line: __, ...place } = error.where ?? {}
  const further = error.details?.["further"]
  return new ConfigError({
    code: error.code,
    reason: error.reason,
    fix: error.fix,
    candidates: error.candidates,
    text: shortened(error.text, field),
    where: { ...place, ...(inEntry(field) === "" ? {} : { field: inEntry(field) }) },
    details: Array.isArray(further)
      ? {
          ...error.details,
          further: further.map(({ field: also, text }: { readonly field: string; readonly text: string }) => ({
            field: inEntry(also),
            text
          }))
        }
      : error.details
  })
}

const namesIn = (target: EditTarget, text: string): Either.Either<ReadonlyArray<Json | undefined>, ConfigError> =>
  target.kind === "sigil.toml" ? namesInToml(text, target.file) : namesInJson(text, target.file, mayBeBare(target))

/** An empty text counts as a file without entries; in JSON there is nothing to parse yet. */
const isBlank = (text: string): boolean => JsonText.withoutBom(text).trim() === ""

/**
 * Declares a server in a file. `force` replaces an entry of the same name in that file.
 *
 * Fails with `SIGIL_NAME_TAKEN`, `SIGIL_LITERAL_CREDENTIAL` (project scope), the decoder's own error for an entry that
 * could not be used, `SIGIL_CONFIG_UNREADABLE` for a file that does not parse, or the file's own errors. Succeeds with
 * whether the file changed.
 */
export const addServer = (
  target: EditTarget,
  given: NewEntry,
  options: {
    readonly force?: boolean
    /** The variable whose secret value a text holds; such a text is not written into a project's file. */
    readonly secretOf?: (text: string) => string | undefined
  } = {}
): Effect.Effect<boolean, ConfigError | FileError> => {
  const fields = cleaned(given.fields)
  const entry: NewEntry = { name: given.name, fields: record(Object.entries(fields ?? {})) }
  const bad = nameFault(entry.name)
  const refused =
    bad === undefined
      ? checkCredentials(target, entry, options.secretOf)
      : failure(
          target,
          {
            code: "SIGIL_CONFIG_INVALID",
            reason: "configuration_invalid",
            text: `The server cannot be declared: ${bad}.`
          },
          { field: "name" }
        )
  if (refused !== undefined) return Effect.fail(refused)
  const change = (current: string | undefined): Effect.Effect<string | undefined, ConfigError> =>
    Effect.gen(function* () {
      const text = current ?? ""
      const names = isBlank(text) ? [] : yield* namesIn(target, text)
      if (options.force !== true && names.includes(entry.name))
        return yield* failure(
          target,
          {
            code: "SIGIL_NAME_TAKEN",
            reason: "name_taken",
            text: `A server named '${entry.name}' is already declared in ${target.file}; nothing was written.`
          },
          { server: entry.name }
        )
      const edited = yield* target.kind === "sigil.toml"
        ? addToToml(text, target.file, entry)
        : addToJson(text, target.file, mayBeBare(target), entry)
      const next = yield* proven(edited, target.file, target.kind === "sigil.toml")
      const fault = checkEntry(target, entry.name, next)
      if (fault !== undefined) return yield* fault
      return next
    })
  return update(target.file, change, { mode: modeOf(target) })
}

/** Removes a server from a file. Fails with `SIGIL_UNKNOWN_SERVER` when the file does not declare it. */
export const removeServer = (target: EditTarget, name: string): Effect.Effect<boolean, ConfigError | FileError> =>
  update(
    target.file,
    (current) =>
      Effect.gen(function* () {
        const text = current ?? ""
        const names = isBlank(text) ? [] : yield* namesIn(target, text)
        const edited = isBlank(text)
          ? undefined
          : yield* target.kind === "sigil.toml"
              ? removeFromToml(text, target.file, name)
              : removeFromJson(text, target.file, mayBeBare(target), name)
        if (edited === undefined)
          return yield* failure(
            target,
            {
              code: "SIGIL_UNKNOWN_SERVER",
              reason: "unknown_server",
              text: `${target.file} declares no server named '${name}'; nothing was written.`,
              candidates: near(
                name,
                names.filter((other) => typeof other === "string")
              )
            },
            { server: name }
          )
        return yield* proven(edited, target.file, target.kind === "sigil.toml")
      }),
    { mode: modeOf(target) }
  )

/**
 * Pins a server in the file that declares it: `trust.pin_version` and the four values. Comments and order stay.
 *
 * Fails as `removeServer` does. Succeeds with whether the file changed.
 */
export const pinServer = (
  target: EditTarget,
  name: string,
  pinned: JsonObject
): Effect.Effect<boolean, ConfigError | FileError> =>
  update(
    target.file,
    (current) =>
      Effect.gen(function* () {
        const text = current ?? ""
        const toml = target.kind === "sigil.toml"
        const members = { pin_version: true, pinned }
        const edited = yield* toml
          ? setTrustInToml(text, target.file, name, members)
          : setTrustInJson(text, target.file, mayBeBare(target), name, members)
        if (edited === undefined)
          return yield* failure(
            target,
            {
              code: "SIGIL_UNKNOWN_SERVER",
              reason: "unknown_server",
              text: `${target.file} declares no server named '${name}'; nothing was written.`
            },
            { server: name }
          )
        const next = yield* proven(edited, target.file, toml)
        const fault = checkEntry(target, name, next)
        if (fault !== undefined) return yield* fault
        return next
      }),
    { mode: modeOf(target) }
  )

/**
 * Adds texts to lists of `[web]` in sigil.toml, as `mcp add --allow-loopback` does (spec section 6). Succeeds with false
 * when they are all there.
 */
export const addToWebLists = (
  sigilToml: string,
  additions: ListAdditions
): Effect.Effect<boolean, ConfigError | FileError> =>
  update(
    sigilToml,
    (current) =>
      Effect.gen(function* () {
        const edited = yield* addToLists(current ?? "", sigilToml, "web", additions)
        return edited === undefined ? current : yield* proven(edited, sigilToml, true)
      }),
    { mode: PRIVATE_MODE }
  )

/**
 * Appends a rule to sigil.toml, as "always" does (spec section 1). The last matching rule wins, so it stands last.
 * Succeeds with false when the last rule already says so.
 */
export const appendPermissionRule = (
  sigilToml: string,
  rule: { readonly tool_name: string; readonly subject_glob?: string; readonly mode: Decision }
): Effect.Effect<boolean, ConfigError | FileError> =>
  update(
    sigilToml,
    (current) =>
      Effect.gen(function* () {
        const edited = yield* appendRule(current ?? "", sigilToml, rule)
        return edited === undefined ? current : yield* proven(edited, sigilToml, true)
      }),
    { mode: PRIVATE_MODE }
  )

/**
 * Whole results kept beside what was shown: cut text and binary content (spec section 9).
 *
 * Private files of the workspace under handles; at most 512 MiB and 7 days, oldest first. A handle from outside
 * is a name, never a path.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { failureFields } from "../base/Failure.ts"
import { ArtifactHandle } from "../base/Ids.ts"
import { DAY_MS, MIB } from "../base/Units.ts"
import { ensurePrivateDirectory } from "../platform/AtomicFile.ts"
import type { FileError } from "../platform/FileError.ts"
import { Random } from "../platform/Random.ts"

/** Bytes kept per workspace. */
export const MAX_TOTAL_BYTES = 512 * MIB
/** Age at which an artifact is removed, ms. */
export const MAX_AGE_MS = 7 * DAY_MS

/** An artifact could not be kept or read. Codes `SIGIL_UNKNOWN_ARTIFACT`, `SIGIL_FILE`. */
export class ArtifactError extends Schema.TaggedError<ArtifactError>("sigil/ArtifactError")(
  "ArtifactError",
  failureFields
) {
  override get message(): string {
    return this.text
  }
}

/** A kept artifact. */
export interface Stored {
  readonly handle: ArtifactHandle
  readonly path: string
  readonly bytes: number
}

/** Kept results of one workspace. */
export class Artifacts extends Context.Tag("sigil/tools/Artifacts")<
  Artifacts,
  {
    /** Keeps bytes; removes what is over the limits first. `extension` is without a dot. */
    readonly put: (bytes: Uint8Array, extension: string) => Effect.Effect<Stored, ArtifactError | FileError>
    /** The bytes of a handle. */
    readonly read: (handle: string) => Effect.Effect<Uint8Array, ArtifactError>
    /** What is kept, oldest first. */
    readonly list: Effect.Effect<ReadonlyArray<Stored>, ArtifactError>
    /** Removes one. */
    readonly remove: (handle: string) => Effect.Effect<void, ArtifactError>
  }
>() {}

const handlePattern = /^[a-z0-9]{26}$/

const fault = (reason: string, text: string, file: string): ArtifactError =>
  new ArtifactError({ code: "SIGIL_FILE", reason, text, where: { file } })

const attempt = <A>(file: string, what: string, run: () => Promise<A>): Effect.Effect<A, ArtifactError> =>
  Effect.tryPromise({
    try: run,
    catch: (error) => fault("artifact_io", `${what}: ${error instanceof Error ? error.message : "unknown fault"}`, file)
  })

const unknown = (handle: string): ArtifactError =>
  new ArtifactError({
    code: "SIGIL_UNKNOWN_ARTIFACT",
    reason: "unknown_artifact",
    text: `No artifact has the handle '${handle.slice(0, 64)}'.`
  })

interface File {
  readonly file: string
  readonly bytes: number
  readonly modified: number
}

const filesIn = (directory: string): Effect.Effect<ReadonlyArray<File>, ArtifactError> =>
  attempt(directory, "The artifacts cannot be listed", async () => {
    const names = await fs.readdir(directory)
    const found = await Promise.all(
      names.map(async (name) => {
        const file = path.join(directory, name)
        const stat = await fs.stat(file).catch(() => undefined)
        return stat?.isFile() === true ? [{ file, bytes: stat.size, modified: stat.mtimeMs }] : []
      })
    )
    return found.flat().sort((left, right) => left.modified - right.modified)
  })

/** Removes the oldest until the new one fits; age first. */
const makeRoom = (directory: string, incoming: number, now: number): Effect.Effect<void, ArtifactError> =>
  Effect.gen(function* () {
    const files = yield* filesIn(directory)
    let total = incoming + files.reduce((sum, { bytes }) => sum + bytes, 0)
    for (const { file, bytes, modified } of files) {
      if (total <= MAX_TOTAL_BYTES && now - modified <= MAX_AGE_MS) continue
      yield* attempt(file, "An old artifact cannot be removed", () => fs.rm(file, { force: true }))
      total -= bytes
    }
  })

/** 26 characters out of a UUID and its digits in base 36. */
const handleFrom = (uuid: string): ArtifactHandle =>
  ArtifactHandle(
    BigInt(`0x${uuid.replaceAll("-", "")}`)
      .toString(36)
      .padStart(26, "0")
      .slice(-26)
  )

/** Name of a file that holds an artifact; anything else in the directory is not looked at. */
const filePattern = /^([a-z0-9]{26})\.[a-z0-9]+$/

const storedIn = (directory: string): Effect.Effect<ReadonlyArray<Stored>, ArtifactError> =>
  Effect.map(
    Effect.orElseSucceed(filesIn(directory), (): ReadonlyArray<File> => []),
    (files) =>
      files.flatMap(({ file, bytes }) => {
        const handle = filePattern.exec(path.basename(file))?.[1]
        return handle === undefined ? [] : [{ handle: ArtifactHandle(handle), path: file, bytes }]
      })
  )

/** The file of a handle. A handle is compared with names that exist and never becomes part of a path. */
const find = (directory: string, handle: string): Effect.Effect<string, ArtifactError> =>
  Effect.gen(function* () {
    if (!handlePattern.test(handle)) return yield* unknown(handle)
    const names = yield* Effect.orElseSucceed(
      attempt(directory, "The artifacts cannot be listed", () => fs.readdir(directory)),
      (): ReadonlyArray<string> => []
    )
    const name = names.find((candidate) => filePattern.exec(candidate)?.[1] === handle)
    return name === undefined ? yield* unknown(handle) : path.join(directory, name)
  })

/** Artifacts in one directory. */
export const layer = (directory: string): Layer.Layer<Artifacts, never, Random> =>
  Layer.effect(
    Artifacts,
    Effect.map(Random, (random) => ({
      put: (bytes, extension) =>
        Effect.gen(function* () {
          yield* ensurePrivateDirectory(directory)
          yield* makeRoom(directory, bytes.byteLength, yield* Clock.currentTimeMillis)
          const handle = handleFrom(random.uuid())
          const file = path.join(directory, `${handle}.${extension.replace(/[^a-z0-9]/g, "") || "bin"}`)
          yield* attempt(file, "The artifact cannot be written", () =>
            fs.writeFile(file, bytes, { mode: 0o600, flag: "wx" })
          )
          return { handle, path: file, bytes: bytes.byteLength }
        }),
      read: (handle) =>
        Effect.gen(function* () {
          const file = yield* find(directory, handle)
          return new Uint8Array(yield* attempt(file, "The artifact cannot be read", () => fs.readFile(file)))
        }),
      list: storedIn(directory),
      remove: (handle) =>
        Effect.flatMap(find(directory, handle), (file) =>
          attempt(file, "The artifact cannot be removed", () => fs.rm(file, { force: true }))
        )
    }))
  )

/** Artifacts in memory. */
export const layerMemory: Layer.Layer<Artifacts> = Layer.sync(Artifacts, () => {
  const kept = new Map<string, { readonly bytes: Uint8Array; readonly stored: Stored }>()
  let made = 0
  return {
    put: (bytes, extension) =>
      Effect.sync(() => {
        made += 1
        const handle = ArtifactHandle(String(made).padStart(26, "0"))
        const stored = { handle, path: `memory:${handle}.${extension}`, bytes: bytes.byteLength }
        kept.set(handle, { bytes, stored })
        return stored
      }),
    read: (handle) =>
      Effect.suspend(() => {
        const found = kept.get(handle)
        return found === undefined ? unknown(handle) : Effect.succeed(found.bytes)
      }),
    list: Effect.sync(() => [...kept.values()].map(({ stored }) => stored)),
    remove: (handle) => Effect.suspend(() => (kept.delete(handle) ? Effect.void : unknown(handle)))
  }
})

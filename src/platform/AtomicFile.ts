/**
 * Text files that several programs read and change: configuration, approvals, tokens, logs (S section 12.3).
 *
 * A change is: lock, read, change, write a temporary file beside it, compare the bytes again, rename. A reader
 * sees the old file or the new one, never a part. A writer that does not know the lock (an editor) is noticed
 * by the comparison, which is made in the same breath as the rename; nothing is written then.
 *
 * Own code and not `write-file-atomic`, because that offers no moment between the synced temporary file and the
 * rename at which the comparison could be made.
 */
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { MIB } from "../base/Units.ts"
import { FileError } from "./FileError.ts"
import { fileFault, fileRefused, systemCodeOf } from "./FileFault.ts"
import { makeParents, withLock } from "./FileLock.ts"

/** Largest text that is read. Real ones have some kilobytes. */
export const MAX_TEXT_BYTES = 64 * MIB
/** Mode of a new file: for its owner only. */
const PRIVATE_MODE = 0o600
const PRIVATE_DIRECTORY_MODE = 0o700
/** A mark that some editors put before UTF-8; kept in the file, never shown to a caller. */
const BYTE_ORDER_MARK = "\uFEFF"

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

interface Content {
  readonly bytes: Buffer
  readonly text: string
  readonly marked: boolean
  readonly stat: fs.Stats
}

/** Opens without waiting for a writer, as a FIFO in the file's place would make us. */
const OPEN_FLAGS = fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0)

/** The bytes of a regular file; `undefined` when there is none. */
const readBytes = (file: string): Effect.Effect<{ bytes: Buffer; stat: fs.Stats } | undefined, FileError> =>
  Effect.suspend(() => {
    let handle: number | undefined
    try {
      handle = fs.openSync(file, OPEN_FLAGS)
      const stat = fs.fstatSync(handle)
      if (stat.isDirectory()) return fileRefused("not_a_file", file, `'${file}' cannot be read: it is a directory.`)
      if (!stat.isFile()) return fileRefused("not_a_file", file, `'${file}' cannot be read: it is not a regular file.`)
      if (stat.size > MAX_TEXT_BYTES) {
        return fileRefused("too_large", file, `'${file}' has ${stat.size} bytes; the limit is ${MAX_TEXT_BYTES}.`)
      }
      return Effect.succeed({ bytes: fs.readFileSync(handle), stat })
    } catch (error) {
      return systemCodeOf(error) === "ENOENT" ? Effect.succeed(undefined) : fileFault("read", file, error)
    } finally {
      if (handle !== undefined) fs.closeSync(handle)
    }
  })

const readContent = (file: string): Effect.Effect<Content | undefined, FileError> =>
  Effect.flatMap(readBytes(file), (found) => {
    if (found === undefined) return Effect.succeed(undefined)
    try {
      const text = decoder.decode(found.bytes)
      const marked = text.startsWith(BYTE_ORDER_MARK)
      return Effect.succeed({ ...found, marked, text: marked ? text.slice(1) : text })
    } catch {
      return fileRefused("invalid_utf8", file, `'${file}' is not UTF-8 text.`, "Save the file as UTF-8.")
    }
  })

/**
 * The text of a regular file, without byte order mark; `undefined` when it does not exist. Links are followed.
 * Fails with `SIGIL_FILE`: the system's reason, `not_a_file`, `too_large` or `invalid_utf8`.
 */
export const readText = (file: string): Effect.Effect<string | undefined, FileError> =>
  Effect.map(readContent(file), (content) => content?.text)

/** Write permission of group and others. */
const WRITABLE_BY_OTHERS = 0o022

/** Why a file that holds decisions does not count: somebody else could have written it. Not known on Windows. */
const distrust = (file: string, stat: fs.Stats): FileError | undefined => {
  const userId = process.getuid?.()
  if (userId === undefined) return undefined
  const foreign = stat.uid !== userId && stat.uid !== 0
  if (!foreign && (stat.mode & WRITABLE_BY_OTHERS) === 0) return undefined
  const mode = `0${(stat.mode & 0o777).toString(8)}`
  return fileRefused(
    "untrusted_file",
    file,
    foreign
      ? `'${file}' is not used: it belongs to user ${stat.uid}, so somebody else may have written it.`
      : `'${file}' is not used: others than you may write to it (mode ${mode}).`,
    `Look at what it says; if all of it is yours, run '${foreign ? "chown" : "chmod 600"} ${foreign ? `${userId} ` : ""}${file}', else move it away.`
  )
}

const readTrusted = (file: string): Effect.Effect<Content | undefined, FileError> =>
  Effect.flatMap(readContent(file), (content) => {
    const refused = content === undefined ? undefined : distrust(file, content.stat)
    return refused === undefined ? Effect.succeed(content) : refused
  })

/**
 * The text of a file that holds decisions of the user; `undefined` when it does not exist. Fails as `readText` does,
 * and with reason `untrusted_file` when anybody but its user and root may have written it.
 */
export const readOwnText = (file: string): Effect.Effect<string | undefined, FileError> =>
  Effect.map(readTrusted(file), (content) => content?.text)

/** Refuses a destination that is not a plain file: the rename would replace a link, not its target. */
const checkDestination = (file: string): Effect.Effect<void, FileError> =>
  Effect.suspend(() => {
    try {
      const stat = fs.lstatSync(file)
      if (stat.isSymbolicLink()) {
        return fileRefused(
          "symlink",
          file,
          `'${file}' is a symbolic link and is not written through.`,
          "Edit the file that it points to, or replace the link by a file."
        )
      }
      return stat.isFile()
        ? Effect.void
        : fileRefused("not_a_file", file, `'${file}' cannot be written: it is not a regular file.`)
    } catch (error) {
      return systemCodeOf(error) === "ENOENT" ? Effect.void : fileFault("written", file, error)
    }
  })

const changedMeanwhile = (file: string): FileError =>
  new FileError({
    code: "SIGIL_CONFIG_CONFLICT",
    reason: "changed_meanwhile",
    text: `'${file}' was changed by somebody else in the meantime; nothing was written. Reload and retry.`,
    where: { file }
  })

/** The file's own mode where it allows no more than `wanted`, else `wanted`: a write never loosens. */
const modeFor = (existing: number | undefined, wanted: number): number =>
  existing !== undefined && (existing & 0o777 & ~wanted) === 0 ? existing & 0o777 : wanted

/** Writes and syncs the temporary file; it is removed when anything fails. */
const writeTemporary = (temporary: string, bytes: Buffer, mode: number, owner: fs.Stats | undefined) =>
  Effect.promise(async () => {
    try {
      const handle = await fs.promises.open(temporary, "wx", mode)
      try {
        await handle.chmod(mode)
        // root editing a user's file must not take it away; anybody else may not, and need not.
        if (owner !== undefined && process.getuid?.() === 0) await handle.chown(owner.uid, owner.gid)
        await handle.writeFile(bytes)
        await handle.sync()
      } finally {
        await handle.close()
      }
      return undefined
    } catch (error) {
      fs.rmSync(temporary, { force: true })
      return { error }
    }
  })

/** Makes the rename itself durable; not every file system can. */
const syncDirectory = (folder: string): void => {
  try {
    const handle = fs.openSync(folder, "r")
    try {
      fs.fsyncSync(handle)
    } finally {
      fs.closeSync(handle)
    }
  } catch {
    // The content is safe; only the moment of the rename is not.
  }
}

const replace = (file: string, before: Content | undefined, next: string, wanted: number) =>
  Effect.gen(function* () {
    const bytes = Buffer.from(before?.marked === true ? BYTE_ORDER_MARK + next : next)
    const temporary = path.join(path.dirname(file), `.${path.basename(file)}.${randomUUID()}.tmp`)
    const failed = yield* writeTemporary(temporary, bytes, modeFor(before?.stat.mode, wanted), before?.stat)
    if (failed !== undefined) return yield* fileFault("written", file, failed.error)
    return yield* Effect.gen(function* () {
      yield* checkDestination(file)
      const now = yield* readBytes(file)
      const same = now === undefined ? before === undefined : before !== undefined && now.bytes.equals(before.bytes)
      if (!same) return yield* changedMeanwhile(file)
      yield* Effect.try({
        try: () => fs.renameSync(temporary, file),
        catch: (error) => fileFault("written", file, error)
      })
      syncDirectory(path.dirname(file))
    }).pipe(Effect.tapError(() => Effect.sync(() => fs.rmSync(temporary, { force: true }))))
  })

/**
 * Changes a file under its lock. `change` gets the present text (`undefined`: no file) and gives the new one;
 * `undefined` or the same text writes nothing. True when the file was written.
 *
 * Missing parents are made with mode 0700; the file gets `mode` (0600 when absent) unless its own is tighter.
 * Fails with what `change` fails with, or with a `FileError`: `SIGIL_CONFIG_CONFLICT` when a writer without the
 * lock was there meanwhile, reason `symlink` when the file is a link, `locked`, or the system's reason; with `own`
 * also as `readOwnText` does.
 */
export const update = <E, R>(
  file: string,
  change: (current: string | undefined) => Effect.Effect<string | undefined, E, R>,
  options?: { readonly mode?: number | undefined; readonly own?: boolean }
): Effect.Effect<boolean, E | FileError, R> =>
  Effect.zipRight(
    checkDestination(file),
    withLock(
      file,
      Effect.gen(function* () {
        yield* checkDestination(file)
        const before = yield* options?.own === true ? readTrusted(file) : readContent(file)
        const next = yield* change(before?.text)
        if (next === undefined || next === before?.text) return false
        yield* Effect.uninterruptible(replace(file, before, next, options?.mode ?? PRIVATE_MODE))
        return true
      })
    )
  )

/**
 * Makes a directory of sigil's own, with its parents, for the user only; an existing one is tightened to 0700.
 * Fails when it cannot be made, is not a directory, or belongs to somebody else.
 */
export const ensurePrivateDirectory = (directory: string): Effect.Effect<void, FileError> =>
  Effect.zipRight(
    makeParents(path.join(directory, "x")),
    Effect.suspend(() => {
      try {
        const stat = fs.statSync(directory)
        const userId = process.getuid?.()
        if (userId === undefined || (stat.mode & 0o077) === 0) return Effect.void
        if (stat.uid !== userId && userId !== 0) {
          return fileRefused(
            "not_private",
            directory,
            `The directory '${directory}' belongs to another user and is open to others.`,
            "Use a directory of your own."
          )
        }
        fs.chmodSync(directory, PRIVATE_DIRECTORY_MODE)
        return Effect.void
      } catch (error) {
        return fileFault("created", directory, error)
      }
    })
  )

/**
 * Reads one configuration file: regular, small enough, and, where it comes from a repository, not writable by
 * strangers. A file that does not exist is no error; a link that leads nowhere is one.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { readText } from "../platform/AtomicFile.ts"
import { systemCodeOf } from "../platform/FileFault.ts"
import { ConfigError } from "./ConfigError.ts"
import { unreadable } from "./Problem.ts"
import { tooLarge } from "./TextBounds.ts"

/** Whether an exception of the file system says that there is no such file. */
const isAbsent = (error: unknown): boolean =>
  typeof error === "object" &&
  error !== null &&
  "code" in error &&
  (error.code === "ENOENT" || error.code === "ENOTDIR")

const causeText = (error: unknown): string => {
  const code = typeof error === "object" && error !== null && "code" in error ? String(error.code) : "unknown error"
  if (code === "ENOTDIR") return "a part of the path is not a directory"
  return code === "EACCES" ? "permission denied" : code === "ELOOP" ? "too many links" : code
}

const isLink = (target: string): boolean | undefined => {
  try {
    return fs.lstatSync(target).isSymbolicLink()
  } catch {
    return undefined
  }
}

/** The link on the way to a file that is not there, if one leads nowhere: somebody meant it to be there. */
const deadLink = (file: string): string | undefined => {
  for (let at = file; ; at = path.dirname(at)) {
    const link = isLink(at)
    if (link !== undefined) return link ? at : undefined
    if (path.dirname(at) === at) return undefined
  }
}

/** Facts about the file that decide whether it is read; `undefined` only when nothing stands there, no link either. */
const statOf = (file: string): Effect.Effect<fs.Stats | undefined, ConfigError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(fs.statSync(file))
    } catch (error) {
      if (systemCodeOf(error) !== "ENOENT")
        return Effect.fail(unreadable(file, `The file cannot be read: ${causeText(error)}.`))
      const link = deadLink(file)
      return link === undefined
        ? Effect.succeed(undefined)
        : Effect.fail(
            unreadable(
              file,
              `The file cannot be read: the link ${link} leads nowhere.`,
              undefined,
              "Make the link lead to a file again, or remove it."
            )
          )
    }
  })

/** Who may own a repository's file; absent user id (Windows) skips the check of the owner. */
export interface Owner {
  readonly userId: number | undefined
  readonly platform: NodeJS.Platform
}

/** Why a repository's file is not used: somebody else could have written it (S section 12.3 row 6). */
export const untrusted = (file: string, stat: fs.Stats, owner: Owner): ConfigError | undefined => {
  if (owner.platform === "win32") return undefined
  const foreign = owner.userId !== undefined && stat.uid !== owner.userId && stat.uid !== 0
  const open = (stat.mode & 0o002) !== 0
  if (!foreign && !open) return undefined
  return new ConfigError({
    code: "SIGIL_CONFIG_UNREADABLE",
    reason: "untrusted_file",
    text: foreign
      ? "The file is not used: it belongs neither to you nor to root, so somebody else may change what it starts."
      : "The file is not used: every user of this machine may write to it.",
    fix: foreign ? `Run 'chown' on ${file} if the file is yours.` : `Run 'chmod o-w ${file}'.`,
    where: { file }
  })
}

/**
 * The text of a file; `undefined` when it does not exist. `owner` asks for the check of a repository's file (S
 * section 12.3 row 6). Fails with `SIGIL_CONFIG_UNREADABLE`.
 */
export const read = (file: string, owner?: Owner): Effect.Effect<string | undefined, ConfigError> =>
  Effect.gen(function* () {
    const stat = yield* statOf(file)
    if (stat === undefined) return undefined
    if (!stat.isFile()) return yield* unreadable(file, "The path does not name a regular file.")
    const refused = owner === undefined ? undefined : untrusted(file, stat, owner)
    if (refused !== undefined) return yield* refused
    const large = tooLarge(stat.size, file)
    if (large !== undefined) return yield* large
    return yield* readText(file).pipe(
      Effect.mapError((error) => unreadable(file, `The file cannot be read: ${error.text}`, undefined, error.fix))
    )
  })

/** Whether anything of this path exists, a broken link included. */
export const exists = (target: string): boolean => {
  try {
    fs.lstatSync(target)
    return true
  } catch (error) {
    // A path that cannot even be looked at counts as present: callers ask about safety files.
    return !isAbsent(error)
  }
}

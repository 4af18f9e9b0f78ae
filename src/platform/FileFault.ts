/** Turns what the operating system says about a file into a `FileError` that a person can act on. */
import { FileError } from "./FileError.ts"

/** Words for the codes that users meet; others are shown as they are. */
const known: { readonly [code: string]: { readonly reason: string; readonly says: string; readonly fix: string } } = {
  EACCES: {
    reason: "permission_denied",
    says: "permission denied",
    fix: "Check the owner and permissions of the path."
  },
  EPERM: {
    reason: "permission_denied",
    says: "operation not permitted",
    fix: "Check the owner and flags of the path."
  },
  EROFS: { reason: "read_only", says: "the file system is read-only", fix: "Use a place that can be written." },
  ENOSPC: { reason: "no_space", says: "no space left on the device", fix: "Free some space and retry." },
  EDQUOT: { reason: "no_space", says: "the disk quota is used up", fix: "Free some space and retry." },
  ENOENT: { reason: "not_found", says: "no such file or directory", fix: "Check the path." },
  ENOTDIR: { reason: "not_a_directory", says: "a part of the path is not a directory", fix: "Check the path." },
  EISDIR: { reason: "not_a_file", says: "it is a directory", fix: "Give the path of a file." },
  ELOOP: { reason: "too_many_links", says: "too many symbolic links", fix: "Check the links of the path." },
  ENAMETOOLONG: { reason: "name_too_long", says: "the name is too long", fix: "Use a shorter name." },
  EMFILE: { reason: "too_many_open", says: "too many open files", fix: "Raise the limit of open files." },
  EIO: { reason: "device_error", says: "the device reports an error", fix: "Check the disk." }
}

/** The system's code of an error (`ENOENT`); empty when it has none. */
export const systemCodeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : ""

/** What was tried, as it stands in the sentence "The file 'x' cannot be …". */
export type FileAct = "read" | "written" | "locked" | "created"

/** The failure of `act` on `path`, with the system's reason in words. */
export const fileFault = (act: FileAct, path: string, error: unknown): FileError => {
  const code = systemCodeOf(error)
  const entry = known[code]
  const says = entry?.says ?? (error instanceof Error ? error.message : String(error))
  return new FileError({
    code: "SIGIL_FILE",
    reason: entry?.reason ?? "system_error",
    text: `'${path}' cannot be ${act}: ${says}.`,
    fix: entry?.fix,
    where: { file: path },
    details: code === "" ? {} : { system_code: code }
  })
}

/** A failure that the system did not report. */
export const fileRefused = (reason: string, path: string, text: string, fix?: string): FileError =>
  new FileError({ code: "SIGIL_FILE", reason, text, fix, where: { file: path } })

/** A file of sigil's own whose text is not what sigil writes. It is kept: a write would lose what is left in it. */
export const fileDamaged = (path: string, holds: string): FileError =>
  fileRefused(
    "damaged",
    path,
    `'${path}' is damaged: it does not hold ${holds} as sigil writes them, so nothing in it counts. It is kept as it is.`,
    `Repair it or restore it from a copy; or move it away ('mv ${path} ${path}.damaged') and decide again.`
  )

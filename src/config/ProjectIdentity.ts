/**
 * What a project is for approvals, toggles and private files (S section 2.2).
 *
 * Inside git it is the main checkout, so sub-directories and linked worktrees share one identity; elsewhere the launch
 * directory. Git's files are read, git is never started. A directory only counts as a worktree of a repository when
 * the repository itself says so: otherwise an unpacked archive with a forged `.git` file could borrow the approvals
 * of a project that somebody trusts.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { isInside } from "../platform/Containment.ts"

/** Longest `.git`, `commondir` or `gitdir` file that is read, bytes. */
const MAX_POINTER_BYTES = 64 * 1024

/** A path with its links resolved, or as it is when that is not possible. */
export const realPath = (target: string): string => {
  try {
    return fs.realpathSync(target)
  } catch {
    return path.resolve(target)
  }
}

/** The trimmed first line of a small file; `undefined` when there is none. */
const pointer = (file: string): string | undefined => {
  try {
    const stat = fs.statSync(file)
    if (!stat.isFile() || stat.size > MAX_POINTER_BYTES) return undefined
    const text = fs.readFileSync(file, "utf8").split("\n")[0]?.trim()
    return text === "" ? undefined : text
  } catch {
    return undefined
  }
}

const kindOf = (target: string): "file" | "directory" | undefined => {
  try {
    const stat = fs.statSync(target)
    return stat.isDirectory() ? "directory" : stat.isFile() ? "file" : undefined
  } catch {
    return undefined
  }
}

/** The main checkout that a `.git` file in `directory` leads to, or the directory itself. */
const throughFile = (directory: string): string | undefined => {
  const line = pointer(path.join(directory, ".git"))
  const target = line === undefined ? undefined : /^gitdir:\s*(.+)$/.exec(line)?.[1]
  if (target === undefined) return undefined
  const gitDirectory = realPath(path.resolve(directory, target))
  if (kindOf(gitDirectory) !== "directory") return undefined
  const commonText = pointer(path.join(gitDirectory, "commondir"))
  // A submodule or a separate git directory: a repository of its own.
  if (commonText === undefined) return directory
  const common = realPath(path.resolve(gitDirectory, commonText))
  const backText = pointer(path.join(gitDirectory, "gitdir"))
  const back = backText === undefined ? undefined : realPath(path.resolve(gitDirectory, backText))
  const owned = path.dirname(gitDirectory) === path.join(common, "worktrees")
  if (!owned || back !== realPath(path.join(directory, ".git"))) return directory
  return path.basename(common) === ".git" ? path.dirname(common) : common
}

/** The main checkout of the repository around `directory` (links resolved); `undefined` outside git. */
export const gitMainRoot = (directory: string): string | undefined => {
  for (let current = directory; ; current = path.dirname(current)) {
    const git = path.join(current, ".git")
    const kind = kindOf(git)
    if (kind === "directory" && kindOf(path.join(git, "HEAD")) === "file") return current
    if (kind === "file") {
      const root = throughFile(current)
      if (root !== undefined) return root
    }
    if (path.dirname(current) === current) return undefined
  }
}

/** The identity of the project that sigil was started in, an absolute path with links resolved. */
export const projectIdentity = (paths: {
  readonly launchDirectory: string
  readonly home: string
  readonly homeDirectory: string
}): string => {
  const launch = realPath(paths.launchDirectory)
  if (isInside(launch, realPath(paths.home))) return realPath(paths.homeDirectory)
  return gitMainRoot(launch) ?? launch
}

/**
 * Whether a file belongs to the project of this identity: it lies in a checkout of that repository (a linked worktree
 * counts), or, where no repository is, inside the directory. A link has to stand there and to lead there; a file of a
 * nested repository is that repository's.
 */
export const isOfProject = (file: string, identity: string): boolean =>
  [realPath(path.dirname(file)), path.dirname(realPath(file))].every((directory) => {
    const root = gitMainRoot(directory)
    return root === undefined ? isInside(directory, identity) : root === identity
  })

/**
 * Where a project file stands inside its checkout: `` for the top, `sub/dir` below it, the absolute directory outside
 * of any checkout. A worktree has the same places as its main checkout; a copy of a file elsewhere in the repository
 * has another one.
 */
export const placeInProject = (file: string): string => {
  const directory = path.dirname(file)
  for (let at = directory; ; at = path.dirname(at)) {
    if (fs.existsSync(path.join(at, ".git"))) return path.relative(at, directory).split(path.sep).join("/")
    if (path.dirname(at) === at) return directory
  }
}

/**
 * What a sandboxed server sees of the file system: an ordered list of mounts, and whether a path is visible under it.
 *
 * The root is there, read-only. Hidden are the homes of users, /run with its sockets (Docker, D-Bus, user sessions)
 * and the temporary directories, each replaced by an empty one that the server may fill and that goes with it. The
 * workspace comes back on top, then the paths of the settings. Last, whatever else is configured, the directories of
 * sigil itself are covered: a server that can write them decides about its own approval.
 *
 * All paths are real paths, and `SandboxPaths.ts` says which may be shown: a link inside a place that the server can
 * write could be turned between the plan and the start. For the same reason each directory between a writable place and something covered in it is mounted onto
 * itself, because the directory of a mount cannot be renamed.
 *
 * Invariants: a later mount counts over an earlier one of the same place or above it; nothing of sigil's own is
 * visible; a layout that cannot keep that is a fault, never a weaker layout.
 */
import * as Either from "effect/Either"
import * as fs from "node:fs"
import * as path from "node:path"
import { isInside } from "./Containment.ts"
import { type PathsFault, type PathsRequest, shownPaths, trailOf } from "./SandboxPaths.ts"

/** Replaced by empty directories where they exist. */
const hiddenPlaces = ["/home", "/root", "/run", "/var/run", "/tmp", "/var/tmp"]
/** The programs of NixOS stand in /run. */
const systemInRun = ["/run/current-system", "/run/opengl-driver"]
const RESOLVER = "/etc/resolv.conf"

/** What to make a layout for. Absolute paths; the server starts in `cwd`, readable even where it would be hidden. */
export interface LayoutRequest extends PathsRequest {
  readonly network: "denied" | "shared"
  /** Directories that the server's variables name for temporary files. */
  readonly temporary: ReadonlyArray<string>
  /** Directories of sigil, which must exist. */
  readonly privateDirectories: ReadonlyArray<string>
  /** Files of sigil. They are replaced by renames, which take a cover off, so none may stand where one can write. */
  readonly privateFiles: ReadonlyArray<string>
  /** Sockets that act for the user, such as that of an SSH agent. */
  readonly sockets: ReadonlyArray<string>
}

/** `empty`: an empty directory; `cover`: the same, read-only; `pin`: the directory onto itself, as writable as it was. */
export interface Mount {
  readonly kind: "empty" | "directory" | "read" | "write" | "pin" | "cover" | "cover_file"
  readonly path: string
}

/** A layout. */
export interface Layout {
  readonly mounts: ReadonlyArray<Mount>
  /** Real path of the directory to start in. */
  readonly cwd: string
  readonly workspace: string
}

/** Why there is none. */
export interface LayoutFault extends Omit<PathsFault, "reason"> {
  readonly reason: PathsFault["reason"] | "sandbox_exposes_state" | "sandbox_hides_path"
}

/** The mount that decides about a path; none means the read-only root. */
export const mountAt = (mounts: ReadonlyArray<Mount>, target: string): Mount | undefined =>
  mounts.findLast((mount) => isInside(target, mount.path))

/** Whether a path of the host is the same path inside. */
export const isVisible = (mounts: ReadonlyArray<Mount>, target: string): boolean => {
  const mount = mountAt(mounts, target)
  return mount === undefined || mount.kind === "read" || mount.kind === "write" || mount.kind === "pin"
}

const isWritable = (mounts: ReadonlyArray<Mount>, target: string): boolean => {
  const kind = mountAt(mounts, target)?.kind
  return kind === "write" || kind === "pin"
}

const realOf = (target: string): string | undefined => {
  try {
    return fs.realpathSync(target)
  } catch {
    return undefined
  }
}

const isDirectory = (target: string): boolean => {
  try {
    return fs.statSync(target).isDirectory()
  } catch {
    return false
  }
}

/** Real paths of what exists. */
const existing = (targets: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(targets.flatMap((target) => realOf(target) ?? []))
]

/** Directories strictly between two, outermost first. */
const between = (outer: string, inner: string): ReadonlyArray<string> => {
  const up = path.dirname(inner)
  return up === outer || !isInside(up, outer) ? [] : [...between(outer, up), up]
}

/** Directories above a covered one that a server could rename, and the cover with them. */
const pinsFor = (mounts: ReadonlyArray<Mount>, covered: string): ReadonlyArray<string> => {
  const outermost = mounts
    .filter(({ kind, path: place }) => kind === "write" && isInside(covered, place))
    .toSorted(byDepth)[0]
  if (outermost === undefined) return []
  return between(outermost.path, covered).filter(
    (place) => isWritable(mounts, place) && !mounts.some((mount) => mount.path === place)
  )
}

const byDepth = (a: Mount, b: Mount): number => a.path.length - b.path.length

/** Makes the layout. Reads links and looks what exists; changes nothing. */
export const layoutOf = (request: LayoutRequest): Either.Either<Layout, LayoutFault> => {
  const home = realOf(request.homeDirectory)
  const hiding = existing([...hiddenPlaces, request.homeDirectory]).filter((place) => place !== "/")
  const paths = shownPaths(request, hiding)
  if (Either.isLeft(paths)) return Either.left(paths.left)
  const { cwd, workspace, writable } = paths.right

  const mounts: Array<Mount> = []
  for (const place of hiding) {
    if (isVisible(mounts, place) && isDirectory(place)) mounts.push({ kind: "empty", path: place })
  }
  // Programs expect the home directory and that of temporary files to be there, if empty.
  for (const place of existing([request.homeDirectory, ...request.temporary])) {
    if (place === "/" || isInside(place, workspace) || !isDirectory(place)) continue
    if (!isVisible(mounts, place)) mounts.push({ kind: "directory", path: place })
    else if (place !== home && !isInside(workspace, place)) mounts.push({ kind: "empty", path: place })
  }

  const resolver = request.network === "shared" ? [RESOLVER, ...systemInRun] : systemInRun
  const readable = [...new Set([workspace, cwd, ...existing(resolver), ...paths.right.readable])]
  const shown: ReadonlyArray<Mount> = [
    ...readable.filter((place) => !writable.includes(place)).map((place): Mount => ({ kind: "read", path: place })),
    ...writable.map((place): Mount => ({ kind: "write", path: place }))
  ].toSorted(byDepth)
  const before = mounts.length
  for (const mount of shown) {
    // What is readable anyway needs no mount.
    if (mount.kind === "write" || !isVisible(mounts, mount.path)) mounts.push(mount)
  }
  // Before any cover and in the order of depth: a mount takes what is below it along.
  const pins = [...new Set(request.privateDirectories.flatMap((target) => pinsFor(mounts, realOf(target) ?? target)))]
  const back = [...mounts.splice(before), ...pins.map((place): Mount => ({ kind: "pin", path: place }))]
  mounts.push(...back.toSorted(byDepth))

  /** Covers what is visible; false when something could come in its place. */
  const cover = (target: string, kind: "cover" | "cover_file"): boolean => {
    const { links, real } = trailOf(target)
    if (links.some((link) => isWritable(mounts, link))) return false
    // A hidden directory of sigil may hold something that is shown, such as the workspace.
    const partly = back.some((mount) => isInside(mount.path, real))
    if (!partly && !isVisible(mounts, real)) return true
    if (kind === "cover_file" && isWritable(mounts, real)) return false
    if (kind === "cover" || realOf(target) !== undefined) mounts.push({ kind, path: real })
    return true
  }
  const exposed =
    request.privateDirectories.find((target) => !cover(target, "cover")) ??
    request.privateFiles.find((target) => !cover(target, "cover_file"))
  for (const socket of existing(request.sockets))
    if (isVisible(mounts, socket) && !isDirectory(socket)) mounts.push({ kind: "cover_file", path: socket })
  if (exposed !== undefined) {
    return Either.left({
      reason: "sandbox_exposes_state",
      text: `'${exposed}' belongs to sigil and stands, or is to stand, where the server may write.`,
      fix: "Move it out of the workspace and of writable_paths, or set SIGIL_HOME and SIGIL_STATE_HOME to other places."
    })
  }
  const hidden = [workspace, cwd].find((place) => !isVisible(mounts, place))
  if (hidden !== undefined) {
    return Either.left({
      reason: "sandbox_hides_path",
      text: `The directory '${hidden}' stands inside one of sigil's own, which no server may see.`,
      fix: "Start sigil in another directory, or set SIGIL_HOME to another place."
    })
  }
  return Either.right({ mounts, cwd, workspace })
}

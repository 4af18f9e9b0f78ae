/**
 * The paths that a sandbox is to show, resolved, and whether they may be trusted to stay what they are.
 *
 * A server writes to its workspace and to the writable paths. So a symbolic link that stands there says nothing of what
 * the user wants to show: a server, or whoever made the repository, can turn it to the home directory. Links elsewhere
 * are the user's or the system's; the sandbox gets what they lead to, and never the link.
 *
 * Invariants: no path counts that leads through a link in a place of servers; nothing is mounted from below such a
 * place, where a running server could put a link between this look and the mount; no link uncovers a hidden place as a
 * whole. What is not so is a fault, never a path less. Reads links; changes nothing.
 */
import * as Either from "effect/Either"
import * as fs from "node:fs"
import * as path from "node:path"
import { isInside } from "./Containment.ts"

/** As many as Linux follows. */
const MAX_LINKS = 40

/** Where a path leads. */
export interface Trail {
  /** Without a link in it, as far as it exists; the rest as written. */
  readonly real: string
  readonly exists: boolean
  /** Where each link on the way stands: a real directory and a name. */
  readonly links: ReadonlyArray<string>
}

const linkAt = (place: string): string | undefined => {
  try {
    return fs.readlinkSync(place)
  } catch {
    return undefined
  }
}

/** Follows a path, and keeps what `realpath` forgets: the links on the way. */
export const trailOf = (target: string): Trail => {
  const links: Array<string> = []
  const wordsOf = (text: string): ReadonlyArray<string> => text.split("/").filter((word) => word !== "" && word !== ".")
  let words = wordsOf(path.resolve(target))
  let real = "/"
  for (let word = words[0]; word !== undefined; word = words[0]) {
    words = words.slice(1)
    if (word === "..") {
      real = path.dirname(real)
      continue
    }
    const place = path.join(real, word)
    const to = linkAt(place)
    if (to === undefined) {
      real = place
      continue
    }
    links.push(place)
    if (links.length > MAX_LINKS) return { real: path.join(place, ...words), exists: false, links }
    if (path.isAbsolute(to)) real = "/"
    words = [...wordsOf(to), ...words]
  }
  return { real, exists: fs.existsSync(real), links }
}

/** What is to be shown. Absolute paths, but for a leading `~` of the settings. */
export interface PathsRequest {
  readonly workspace: string
  /** The same as the user named it, if by links. */
  readonly workspaceWritten?: string
  readonly workspaceAccess: "writable" | "read-only"
  readonly cwd: string
  readonly homeDirectory: string
  readonly readablePaths: ReadonlyArray<string>
  readonly writablePaths: ReadonlyArray<string>
}

/** Real paths, all of them there. */
export interface ShownPaths {
  readonly workspace: string
  readonly cwd: string
  readonly readable: ReadonlyArray<string>
  /** With the workspace, where it is one of them. */
  readonly writable: ReadonlyArray<string>
}

/** Why they cannot be shown. */
export interface PathsFault {
  readonly reason: "sandbox_too_wide" | "sandbox_path_missing" | "sandbox_path_unsafe"
  readonly text: string
  readonly fix: string
  /** The setting to change, where it is one. */
  readonly field?: string
}

/** One path with its origin. */
interface Named extends Trail {
  readonly field: "execution.readable_paths" | "execution.writable_paths"
  readonly written: string
}

const tooWide = (place: string): PathsFault => ({
  reason: "sandbox_too_wide",
  text: `The directory '${place}' holds your whole home directory, which a sandbox is there to hide.`,
  fix: "Start sigil in the directory of a project, or set [workspace] root in sigil.toml."
})

/** Resolves what is to be shown. `hidden` are the real paths of what a sandbox hides. */
export const shownPaths = (
  request: PathsRequest,
  hidden: ReadonlyArray<string>
): Either.Either<ShownPaths, PathsFault> => {
  const named = (field: Named["field"], targets: ReadonlyArray<string>): ReadonlyArray<Named> =>
    targets.map((written) => {
      const isHome = written === "~" || written.startsWith("~/")
      return { ...trailOf(isHome ? path.join(request.homeDirectory, written.slice(1)) : written), field, written }
    })
  const workspace = trailOf(request.workspace)
  const cwd = trailOf(request.cwd)
  const missing = [workspace, cwd].findIndex(({ exists }) => !exists)
  if (missing !== -1) {
    return Either.left({
      reason: "sandbox_path_missing",
      text: `The directory '${missing === 0 ? request.workspace : request.cwd}' does not exist.`,
      fix: "Create it, or correct cwd."
    })
  }
  const home = trailOf(request.homeDirectory)
  const wide = [workspace.real, cwd.real].find(
    (place) => home.exists && home.real !== "/" && isInside(home.real, place)
  )
  if (workspace.real === "/" || (wide !== undefined && (wide !== "/" || wide === workspace.real)))
    return Either.left(tooWide(wide ?? workspace.real))

  const writable = named("execution.writable_paths", request.writablePaths)
  const readable = named("execution.readable_paths", request.readablePaths)
  const isOpen = request.workspaceAccess === "writable"
  /** Where servers write, now or in a run before; what does not exist yet could come to be. */
  const others = writable.map(({ real }) => real).filter((place) => place !== "/")
  const theirs = [workspace.real, ...others]
  const planted = (links: ReadonlyArray<string>, places: ReadonlyArray<string>): string | undefined =>
    links.find((link) => places.some((place) => isInside(link, place)))

  const faultOf = (entry: Named): PathsFault | undefined => {
    const { field, links, real, written } = entry
    const fault = (reason: PathsFault["reason"], why: string, fix: string): PathsFault => ({
      reason,
      text: `${field} names '${written}', ${why}.`,
      fix,
      field
    })
    const name = field.slice("execution.".length)
    if (real === "/") {
      return fault(
        "sandbox_too_wide",
        "which is the root directory, and that would leave nothing of the sandbox",
        `Name the directories that servers need in ${name} of [execution] in sigil.toml.`
      )
    }
    // That it stands in what it uncovers itself, such as all of /tmp, is the lesser reason.
    const elsewhere = planted(links, [workspace.real, ...others.filter((place) => place !== real)])
    const link = elsewhere ?? planted(links, [real])
    const whole =
      links.length === 0 || elsewhere !== undefined ? undefined : hidden.find((place) => isInside(place, real))
    if (whole !== undefined) {
      return fault(
        "sandbox_too_wide",
        `a symbolic link to '${real}', which holds all of '${whole}' that a sandbox is there to hide`,
        `Name the directories that servers need in ${name} of [execution] in sigil.toml, by their real paths.`
      )
    }
    if (link !== undefined) {
      return fault(
        "sandbox_path_unsafe",
        `which leads to '${real}' through the symbolic link '${link}', and servers can write where that link stands`,
        `Write the real path in ${name} of [execution] in sigil.toml if servers are to have it, or remove the entry or the link.`
      )
    }
    // In the workspace it needs no mount of its own, nor does a writable path in another one.
    if (field === "execution.writable_paths" || (isOpen && isInside(real, workspace.real))) return undefined
    const outer = others.find((place) => place !== real && isInside(real, place))
    return outer === undefined
      ? undefined
      : fault(
          "sandbox_path_unsafe",
          `which stands in the writable '${outer}', where servers can put something else in its place`,
          `Remove it from ${name} of [execution] in sigil.toml, for servers can read it there, or move it elsewhere.`
        )
  }
  for (const entry of [...writable, ...readable]) {
    const fault = faultOf(entry)
    if (fault !== undefined) return Either.left(fault)
  }

  const unsafe = (written: string, why: string, fix: string): Either.Either<never, PathsFault> =>
    Either.left({ reason: "sandbox_path_unsafe", text: `The directory '${written}' ${why}.`, fix })
  const link = planted([...trailOf(request.workspaceWritten ?? request.workspace).links, ...workspace.links], others)
  if (link !== undefined) {
    return unsafe(
      request.workspaceWritten ?? request.workspace,
      `is reached through the symbolic link '${link}', and servers can write where that link stands`,
      "Start sigil in the real directory, or take that place out of writable_paths in [execution] of sigil.toml."
    )
  }
  const outer = others.find((place) => place !== workspace.real && isInside(workspace.real, place))
  if (!isOpen && outer !== undefined) {
    return unsafe(
      request.workspace,
      `is to be read-only and stands in the writable '${outer}', where servers can put something else in its place`,
      "Take that place out of writable_paths in [execution] of sigil.toml, or start sigil in another directory."
    )
  }
  const turned = planted(cwd.links, theirs)
  if (turned !== undefined && !theirs.some((place) => isInside(cwd.real, place))) {
    return unsafe(
      request.cwd,
      `leads to '${cwd.real}' through the symbolic link '${turned}', and servers can write where that link stands`,
      "Set cwd of the server to the real path, or remove the link."
    )
  }

  const real = (entries: ReadonlyArray<Trail>): ReadonlyArray<string> =>
    entries.filter(({ exists }) => exists).map((entry) => entry.real)
  const places = [...new Set([...(isOpen ? [workspace.real] : []), ...real(writable)])]
  const outermost = places.filter((place) => !places.some((other) => other !== place && isInside(place, other)))
  return Either.right({
    workspace: workspace.real,
    cwd: cwd.real,
    readable: [...new Set(real(readable))].filter((place) => !outermost.some((other) => isInside(place, other))),
    writable: outermost
  })
}

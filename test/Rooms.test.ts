/** The order of rooms: a room imports only from rooms above it, and files stay readable. */
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"

const src = path.join(path.dirname(fileURLToPath(import.meta.url)), "..", "src")
const order = [
  "base",
  "platform",
  "protocol",
  "demo",
  "config",
  "policy",
  "audit",
  "telemetry",
  "net",
  "auth",
  "transport",
  "server",
  "tools",
  "builtin",
  "agent",
  "gateway",
  "doctor",
  "runtime",
  "cli",
  "tui"
]
/** Longest file, lines. */
const MAX_LINES = 500
/** Rooms that may start servers or send calls; every face goes through `server` and `tools`. */
const callRooms = new Set(["transport", "server", "runtime"])

interface Import {
  readonly file: string
  readonly room: string
  readonly target: string
  readonly targetRoom: string
  readonly typeOnly: boolean
}

const files = fs
  .readdirSync(src, { recursive: true })
  .map(String)
  .filter((file) => /\.tsx?$/.test(file))

const roomOf = (file: string): string => (file.includes(path.sep) ? (file.split(path.sep)[0] ?? "") : "")

const imports: ReadonlyArray<Import> = files.flatMap((file) => {
  const text = fs.readFileSync(path.join(src, file), "utf8")
  return [...text.matchAll(/(import\s+type\s[^;]*?from|from|import)\s*\(?\s*["'](\.[^"']+)["']/g)].map((match) => {
    const target = path.relative(src, path.resolve(path.dirname(path.join(src, file)), match[2] ?? ""))
    return {
      file,
      room: roomOf(file),
      target,
      targetRoom: roomOf(target),
      typeOnly: match[1]?.includes("type") ?? false
    }
  })
})

describe("Rooms", () => {
  it("has every file in a known room", () => {
    assert.deepEqual(
      files.filter((file) => roomOf(file) !== "" && !order.includes(roomOf(file))),
      []
    )
    assert.isAbove(imports.length, 100)
  })

  it("imports only from rooms above", () => {
    const upward = imports.filter(
      ({ room, targetRoom }) => room !== "" && (targetRoom === "" || order.indexOf(targetRoom) > order.indexOf(room))
    )
    assert.deepEqual(upward, [])
  })

  it("lets nothing import the faces, and the demo server nothing but the ground", () => {
    const wrong = imports.filter(
      ({ room, targetRoom }) =>
        (targetRoom === "cli" && room !== "cli" && room !== "") ||
        (targetRoom === "tui" && room !== "tui" && room !== "") ||
        (targetRoom === "demo" && room !== "demo") ||
        (room === "demo" && !["demo", "base", "protocol"].includes(targetRoom))
    )
    assert.deepEqual(wrong, [])
  })

  it("opens transports and sends requests in one place only", () => {
    const around = imports.filter(
      ({ file, room, target, typeOnly }) =>
        !typeOnly &&
        !callRooms.has(room) &&
        (target.startsWith(`transport${path.sep}`) ||
          target === path.join("server", "Generation.ts") ||
          target === path.join("server", "Connection.ts")) &&
        file !== "index.ts"
    )
    assert.deepEqual(around, [])
  })

  it(`keeps every file under ${MAX_LINES} lines`, () => {
    const long = files.filter((file) => fs.readFileSync(path.join(src, file), "utf8").split("\n").length > MAX_LINES)
    assert.deepEqual(long, [])
  })
})

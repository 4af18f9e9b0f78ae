// Declarations of the library: emits them with TypeScript, keeps what src/index.ts reaches, and names files as a
// package has them. A type of a bundled package could not be resolved by users, so an import of one is a failure.
//
// usage: node scripts/declarations.mjs DIRECTORY
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "..")
const out = path.resolve(process.argv[2] ?? path.join(root, "dist", "lib"))
/** What users have: the peers and Node's own types. */
const known = /^(?:effect|@effect\/[\w-]+)(?:\/|$)|^node:/
const specifier = /(\bfrom |\bimport\(|^import )"([^"]+)"/gm

const tsc = path.join(root, "node_modules", "typescript", "bin", "tsc")
const emitted = spawnSync(process.execPath, [tsc, "-p", path.join(root, "tsconfig.lib.json"), "--outDir", out], {
  stdio: ["ignore", "inherit", "inherit"]
})
if (emitted.status !== 0) process.exit(1)

const reached = new Set()
const waiting = [path.join(out, "index.d.ts")]
for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
  if (reached.has(file)) continue
  reached.add(file)
  const text = readFileSync(file, "utf8").replace(specifier, (whole, before, name) => {
    if (!name.startsWith(".")) {
      if (known.test(name)) return whole
      console.error(`${path.relative(out, file)}: the public types must not need the package '${name}'`)
      process.exitCode = 1
      return whole
    }
    waiting.push(path.resolve(path.dirname(file), name.replace(/\.ts$/, ".d.ts")))
    return `${before}"${name.replace(/\.ts$/, ".js")}"`
  })
  writeFileSync(file, text)
}
for (const entry of readdirSync(out, { recursive: true })) {
  const file = path.join(out, String(entry))
  if (file.endsWith(".d.ts") && !reached.has(file)) rmSync(file)
}
for (const entry of readdirSync(out, { withFileTypes: true })) {
  const directory = path.join(out, entry.name)
  if (entry.isDirectory() && readdirSync(directory).length === 0) rmdirSync(directory)
}

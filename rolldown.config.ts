/**
 * The builds, both code-split ESM for Node: the command with everything but Node's own modules inside, and the
 * library (`dist/lib`) with `effect` and `@effect/*` left out, because a program must have one copy of them.
 *
 * `bin.js` is the command, `demo-server.js` the server for a first run. Handlers are behind `import()` and
 * become chunks of their own, so a command loads only what it runs.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { defineConfig } from "rolldown"

const root = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname)
const source = (file: string): string => path.join(root, "src", file)
const demo = source("demo/Server.ts")

/** Options of the command's build; `dir` is where the output goes. */
export const options = (dir: string) =>
  defineConfig({
    input: {
      bin: source("bin.ts"),
      ...(fs.existsSync(demo) ? { "demo-server": demo } : {})
    },
    platform: "node",
    external: /^node:/,
    // Packages that ship both forms are taken as ES modules: the UMD form of some hides its requires from bundlers.
    resolve: { mainFields: ["module", "main"] },
    transform: { define: { "process.env.NODE_ENV": JSON.stringify("production") }, target: "node20" },
    output: {
      dir,
      format: "esm",
      minify: true,
      entryFileNames: "[name].js",
      chunkFileNames: "chunks/[name]-[hash].js"
    },
    plugins: [
      {
        name: "executable",
        writeBundle: ({ dir: out }) => {
          if (out !== undefined) fs.chmodSync(path.join(out, "bin.js"), 0o755)
        }
      }
    ]
  })

/** Options of the library's build. `scripts/declarations.mjs` puts the types beside it. */
export const library = (dir: string) =>
  defineConfig({
    input: { index: source("index.ts") },
    platform: "node",
    external: [/^node:/, /^effect(?:\/|$)/, /^@effect\//],
    resolve: { mainFields: ["module", "main"] },
    transform: { target: "node20" },
    output: { dir, format: "esm", entryFileNames: "[name].js", chunkFileNames: "chunks/[name]-[hash].js" }
  })

export default [options(path.join(root, "dist")), library(path.join(root, "dist", "lib"))]

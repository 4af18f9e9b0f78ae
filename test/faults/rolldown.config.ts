/** Bundles the fault run like the command itself, so that it runs under plain Node. */
import * as path from "node:path"
import { defineConfig } from "rolldown"
import { options } from "../../rolldown.config.ts"

const here = path.dirname(new URL(import.meta.url).pathname)

export default defineConfig({
  ...options(path.join(here, "build")),
  input: { faults: path.join(here, "Main.ts") },
  plugins: []
})

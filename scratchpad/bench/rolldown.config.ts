/** Bundles the measured host like the command itself. */
import * as path from "node:path"
import { defineConfig } from "rolldown"
import { options } from "../../rolldown.config.ts"

const here = path.dirname(new URL(import.meta.url).pathname)

export default defineConfig({
  ...options(path.join(here, "build")),
  input: {
    fleet: path.join(here, "Fleet.ts"),
    host: path.join(here, "Host.ts"),
    redaction: path.join(here, "Redaction.ts"),
    remote: path.join(here, "RemoteHost.ts")
  },
  plugins: []
})

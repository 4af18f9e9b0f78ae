/** Bundles a TypeScript program of the tests into one file that plain Node runs, for tests with real hosts. */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { rolldown } from "rolldown"

const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname)

/** A bundled program. */
export interface Bundled {
  readonly file: string
  readonly remove: () => void
}

/** Bundles `support/<name>.ts`. */
export const bundle = async (name: string): Promise<Bundled> => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-bundle-"))
  const build = await rolldown({
    input: path.join(here, `${name}.ts`),
    platform: "node",
    external: /^node:/,
    logLevel: "silent"
  })
  const file = path.join(folder, `${name}.mjs`)
  await build.write({ file, format: "esm", codeSplitting: false })
  await build.close()
  return { file, remove: () => fs.rmSync(folder, { recursive: true, force: true }) }
}

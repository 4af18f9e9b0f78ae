/** Bundles a program of these tests; kept apart so that no program bundles the bundler. */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { rolldown } from "rolldown"

const here = path.dirname(fileURLToPath(import.meta.url))

/** Bundles `support/<name>.ts` into a file that plain Node runs. */
export const bundle = async (name: string): Promise<{ readonly file: string; readonly remove: () => void }> => {
  const at = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-bundle-"))
  const build = await rolldown({
    input: path.join(here, `${name}.ts`),
    platform: "node",
    external: /^node:/,
    logLevel: "silent"
  })
  const file = path.join(at, `${name}.mjs`)
  await build.write({ file, format: "esm", codeSplitting: false })
  await build.close()
  return { file, remove: () => fs.rmSync(at, { recursive: true, force: true }) }
}

/** Builds the command once per test run; tests of the built command read its place from the environment. */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { rolldown } from "rolldown"
import { options } from "../../rolldown.config.ts"

export default async function setup(): Promise<() => void> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "sigil-build-"))
  const { output, ...input } = options(directory)
  const bundle = await rolldown(input)
  await bundle.write(Array.isArray(output) ? output[0] : output)
  await bundle.close()
  process.env["SIGIL_TEST_BUILD"] = directory
  return () => fs.rmSync(directory, { recursive: true, force: true })
}

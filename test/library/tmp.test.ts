import { it } from "vitest"
import { makeConsumer, tool } from "./Consumer.ts"
import * as fs from "node:fs"
it("x", async () => {
  const c = await makeConsumer()
  const checked = await c.node([tool("typescript/bin/tsc"), "-p", c.root])
  console.log(checked)
  for (const f of fs.readdirSync(c.root + "/out")) console.log(f, await c.node([c.root + "/out/" + f]))
  console.log(await c.node([tool("publint/src/cli.js"), "run", c.tarball, "--strict"]))
  console.log(await c.node([tool("@arethetypeswrong/cli/dist/index.js"), c.tarball, "--profile", "esm-only", "--exclude-entrypoints", "./demo-server", "--no-emoji", "--no-color"]))
  console.log(c.root)
}, 120000)

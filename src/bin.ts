#!/usr/bin/env node
/**
 * The executable. `sigil --version` is answered before anything else is loaded, because it must cost about as
 * much as an empty program; all other code is behind the import.
 */
import { VERSION } from "./base/Version.ts"

const argv = process.argv.slice(2)

if (argv.length === 1 && argv[0] === "--version") {
  process.stdout.write(`${VERSION}\n`)
} else {
  const { main } = await import("./cli/Main.ts")
  main(argv)
}

import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Need shells that not every machine has: `npm run test:shells`.
    exclude: process.env["SIGIL_TEST_SHELLS"] === "1" ? [] : ["test/shells/**"],
    globalSetup: ["test/support/GlobalBuild.ts"],
    // Two cores: real processes and sockets in the tests are steadier with two workers.
    maxWorkers: 2,
    minWorkers: 1,
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})

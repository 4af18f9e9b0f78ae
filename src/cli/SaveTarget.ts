/** Where `--save FILE` points. */
import * as Effect from "effect/Effect"
import * as path from "node:path"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import { usage } from "./UsageError.ts"

/** The file as an absolute path; an empty name is refused as a usage error of the command. */
export const saveTarget = (file: string, command: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    if (file === "") return yield* usage(command, "--save needs the name of a file.")
    const { cwd } = yield* HostEnvironment
    return path.resolve(cwd, file)
  })

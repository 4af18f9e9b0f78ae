/** Where `--save FILE` points, and what of a result goes there. */
import * as Effect from "effect/Effect"
import * as path from "node:path"
import type { JsonObject } from "../base/Json.ts"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import { checkTarget, writeBytes } from "../platform/SaveFile.ts"
import { noLimits, onlyBinary, show } from "../tools/Result.ts"
import { Output } from "./Output.ts"
import { usage } from "./UsageError.ts"

/**
 * The file as an absolute path, or `undefined` without the option. Asked before the work is done: what has run once
 * must not have to run again for its result. An empty name is refused as a usage error of the command.
 */
export const saveTarget = (file: string | undefined, command: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    if (file === undefined) return undefined
    if (file === "") return yield* usage(command, "--save needs the name of a file.")
    const { cwd } = yield* HostEnvironment
    const target = path.resolve(cwd, file)
    yield* checkTarget(target)
    return target
  })

/** Writes bytes to a checked target, and says so. */
export const saveBytes = (target: string, bytes: Uint8Array) =>
  Effect.gen(function* () {
    const output = yield* Output
    yield* writeBytes(target, bytes)
    yield* output.note(`Saved ${bytes.length} bytes to ${target}`)
  })

/** Saves a result: its only binary block as bytes, otherwise its whole text. */
export const saveResult = (target: string, result: JsonObject) =>
  Effect.gen(function* () {
    const binary = onlyBinary(result)
    if (binary !== undefined) return yield* saveBytes(target, binary)
    const whole = yield* show(result, { limits: noLimits, escape: false, keep: () => Effect.succeed(undefined) })
    return yield* saveBytes(target, Buffer.from(whole.text))
  })

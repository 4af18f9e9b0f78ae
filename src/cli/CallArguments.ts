/** The arguments of `mcp call`: words, `--args`, standard input; files and artifacts are read here. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as path from "node:path"
import { isJsonObject, type Json, type JsonObject } from "../base/Json.ts"
import { readText } from "../platform/AtomicFile.ts"
import { HostEnvironment } from "../platform/HostEnvironment.ts"
import { Terminal } from "../platform/Terminal.ts"
import { parse } from "../protocol/Codec.ts"
import { Artifacts } from "../tools/Artifacts.ts"
import { CallRefused } from "../tools/CallRefused.ts"
import type { CatalogTool } from "../tools/Catalog.ts"
import { coerce, readWord, type Word } from "../tools/Coerce.ts"
import { UsageError } from "./UsageError.ts"

const bad = (text: string, fix?: string): UsageError =>
  new UsageError({
    code: "SIGIL_ARGUMENTS_INVALID",
    reason: "invalid_input",
    text,
    fix,
    where: { operation: "arguments" }
  })

const objectFrom = (text: string, source: string): Effect.Effect<JsonObject, UsageError> =>
  Effect.suspend(() => {
    let value: Json
    try {
      value = parse(text)
    } catch (error) {
      const detail = error instanceof Error ? error.message.slice(0, 200) : ""
      return bad(`${source} is not JSON: ${detail}`, `Give one JSON object, e.g. --args '{"path":"/tmp"}'.`)
    }
    return isJsonObject(value) ? Effect.succeed(value) : bad(`${source} is JSON, but not an object.`)
  })

const readFile = (file: string) =>
  Effect.gen(function* () {
    const host = yield* HostEnvironment
    const text = yield* readText(path.resolve(host.cwd, file))
    return text ?? (yield* bad(`There is no file '${file}'.`))
  })

/** A word with its file or artifact read. */
interface Read {
  readonly key: string
  readonly text: string
  readonly json: boolean
}

const readOne = (word: Word) =>
  Effect.gen(function* () {
    switch (word._tag) {
      case "Text":
        return { key: word.key, text: word.text, json: false } satisfies Read
      case "Json":
        return { key: word.key, text: word.text, json: true } satisfies Read
      case "File":
        return { key: word.key, text: yield* readFile(word.file), json: false } satisfies Read
      case "Artifact": {
        const bytes = yield* Effect.flatMap(Artifacts, (artifacts) => artifacts.read(word.handle))
        return { key: word.key, text: Buffer.from(bytes).toString("utf8"), json: false } satisfies Read
      }
    }
  })

/** Makes the arguments once the tool is known: coercion needs its schema. */
export type MakeArguments = (tool: CatalogTool) => Effect.Effect<JsonObject, CallRefused>

/** Reads everything that does not depend on the tool; what comes back only coerces. */
export const readArguments = (input: { readonly words: ReadonlyArray<string>; readonly args: string | undefined }) =>
  Effect.gen(function* () {
    const { words, args } = input
    const stdin = words.includes("-")
    if ([words.length > 0, args !== undefined].filter(Boolean).length > 1) {
      return yield* bad("Give the arguments as words, with --args, or on standard input with '-': only one of them.")
    }
    if (stdin && words.length > 1)
      return yield* bad("'-' reads all arguments from standard input; no other words may stand beside it.")
    if (stdin) {
      const terminal: Context.Tag.Service<typeof Terminal> = yield* Terminal
      const whole = yield* objectFrom(yield* terminal.readStdin, "Standard input")
      return ((): Effect.Effect<JsonObject> => Effect.succeed(whole)) satisfies MakeArguments
    }
    if (args !== undefined) {
      const file = args.startsWith("@") ? args.slice(1) : undefined
      const whole = yield* objectFrom(
        file === undefined ? args : yield* readFile(file),
        file === undefined ? "--args" : `The file '${file}'`
      )
      return ((): Effect.Effect<JsonObject> => Effect.succeed(whole)) satisfies MakeArguments
    }
    const read: Array<Read> = []
    for (const word of words) {
      const known = readWord(word)
      if (known === undefined)
        return yield* bad(`'${word.slice(0, 64)}' is no argument; write key=value, key:=JSON or key=@FILE.`)
      if (read.some(({ key }) => key === known.key)) return yield* bad(`The argument '${known.key}' is given twice.`)
      read.push(yield* readOne(known))
    }
    const make: MakeArguments = (tool) =>
      Effect.gen(function* () {
        const entries: Array<readonly [string, Json]> = []
        for (const word of read) {
          const value = coerce(word, tool.inputSchema)
          if (Either.isLeft(value)) {
            const { key, expectation, candidates } = value.left
            return yield* CallRefused.misfit(tool, [{ path: `/${key}`, expectation, keyword: "key" }], candidates)
          }
          entries.push([word.key, value.right])
        }
        // From entries, so that a key named `__proto__` is data.
        return Object.fromEntries(entries)
      })
    return make
  })

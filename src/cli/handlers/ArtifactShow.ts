/** `sigil artifact show`: text on stdout, anything else as a file. */
import * as Effect from "effect/Effect"
import { isUtf8 } from "node:buffer"
import { Artifacts } from "../../tools/Artifacts.ts"
import type { Input } from "../commands/ArtifactShow.ts"
import type { Handler } from "../Handler.ts"
import * as KeptResults from "../KeptResults.ts"
import { Output } from "../Output.ts"
import { saveBytes, saveTarget } from "../SaveTarget.ts"

/** The handler. */
export const handler: Handler<Input> = ({ args, options }) =>
  Effect.gen(function* () {
    const output = yield* Output
    const artifacts = yield* Artifacts
    const bytes = Buffer.from(yield* artifacts.read(args.handle))
    const stored = (yield* artifacts.list).find(({ handle }) => handle === args.handle)
    const file = stored?.path ?? ""
    const text = isUtf8(bytes) && !bytes.includes(0) ? bytes.toString("utf8") : undefined
    const target = yield* saveTarget(options.save, ["artifact", "show"])
    const shown = target === undefined ? text : undefined
    yield* output.document("artifact", {
      schema: "sigil.artifact/1",
      handle: args.handle,
      path: file,
      bytes: bytes.length,
      ...(shown === undefined ? {} : { text: shown })
    })
    if (target !== undefined) yield* saveBytes(target, bytes)
    else if (text === undefined) yield* output.text([`Binary content, ${bytes.length} bytes: ${file}`])
    else yield* output.block(text)
    return 0
  }).pipe(Effect.provide(KeptResults.layer))

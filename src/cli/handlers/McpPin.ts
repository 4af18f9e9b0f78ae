/** `sigil mcp pin`: starts a server once and writes what it is into the entry that declares it (spec section 12). */
import * as Effect from "effect/Effect"
import { type EditTarget, pinServer, targetOf } from "../../config/Edit.ts"
import { Locations } from "../../config/Locations.ts"
import type { ServerDeclaration } from "../../config/ServerDeclaration.ts"
import { PLACEHOLDER } from "../../policy/SecretSearch.ts"
import * as Sigil from "../../runtime/Sigil.ts"
import { Registry } from "../../server/Registry.ts"
import type { Input } from "../commands/McpPin.ts"
import { finish, orFail } from "../Finish.ts"
import type { Handler } from "../Handler.ts"
import { Output } from "../Output.ts"
import { rowOf, runtimeOptions, snapshot } from "../Session.ts"
import { UsageError } from "../UsageError.ts"
import { whileWaiting } from "../Waiting.ts"

/** The file to edit; a source that sigil does not edit is a failure before anything is started. */
const targetFor = (declaration: ServerDeclaration) =>
  Effect.gen(function* () {
    const locations = yield* Locations
    const facts = yield* snapshot
    const { name, scope, source } = declaration
    if (scope !== "project" && scope !== "user" && scope !== "local") {
      return yield* new UsageError({
        code: "SIGIL_USAGE",
        reason: "not_editable",
        text: `The server '${name}' comes from ${scope === "cli" ? "--mcp-config" : `scope ${scope}`}, which sigil does not edit.`,
        fix: `Declare it in a file of your own to pin it: ${locations.sigilToml}.`,
        where: { server: name, file: source.file }
      })
    }
    const settings = source.file === locations.settingsJson
    const target: EditTarget = { ...targetOf(scope, locations, { ...facts, settings }), file: source.file }
    return target
  })

/** The handler. */
export const handler: Handler<Input> = ({ args }) =>
  Effect.gen(function* () {
    const run = yield* runtimeOptions
    return yield* Effect.gen(function* () {
      const output = yield* Output
      const registry = yield* Registry
      const { name } = args
      const { entry } = yield* rowOf(name)
      if (entry._tag === "Broken") return yield* entry.broken.error
      const { declaration } = entry
      const target = yield* targetFor(declaration)
      const generation = yield* orFail(
        registry,
        whileWaiting(() => `starting ${name}…`, registry.activate(name, { observePin: true }))
      )
      const pinned = {
        transport_fingerprint: generation.launchFingerprint ?? "",
        protocol_version: generation.revision.version,
        server_name: generation.info.name,
        server_version: generation.info.version
      }
      // What was hidden in its name cannot be compared later.
      if (Object.values(pinned).some((value) => value.includes(PLACEHOLDER))) {
        yield* finish(registry, 4)
        return yield* new UsageError({
          code: "SIGIL_SECRET_BLOCKED",
          reason: "identity_holds_secret",
          text: `The server '${name}' names itself with a secret that it was granted, so nothing was written.`,
          where: { server: name }
        })
      }
      const changed = yield* orFail(registry, pinServer(target, name, pinned))
      const notes = [
        ...(changed ? [] : ["It was pinned to exactly this already; the file did not change."]),
        ...(declaration.scope === "project" && changed
          ? [`Its entry changed, so it is pending again: sigil mcp approve ${name}`]
          : [])
      ]
      yield* output.document("change", {
        schema: "sigil.mcp.change/1",
        action: "pin",
        name,
        scope: declaration.scope,
        file: target.file,
        effective: "next_start",
        notes
      })
      yield* output.text([
        `Pinned '${name}' in scope ${declaration.scope}: ${target.file}`,
        `  launch    ${pinned.transport_fingerprint}`,
        `  protocol  ${pinned.protocol_version}`,
        `  server    ${pinned.server_name} ${pinned.server_version}`,
        ...notes,
        "It takes effect at the next start."
      ])
      return yield* finish(registry, 0)
    }).pipe(Effect.provide(Sigil.layer(run)))
  })

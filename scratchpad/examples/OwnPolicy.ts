/** One part replaced: secrets that know the keys of a vault, so that no server can show or be sent one. */
import { Console, Effect, Layer } from "effect"
import { headless, HostEnvironmentLive, Pipeline, Secrets, SecretsLive, Sigil, toolServer } from "sigil"

/** Stands for a vault. */
const keysOfTheVault = Effect.succeed(["s3cr3t-of-the-vault"])

const SecretsOfTheVault = Layer.effect(
  Secrets,
  Effect.gen(function* () {
    const secrets = yield* Secrets
    yield* secrets.register(yield* keysOfTheVault)
    return secrets
  })
).pipe(Layer.provide(SecretsLive))

const echo = toolServer({
  tools: {
    leak: {
      description: "Says what it should not.",
      inputSchema: { type: "object" },
      run: () => Effect.succeed("the key is s3cr3t-of-the-vault")
    },
    take: {
      description: "Takes anything.",
      inputSchema: { type: "object" },
      run: () => Effect.succeed("thank you")
    }
  }
})
const options = { strict: true, servers: { echo: { inProcess: echo, trust: { approvalDefault: "allow" } } } } as const

// What is provided first is what the core works with.
const layer = Sigil.layerCore.pipe(
  Layer.provide(SecretsOfTheVault),
  Layer.provide(Sigil.layerTransport(options)),
  Layer.provide(Sigil.layerParts(options)),
  Layer.provide(HostEnvironmentLive)
)

const program = Effect.gen(function* () {
  const pipeline = yield* Pipeline
  const call = (name: string, args: { readonly [key: string]: string }) =>
    pipeline.call(headless("example"), { server: "echo", tool: name, args })
  const { result } = yield* call("leak", {})
  yield* Console.log(JSON.stringify(result["content"]))
  const refused = yield* Effect.flip(call("take", { key: "s3cr3t-of-the-vault" }))
  yield* Console.log(refused.code)
})

await Effect.runPromise(Effect.provide(program, layer))

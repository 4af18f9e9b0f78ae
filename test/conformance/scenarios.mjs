// What each client scenario of the official suite needs sigil to do, over the public library alone.
//
// A scenario is `{ content?, run }`: `content` is what the person of the scenario answers to forms, `run` the
// operations. Nothing here speaks the protocol or knows an era: what the suite checks is sigil's own doing.
import { Effect } from "effect"
import { Pipeline, Surfaces } from "../../dist/lib/index.js"

/** Name of the declared server. */
export const SERVER = "conformance"

const tools = Effect.flatMap(Pipeline, (pipeline) => pipeline.tools(SERVER))
const call = (caller, tool, args) =>
  Effect.flatMap(Pipeline, (pipeline) => pipeline.call(caller, { server: SERVER, tool, args }))
const listThen =
  (...calls) =>
  ({ caller }) =>
    Effect.zipRight(
      tools,
      Effect.forEach(calls, ([tool, args]) => call(caller, tool, args), { discard: true })
    )

/** An argument for every required property that is a string, number or boolean. */
const argumentsFor = ({ inputSchema }) =>
  Object.fromEntries(
    (inputSchema.required ?? []).map((name) => {
      const { type } = inputSchema.properties?.[name] ?? {}
      return [name, type === "number" || type === "integer" ? 1 : type === "boolean" ? true : "text"]
    })
  )

/** Each operation that has headers of its own: call, read, get. */
const everySurface = ({ caller }) =>
  Effect.gen(function* () {
    const surfaces = yield* Surfaces
    for (const tool of yield* tools) if (tool.status === "available") yield* call(caller, tool.name, argumentsFor(tool))
    const resources = yield* surfaces.list(caller, { server: SERVER, kind: "resources" })
    for (const { uri } of resources.items) yield* surfaces.read(caller, { server: SERVER, uri })
    const prompts = yield* surfaces.list(caller, { server: SERVER, kind: "prompts" })
    for (const prompt of prompts.items) {
      const args = Object.fromEntries(
        (prompt.arguments ?? []).filter(({ required }) => required === true).map(({ name }) => [name, "text"])
      )
      yield* surfaces.prompt(caller, { server: SERVER, name: prompt.name, args })
    }
  })

/** The tools that sigil lets through; those with annotations it must refuse are the subject of the scenario. */
const everyToolLeft = ({ caller }) =>
  Effect.gen(function* () {
    for (const { name, status } of yield* tools)
      if (status === "available") yield* call(caller, name, { region: "us-west1" })
  })

const schemaEcho = ({ caller }) =>
  Effect.gen(function* () {
    const listed = yield* tools
    const subject = listed.find(({ name }) => name === "json_schema_2020_12_tool")
    if (subject === undefined) return yield* Effect.dieMessage("the tool json_schema_2020_12_tool is not listed")
    return yield* call(caller, "json_schema_echo", { schema: subject.inputSchema })
  })

const fromContext = ({ caller, context }) =>
  listThen(...context.toolCalls.map(({ name, arguments: args }) => [name, args]))({ caller })

const signIn = { run: listThen(["test-tool", {}]) }
const signInList = { run: () => tools }

/** These servers offer nothing, which sigil refuses, strict as every explicit start is, after all messages were sent. */
const handshakeOnly = Effect.catchIf(
  tools,
  ({ code }) => code === "SIGIL_ZERO_SURFACE",
  () => Effect.void
)

/** By the suite's own names. */
export const scenarios = {
  initialize: { run: () => handshakeOnly },
  tools_call: { run: listThen(["add_numbers", { a: 5, b: 3 }]) },
  // The defaults of the form are sigil's to fill in.
  "elicitation-sep1034-client-defaults": { content: {}, run: listThen(["test_client_elicitation_defaults", {}]) },
  "sse-retry": { run: listThen(["test_reconnection", {}]) },
  "request-metadata": { run: () => handshakeOnly },
  "http-standard-headers": { run: everySurface },
  "http-custom-headers": { run: fromContext },
  "http-invalid-tool-headers": { run: everyToolLeft },
  "sep-2322-client-request-state": {
    content: { confirmed: true },
    run: listThen(
      ["test_mrtr_echo_state", {}],
      ["test_mrtr_unrelated", {}],
      ["test_mrtr_no_state", {}],
      ["test_mrtr_no_result_type", {}]
    )
  },
  "json-schema-ref-no-deref": { run: () => tools },
  "json-schema-2020-12-preservation": { run: schemaEcho },
  ...Object.fromEntries(
    [
      "metadata-default",
      "metadata-var1",
      "metadata-var2",
      "metadata-var3",
      "basic-cimd",
      "scope-from-www-authenticate",
      "scope-from-scopes-supported",
      "scope-omitted-when-undefined",
      "scope-step-up",
      "token-endpoint-auth-basic",
      "token-endpoint-auth-post",
      "token-endpoint-auth-none",
      "pre-registration",
      "offline-access-scope",
      "offline-access-not-supported",
      "authorization-server-migration",
      "iss-supported",
      "iss-not-advertised",
      "enterprise-managed-authorization",
      "dpop",
      "dpop-nonce"
    ].map((name) => [`auth/${name}`, signIn])
  ),
  ...Object.fromEntries(
    [
      "scope-retry-limit",
      "resource-mismatch",
      "metadata-issuer-mismatch",
      "iss-supported-missing",
      "iss-wrong-issuer",
      "iss-unexpected",
      "iss-normalized",
      "client-credentials-jwt",
      "client-credentials-basic",
      "wif-jwt-bearer"
    ].map((name) => [`auth/${name}`, signInList])
  )
}

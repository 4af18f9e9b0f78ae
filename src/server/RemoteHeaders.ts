/**
 * The headers of a remote server with their values, checked as R section 1.4 demands of every run.
 *
 * What the file says was checked when it was read; values of variables are known only now. Nothing is resolved or
 * dialled before all of them are fit to be sent. No message repeats a value: it names the header and the variable.
 */
import type * as Context from "effect/Context"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import { KIB } from "../base/Units.ts"
import { variablesOf } from "../config/Expansion.ts"
import { childPath } from "../config/Located.ts"
import { grantsOf, type RemoteEndpoint, type ServerDeclaration } from "../config/ServerDeclaration.ts"
import type { HostEnvironment } from "../platform/HostEnvironment.ts"
import type { RemotePlan } from "../transport/Transport.ts"
import { credentialOf, isPublic } from "./ChildEnvironment.ts"
import { AdmissionError } from "./ServerError.ts"

/** Most bytes of all names and values together (R section 1.4). */
const MAX_HEADER_BYTES = 32 * KIB

/** Headers that belong to the transport, the larger set of R section 1.4, and those of the protocol's own (2026-07-28). */
const ownedHeaders = new Set([
  "accept",
  "connection",
  "content-length",
  "content-type",
  "cookie",
  "expect",
  "host",
  "keep-alive",
  "last-event-id",
  "mcp-method",
  "mcp-name",
  "mcp-protocol-version",
  "mcp-session-id",
  "origin",
  "proxy-authorization",
  "referer",
  "set-cookie",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent"
])
const isOwned = (name: string): boolean => ownedHeaders.has(name) || /^(?:mcp-param-|sec-)/.test(name)

/** Whether a header of this name carries a credential (R section 1.4, the rule of the run). */
export const isCredentialHeader = (name: string): boolean => {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, "")
  return plain === "authorization" || /apikey|token|secret|credential/.test(plain)
}

/** What a remote server is sent with every request. */
export interface RemoteHeaders {
  readonly headers: RemotePlan["headers"]
  /** Values that must never be shown or sent to others. */
  readonly secrets: ReadonlyArray<string>
  /** Variables named by `env_http_headers` and `bearer_token_env_var`; sorted, unique. */
  readonly grants: ReadonlyArray<string>
}

/** One header before it is known to be fit. */
interface Candidate {
  readonly name: string
  /** Path in the entry, for messages. */
  readonly field: string
  /** Absent where its variables are not set. */
  readonly value: string | undefined
  /** Variables that the value is made of. */
  readonly variables: ReadonlyArray<string>
  /** Of these, the ones that are not set. */
  readonly missing: ReadonlyArray<string>
  readonly credential: boolean
  /** Whether the value may be shown, since all its variables are public. */
  readonly open: boolean
}

/** What is wrong with a header, without its value. */
const faultOf = ({ name, value, variables }: Candidate, isUtf8: (name: string) => boolean): string | undefined => {
  if (isOwned(name.toLowerCase())) return "sigil sets or withholds this header itself; remove it"
  if (value === undefined) return undefined
  const from = variables.length === 0 ? "" : ` (from ${variables.join(", ")})`
  const broken = variables.find((variable) => !isUtf8(variable))
  if (broken !== undefined) return `the value of ${broken} is not valid UTF-8`
  if (value.trim() === "") return `the value is empty${from}`
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(value)) return `the value holds a line break or another control character${from}`
  // A header is sent in Latin-1; anything else has no agreed form.
  if (/[\u0100-\uffff]/.test(value)) return `the value holds a character that a header cannot carry${from}`
  return undefined
}

const candidatesOf = (
  declaration: Pick<ServerDeclaration, "endpoint" | "plugin">,
  expanded: RemoteEndpoint,
  unset: ReadonlyArray<string>,
  host: Pick<Context.Tag.Service<typeof HostEnvironment>, "get">
): ReadonlyArray<Candidate> => {
  const uses = variablesOf(declaration)
  const isOpen = (names: ReadonlyArray<string>): boolean =>
    names.every((name) => isPublic(name, host.get(name) ?? "", []))
  const written = Object.entries(expanded.headers).map(([name, value]): Candidate => {
    const place = childPath("headers", name)
    const variables = [...new Set(uses.flatMap((use) => (use.field === place ? [use.name] : [])))]
    const secret = isCredentialHeader(name)
    return {
      name,
      field: place,
      value,
      variables,
      // `missing_env = "literal"` leaves templates as they are; a template is no credential.
      missing: secret ? variables.filter((variable) => unset.includes(variable)) : [],
      credential: secret || variables.length > 0,
      open: !secret && isOpen(variables)
    }
  })
  const read = (name: string, field: string, variable: string, prefix = ""): Candidate => {
    const value = host.get(variable)
    const text = value === undefined ? undefined : value.trim() === "" ? "" : `${prefix}${value}`
    return {
      name,
      field,
      value: text,
      variables: [variable],
      missing: value === undefined ? [variable] : [],
      credential: true,
      open: !isCredentialHeader(name) && isOpen([variable])
    }
  }
  const { bearerTokenEnvVar } = expanded
  return [
    ...written,
    ...Object.entries(expanded.envHeaders).map(([name, variable]) =>
      read(name, childPath("env_http_headers", name), variable)
    ),
    ...(bearerTokenEnvVar === undefined
      ? []
      : [read("Authorization", "bearer_token_env_var", bearerTokenEnvVar, "Bearer ")])
  ]
}

/**
 * Resolves the headers of an entry whose templates are filled in.
 *
 * Fails with `SIGIL_MISSING_GRANT` naming every variable that is not set (reason `authentication_required` when one of
 * them is for a credential, else `configuration_invalid`), or with `SIGIL_CONFIG_INVALID` naming every unfit header.
 */
export const resolve = (
  declaration: Pick<ServerDeclaration, "name" | "source" | "endpoint" | "plugin">,
  expanded: RemoteEndpoint,
  unset: ReadonlyArray<string>,
  host: Context.Tag.Service<typeof HostEnvironment>
): Either.Either<RemoteHeaders, AdmissionError> => {
  const { name: server, source } = declaration
  const candidates = candidatesOf(declaration, expanded, unset, host)
  const refuse = (
    fields: Pick<AdmissionError, "code" | "reason" | "text" | "fix"> & { readonly details?: AdmissionError["details"] },
    field: string | undefined
  ) =>
    Either.left(
      new AdmissionError({
        ...fields,
        where: { ...source, server, operation: "grants", ...(field === undefined ? {} : { field }) }
      })
    )

  const faults = candidates.flatMap((candidate) => {
    const fault = faultOf(candidate, host.isUtf8)
    return fault === undefined ? [] : [{ field: candidate.field, text: `${candidate.field}: ${fault}` }]
  })
  if (faults.length > 0)
    return refuse(
      {
        code: "SIGIL_CONFIG_INVALID",
        reason: "configuration_invalid",
        text: `The server '${server}' has headers that cannot be sent: ${faults.map(({ text }) => text).join("; ")}.`,
        fix: undefined
      },
      faults[0]?.field
    )

  const lacking = candidates.filter(({ missing }) => missing.length > 0)
  if (lacking.length > 0) {
    const names = [...new Set(lacking.flatMap(({ missing }) => missing))].sort()
    const list = lacking.map(({ field, missing }) => `${missing.join(", ")} (${field})`).join(", ")
    const secret = lacking.some(({ name }) => isCredentialHeader(name))
    return refuse(
      {
        code: "SIGIL_MISSING_GRANT",
        reason: secret ? "authentication_required" : "configuration_invalid",
        text: `The server '${server}' wants headers from variables that are not set: ${list}.`,
        fix: `Set ${names.join(", ")} before starting, or take the header out of the entry.`,
        details: { missing: names }
      },
      lacking[0]?.field
    )
  }

  const values = candidates.flatMap((candidate) =>
    candidate.value === undefined ? [] : [{ ...candidate, value: candidate.value }]
  )
  const bytes = values.reduce((sum, { name, value }) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0)
  if (bytes > MAX_HEADER_BYTES)
    return refuse(
      {
        code: "SIGIL_CONFIG_INVALID",
        reason: "configuration_invalid",
        text: `The headers of server '${server}' have ${bytes} bytes together; at most ${MAX_HEADER_BYTES} are allowed.`,
        fix: "Send less, or shorten the values of the variables."
      },
      values.find(({ variables }) => variables.length > 0)?.field
    )

  const hidden = values.filter(({ credential, open }) => credential && !open)
  const fromVariables = hidden.flatMap(({ variables }) => variables.map((variable) => host.get(variable) ?? ""))
  const secrets = [...hidden.flatMap(({ value }) => credentialOf(value)), ...fromVariables]
  return Either.right({
    headers: values.map(({ credential, name, value }) => ({ name, value: Redacted.make(value), credential })),
    secrets: [...new Set(secrets)].filter((value) => value !== ""),
    grants: grantsOf(expanded)
  })
}

/**
 * `mcpPolicy` and `policyLimits` as written (spec section 3, S section 5): decoded here, decided in the policy room.
 *
 * The same keys stand in the managed file of the machine and in the user's settings.json; each file gives one
 * `CompanyPolicy`, and every file's word holds, so a user can only tighten. Everything that decides keeps its
 * position, because a person who is refused has to find the line. A key that nobody knows, or an entry without any
 * key, is a fault: what it was to guard is unknown, and whoever reads the file refuses every start.
 */
import { deadText, FieldReader } from "./Fields.ts"
import { childPath, type LocatedNode, type Position } from "./Located.ts"
import { foundText, type Issue, type Issues, kindText } from "./Problem.ts"

/** Something that decides: where it stands in its file. */
export interface PolicyPlace {
  /** Path as written, e.g. `mcpPolicy.deniedServers[0]`. */
  readonly field: string
  readonly at: Position
}

/** One entry of a list; at least one key is there. */
export interface PolicyEntry extends PolicyPlace {
  /** The exact configured name. */
  readonly name?: string
  /** `[command, ...args]`, element by element. */
  readonly command?: ReadonlyArray<string>
  /** The whole URL; `*` is any run of characters, everything else is itself. */
  readonly url?: string
}

/** `allowedServers`; without entries it allows nothing. */
export interface AllowList extends PolicyPlace {
  readonly entries: ReadonlyArray<PolicyEntry>
}

/** `mcpPolicy`. */
export interface McpPolicyRules extends PolicyPlace {
  readonly denied: ReadonlyArray<PolicyEntry>
  /** Absent: everything that is not denied is allowed. */
  readonly allowed?: AllowList
}

/** `policyLimits.mcp`. */
export interface McpLimit extends PolicyPlace {
  readonly allowed: boolean
  /** Why, in the words of whoever set it. */
  readonly reason?: string
}

/** What one file says. */
export interface CompanyPolicy {
  readonly file: string
  /** From the managed file of the machine, which no unprivileged user can change. */
  readonly managed: boolean
  readonly mcpPolicy?: McpPolicyRules
  readonly mcpLimit?: McpLimit
}

const keyPattern = /^(?:mcpPolicy|mcp_policy|policyLimits|policy_limits)(?:$|[.[])/

/** Faults that leave unknown what a policy was to guard. */
export const policyFaults = (issues: Issues): ReadonlyArray<Issue> =>
  issues.filter(({ field }) => keyPattern.test(field))

const decodeEntry = (item: LocatedNode, field: string, reader: FieldReader): ReadonlyArray<PolicyEntry> => {
  if (item.kind !== "object") {
    reader.add(field, item.at, `found ${kindText(item)}, expected an object with name, command or url`)
    return []
  }
  const before = reader.issues.length
  const entry = new FieldReader(item, field, reader.spelling, reader.issues)
  const name = entry.text("name")
  const command = entry.strings("command")
  const url = entry.text("url")
  for (const [key, text] of [
    ["name", name],
    ["url", url]
  ] as const) {
    const fault = text === undefined ? undefined : deadText(text)
    if (fault !== undefined) entry.add(childPath(field, key), entry.take(key)?.value.at ?? item.at, fault)
  }
  // The arguments of a command are compared as they are, and white space may belong to one; the program is a name.
  const program = command?.[0] === undefined ? undefined : deadText(command[0])
  if (program !== undefined) entry.add(childPath(field, "command"), entry.take("command")?.value.at ?? item.at, program)
  entry.refuseUnused("an entry of mcpPolicy")
  if (command !== undefined && command.length === 0)
    entry.add(childPath(field, "command"), item.at, "the list is empty; expected the command and its arguments")
  if (reader.issues.length > before) return []
  if (name === undefined && command === undefined && url === undefined) {
    reader.add(field, item.at, "the entry is empty; expected name, command or url")
    return []
  }
  return [
    {
      field,
      at: item.at,
      ...(name === undefined ? {} : { name }),
      ...(command === undefined ? {} : { command }),
      ...(url === undefined ? {} : { url })
    }
  ]
}

const decodeList = (policy: FieldReader, key: "denied_servers" | "allowed_servers"): AllowList | undefined => {
  const property = policy.take(key)
  if (property === undefined) return undefined
  const field = policy.pathOf(property)
  const { value, at } = property
  if (value.kind !== "array") {
    policy.add(field, value.at, `found ${kindText(value)}, expected a list of entries`)
    return undefined
  }
  return { field, at, entries: value.items.flatMap((item, index) => decodeEntry(item, `${field}[${index}]`, policy)) }
}

const decodePolicy = (root: FieldReader): McpPolicyRules | undefined => {
  const property = root.take("mcp_policy")
  const inner = property === undefined ? undefined : root.innerObject(property)
  if (property === undefined || inner === undefined) return undefined
  const field = root.pathOf(property)
  const policy = new FieldReader(inner, field, root.spelling, root.issues)
  const denied = decodeList(policy, "denied_servers")
  const allowed = decodeList(policy, "allowed_servers")
  policy.refuseUnused("mcpPolicy")
  return { field, at: property.at, denied: denied?.entries ?? [], ...(allowed === undefined ? {} : { allowed }) }
}

const decodeLimit = (root: FieldReader): McpLimit | undefined => {
  const limits = root.table("policy_limits")
  if (limits === undefined) return undefined
  const property = limits.take("mcp")
  limits.refuseUnused("policyLimits")
  if (property === undefined) return undefined
  const place = { field: limits.pathOf(property), at: property.at }
  const { value } = property
  if (value.kind === "boolean") return { ...place, allowed: value.value }
  if (value.kind !== "object") {
    limits.add(
      place.field,
      value.at,
      `found ${foundText(value)}, expected true, false or an object with allowed and reason`
    )
    return undefined
  }
  const limit = new FieldReader(value, place.field, limits.spelling, limits.issues)
  const allowed = limit.bool("allowed")
  const reason = limit.string("reason")
  limit.refuseUnused("policyLimits.mcp")
  if (!limit.has("allowed")) limit.add(limit.missingPath("allowed"), value.at, "expected true or false")
  return { ...place, allowed: allowed ?? false, ...(reason === undefined ? {} : { reason }) }
}

/** Reads both keys; every fault goes to the reader's issues. `undefined` when neither is written. */
export const decodeCompanyPolicy = (
  root: FieldReader,
  source: Pick<CompanyPolicy, "file" | "managed">
): CompanyPolicy | undefined => {
  const mcpPolicy = decodePolicy(root)
  const mcpLimit = decodeLimit(root)
  if (mcpPolicy === undefined && mcpLimit === undefined) return undefined
  return {
    ...source,
    ...(mcpPolicy === undefined ? {} : { mcpPolicy }),
    ...(mcpLimit === undefined ? {} : { mcpLimit })
  }
}

/** Remarks on entries that mean something else than they seem to. */
export const policyRemarks = ({ mcpPolicy }: CompanyPolicy): ReadonlyArray<Issue> =>
  (mcpPolicy?.allowed?.entries ?? [])
    .filter(({ command, url }) => command !== undefined && url !== undefined)
    .map(({ field, at }) => ({
      field,
      at,
      reason: "never_matches",
      text: "an allowed entry must match in all of its keys, and no server has both a command and a URL; it allows nothing"
    }))

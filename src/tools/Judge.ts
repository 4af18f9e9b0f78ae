/**
 * What permission says to a caller's call, over the settings and servers of the runtime.
 *
 * The decision itself is a pure function of the policy room. Here are only its inputs: the settings of the snapshot,
 * what the caller's run adds, the names that could be taken for one another, and the grants of this session.
 */
import type { JsonObject } from "../base/Json.ts"
import type { ConfigSnapshot } from "../config/Configuration.ts"
import { nameOf } from "../config/ServerDeclaration.ts"
import * as Permission from "../policy/Permission.ts"
import { readsInput } from "../policy/permission/SettingsLists.ts"
import type { Generation } from "../server/Generation.ts"
import type { Caller } from "./Caller.ts"
import type { Subject } from "./Gates.ts"
import { possibleNames, sanitise } from "./Naming.ts"

/** Judges calls and keeps the session's grants. */
export interface Judge {
  /** The same subject object is judged once, as long as nothing that counts has changed. */
  readonly decide: (caller: Caller, subject: Subject, generation: Generation, args: JsonObject) => Permission.Decision
  readonly policyFor: (caller: Caller) => Permission.Policy
  readonly callOf: (subject: Subject, generation: Generation, args: JsonObject) => Permission.Call
  /** Allows one exact tool until the runtime ends. */
  readonly grant: (key: string) => void
  /** Drops the grants of servers that are declared otherwise now. */
  readonly forget: (servers: ReadonlyArray<string>) => void
}

/** What follows from one snapshot. */
interface Facts {
  readonly snapshot: ConfigSnapshot
  /** A verdict can depend on arguments, so none is kept. */
  readonly readsInput: boolean
  /** Exact names and their sanitised forms. */
  readonly names: ReadonlyArray<{ readonly exact: string; readonly part: string }>
  readonly rivals: Map<string, ReadonlyArray<string>>
}

interface Judged {
  readonly facts: Facts
  readonly round: number
  readonly allowedTools: Caller["allowedTools"]
  readonly caps: Caller["caps"]
  readonly decision: Permission.Decision
}

const factsOf = (snapshot: ConfigSnapshot): Facts => ({
  snapshot,
  readsInput: readsInput(snapshot.settings.lists),
  names: snapshot.servers.map((entry) => ({ exact: nameOf(entry), part: sanitise(nameOf(entry)) })),
  rivals: new Map()
})

/** Only a server whose name begins the other's, up to case, can have a tool that reads like one of the other's. */
const rivalsOf = ({ names, rivals }: Facts, server: string): ReadonlyArray<string> => {
  const known = rivals.get(server)
  if (known !== undefined) return known
  const own = `${sanitise(server).toLowerCase()}__`
  const others = names.flatMap(({ exact, part }) => {
    const other = `${part.toLowerCase()}__`
    return exact !== server && (own.startsWith(other) || other.startsWith(own)) ? [part] : []
  })
  rivals.set(server, others)
  return others
}

/** A judge over what `snapshot` gives at the time of each call. */
export const make = (snapshot: () => ConfigSnapshot): Judge => {
  let facts = factsOf(snapshot())
  const now = (): Facts => {
    const current = snapshot()
    if (facts.snapshot !== current) facts = factsOf(current)
    return facts
  }
  const grants = new Set<string>()
  /** Counts every change of the grants. */
  let round = 0
  const judged = new WeakMap<Subject, Judged>()

  const policyFor: Judge["policyFor"] = ({ allowedTools = [], caps = {} }) => {
    const { lists, networkMode, networkWhere, permission } = now().snapshot.settings
    return {
      permission,
      networkMode,
      ...(networkWhere === undefined ? {} : { networkWhere }),
      lists,
      allowedTools,
      caps
    }
  }

  const callOf: Judge["callOf"] = (subject, { declaration, networkEffect }, args) =>
    Permission.mcpCall({
      server: {
        server: subject.server,
        trustClass: declaration.trust.trustClass,
        approvalDefault: declaration.trust.approvalDefault,
        where: { ...declaration.source, server: declaration.name }
      },
      operation: subject.operation,
      tool: subject.tool,
      names: {
        visibleName: subject.visibleName,
        shownAs: subject.possibleNames ?? possibleNames(subject),
        mcp: { server: subject.server, serverPart: sanitise(subject.server), toolPart: sanitise(subject.tool) },
        rivals: rivalsOf(now(), subject.server)
      },
      destructive: subject.destructive,
      input: args,
      isolated: networkEffect === "none"
    })

  return {
    policyFor,
    callOf,
    grant: (key) => {
      round += 1
      grants.add(key)
    },
    forget: (servers) => {
      round += 1
      for (const key of grants)
        if (servers.some((name) => key.startsWith(Permission.grantKey(name, "")))) grants.delete(key)
    },
    decide: (caller, subject, generation, args) => {
      const { allowedTools, caps } = caller
      const current = now()
      const known = current.readsInput ? undefined : judged.get(subject)
      if (
        known !== undefined &&
        known.facts === current &&
        known.round === round &&
        known.allowedTools === allowedTools &&
        known.caps === caps
      )
        return known.decision
      const decision = Permission.decide(policyFor(caller), callOf(subject, generation, args), grants)
      judged.set(subject, { facts: current, round, allowedTools, caps, decision })
      return decision
    }
  }
}

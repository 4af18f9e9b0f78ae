/** Servers that a program gives at the start, as the configuration and the transport take them (spec section 2). */
import { decodeDynamic } from "../config/DynamicSource.ts"
import { type DynamicServers, entryOf, isInProcess } from "../server/DynamicServers.ts"
import type { MemoryServer } from "../transport/MemoryTransport.ts"
import type { RuntimeOptions } from "./Declarations.ts"

/** The source of configuration for these servers. */
export const sourceOf = (servers: DynamicServers): NonNullable<RuntimeOptions["dynamic"]> =>
  decodeDynamic(Object.fromEntries(Object.entries(servers).map(([name, given]) => [name, entryOf(given)])))

/** Those that live in this process. */
export const inProcessOf = (servers: DynamicServers): { readonly [name: string]: MemoryServer } =>
  Object.fromEntries(
    Object.entries(servers).flatMap(([name, given]) => (isInProcess(given) ? [[name, given.inProcess] as const] : []))
  )

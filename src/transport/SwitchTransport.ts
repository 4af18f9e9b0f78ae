/**
 * Servers of this process beside servers of their own: opens the ones, hands the others on.
 *
 * The plan decides, not the name alone: a name that a higher scope took over has another plan and goes where that
 * plan says.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { inProcessCommand } from "../config/ServerDeclaration.ts"
import * as MemoryTransport from "./MemoryTransport.ts"
import { Transport } from "./Transport.ts"

/** Opens the in-process servers of these names and everything else through the transport below. */
export const layer = (servers: {
  readonly [name: string]: MemoryTransport.MemoryServer
}): Layer.Layer<Transport, never, Transport> =>
  Layer.effect(
    Transport,
    Effect.map(Transport, (others) => {
      const inProcess = MemoryTransport.make(servers)
      return Transport.of({
        open: (request) =>
          request.plan._tag === "stdio" && request.plan.file === inProcessCommand(request.server)
            ? inProcess.open(request)
            : others.open(request)
      })
    })
  )

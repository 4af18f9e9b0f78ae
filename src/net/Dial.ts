/**
 * Opens one connection to a destination: resolve, judge, pin, connect, compare, TLS (R section 8.11).
 *
 * The set of addresses that was judged is the one that is dialled; nothing resolves the name a second time, and the
 * peer of the socket is compared with the set before a byte is written. Through a proxy nothing is resolved here:
 * the proxy is asked for a tunnel to the name.
 */
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as http from "node:http"
import * as https from "node:https"
import * as net from "node:net"
import * as tls from "node:tls"
import { KIB } from "../base/Units.ts"
import { classify } from "./AddressClass.ts"
import { type Destination, judgeAddresses } from "./Destination.ts"
import type { DestinationRules } from "./DestinationRules.ts"
import { connectFault, proxyFault, slowFault, tlsFault, tunnelFault } from "./DialFault.ts"
import { type NetError, notSent, refused } from "./NetError.ts"
import type { Proxy, Route } from "./Proxy.ts"
import type { Resolver } from "./Resolver.ts"

/** Wait for one address before the next one is tried. */
const ATTEMPT_MS = 500

/** An open connection, TLS included, on which nothing was written. */
export interface Dialled {
  readonly socket: net.Socket
  /** The judged set of addresses as one text, to compare; the proxy's origin where it dialled. */
  readonly pinned: string
}

/** How to dial. */
export interface DialPlan {
  readonly destination: Destination
  readonly route: Route
  readonly rules: DestinationRules
  /** Milliseconds for all of it: resolve, connect, TLS. */
  readonly timeoutMs: number
  /** Certificates (PEM) that are trusted besides those that Node brings. */
  readonly trusted: ReadonlyArray<string>
}

const lookupIn =
  (addresses: ReadonlyArray<string>): net.LookupFunction =>
  (_host, options, callback) => {
    const all = addresses.map((address) => ({ address, family: net.isIP(address) }))
    const [first] = all
    if (options.all === true || first === undefined) callback(null, all)
    else callback(null, first.address, first.family)
  }

/** A late error of a socket that nobody uses yet, or any more, is no uncaught exception. */
const ignore = (): void => {}

const connect = (host: string, port: number, addresses: ReadonlyArray<string>): Effect.Effect<net.Socket, NetError> =>
  Effect.async((resume) => {
    const socket = net.connect({
      host,
      port,
      lookup: lookupIn(addresses),
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: ATTEMPT_MS,
      noDelay: true,
      keepAlive: true
    })
    socket.on("error", ignore)
    const failed = (error: Error): void => resume(Effect.fail(connectFault(host, error)))
    socket.once("error", failed)
    socket.once("connect", () => {
      socket.off("error", failed)
      const peer = classify(socket.remoteAddress ?? "").address
      if (addresses.includes(peer)) return resume(Effect.succeed(socket))
      socket.destroy()
      resume(
        Effect.fail(
          notSent(
            "SIGIL_NETWORK_REFUSED",
            "address_not_pinned",
            `The connection to '${host}' arrived at an address that was not judged.`,
            "Try again; report it if it stays."
          )
        )
      )
    })
    return Effect.sync(() => socket.destroy())
  })

/** Speaks TLS on a socket; the certificate has to be the host's. */
const secure = (
  socket: net.Socket,
  destination: Destination,
  trusted: ReadonlyArray<string>
): Effect.Effect<net.Socket, NetError> =>
  Effect.async((resume) => {
    const { host } = destination
    const secured = tls.connect({
      socket,
      host,
      // An address is no server name (RFC 6066 section 3); the certificate is held against `host` all the same.
      ...(net.isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ["http/1.1"],
      rejectUnauthorized: true,
      ...(trusted.length === 0 ? {} : { ca: [...tls.rootCertificates, ...trusted] })
    })
    secured.on("error", ignore)
    const failed = (error: Error): void => {
      socket.destroy()
      resume(Effect.fail(tlsFault(destination, error)))
    }
    const closed = (): void => resume(Effect.fail(tlsFault(destination)))
    secured.once("error", failed)
    secured.once("close", closed)
    secured.once("secureConnect", () => {
      secured.off("error", failed).off("close", closed)
      resume(Effect.succeed(secured))
    })
    return Effect.sync(() => {
      secured.destroy()
      socket.destroy()
    })
  })

/** Asks the proxy for a tunnel. What the proxy resolves is its own; only the name was judged here. */
const tunnel = (proxy: Proxy, { host, port }: Destination): Effect.Effect<net.Socket, NetError> =>
  Effect.async((resume) => {
    const authority = `${net.isIP(host) === 6 ? `[${host}]` : host}:${port}`
    const request = (proxy.encrypted ? https : http).request({
      host: proxy.host,
      port: proxy.port,
      method: "CONNECT",
      path: authority,
      agent: false,
      maxHeaderSize: 32 * KIB,
      headers: {
        host: authority,
        ...(proxy.authorization === undefined ? {} : { "proxy-authorization": Redacted.value(proxy.authorization) })
      }
    })
    const fail = (error: NetError): void => {
      request.destroy()
      resume(Effect.fail(error))
    }
    const answered = ({ statusCode = 0 }: http.IncomingMessage): void => fail(tunnelFault(proxy, host, statusCode))
    request.on("error", (error) => fail(proxyFault(proxy, host, error)))
    request.on("response", answered)
    request.on("connect", (response, socket: net.Socket, head) => {
      socket.on("error", ignore)
      if (response.statusCode !== 200) {
        socket.destroy()
        return answered(response)
      }
      if (head.length > 0) socket.unshift(head)
      resume(Effect.succeed(socket))
    })
    request.end()
    return Effect.sync(() => request.destroy())
  })

const reach = (
  resolver: Context.Tag.Service<Resolver>,
  { destination, route, rules }: DialPlan
): Effect.Effect<Dialled, NetError> => {
  if (route._tag === "proxy_remote")
    return Effect.map(tunnel(route.proxy, destination), (socket) => ({ socket, pinned: route.proxy.origin }))
  const { host, port, literal } = destination
  return Effect.flatMap(literal ? Effect.succeed([host]) : resolver.resolve(host), (found) => {
    const verdict = judgeAddresses(destination, found, rules)
    if (verdict._tag === "Refuse") return Effect.fail(refused(verdict))
    const pinned = [...verdict.addresses].sort().join(" ")
    return Effect.map(connect(host, port, verdict.addresses), (socket) => ({ socket, pinned }))
  })
}

/** Opens a connection. Interruption and failure leave no socket behind. */
export const dial = (resolver: Context.Tag.Service<Resolver>, plan: DialPlan): Effect.Effect<Dialled, NetError> =>
  Effect.suspend(() => {
    const { destination, route, trusted, timeoutMs } = plan
    /** What was opened so far: between two steps nobody else knows of it. */
    let held: net.Socket | undefined
    return reach(resolver, plan).pipe(
      Effect.flatMap((dialled) => {
        held = dialled.socket
        return destination.encrypted
          ? Effect.map(secure(dialled.socket, destination, trusted), (socket) => ({ ...dialled, socket }))
          : Effect.succeed(dialled)
      }),
      Effect.timeoutFail({
        duration: Duration.millis(timeoutMs),
        onTimeout: () => slowFault(destination, route, held !== undefined, timeoutMs)
      }),
      Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : Effect.sync(() => held?.destroy())))
    )
  })

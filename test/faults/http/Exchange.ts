/** One request at the hostile server, and all that a fault may do about it. */
import type * as http from "node:http"
import type * as net from "node:net"
import type { Answer, Message } from "./Answers.ts"
import type { Headers } from "./Bytes.ts"
import type { Era, Step } from "./Step.ts"

/** The server as a fault sees it. */
export interface Control {
  /** An address of another origin, which records whatever arrives there. */
  readonly elsewhere: string
  /** Its own address. */
  readonly url: string
  /** Ends every connection and stops listening. */
  readonly refuse: () => Promise<void>
  /** Ends every connection, forgets every session and listens on the same port again. */
  readonly restart: () => Promise<void>
  /** Forgets every session. */
  readonly forget: () => void
  /** A request that is open besides this one and is no stream, if there is one. */
  readonly other: (than: Message["id"]) => Message["id"]
  /** Runs `act` after `ms`, unless the server closes before. */
  readonly later: (ms: number, act: () => void) => void
  /** Runs `act` every `ms` while the connection lives. */
  readonly every: (ms: number, socket: net.Socket, act: () => void) => void
}

/** One request. */
export interface Exchange {
  readonly era: Era
  readonly step: Step
  readonly message: Message
  /** What a well-behaved server answers now. */
  readonly answer: Answer
  /** Headers that belong to that answer, such as the session id. */
  readonly headers: Headers
  readonly socket: net.Socket
  readonly response: http.ServerResponse
  /** Pace or delay of the fault, ms. */
  readonly ms: number
  readonly control: Control
  /** Answers well. */
  readonly behave: () => void
}

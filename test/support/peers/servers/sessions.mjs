// Sessions of Streamable HTTP in the older era, and the store that lets a cut stream be resumed.
import { randomUUID } from "node:crypto"
import { refuse } from "./listen.mjs"

/** Remembers every event of one session in its order. */
export const eventStore = () => {
  const events = []
  return {
    storeEvent: async (stream, message) => {
      events.push({ stream, message })
      return String(events.length)
    },
    getStreamIdForEventId: async (id) => events[Number(id) - 1]?.stream,
    replayEventsAfter: async (last, { send }) => {
      const stream = events[Number(last) - 1]?.stream
      for (const [index, event] of events.entries()) {
        // A priming event holds no message.
        const missed = index >= Number(last) && event.stream === stream && Object.keys(event.message).length > 0
        if (missed) await send(String(index + 1), event.message)
      }
      return stream
    }
  }
}

/**
 * A request handler that makes one transport and one server for each session.
 *
 * `connect` gives a transport for the options and connects a server to it. Unknown sessions are answered with 404.
 */
export const sessions = (connect) => {
  const open = new Map()
  return async (request, response, parsed) => {
    const id = request.headers["mcp-session-id"]
    if (id !== undefined && !open.has(id)) return refuse(response, 404, "Session not found")
    const transport =
      id === undefined
        ? await connect({
            sessionIdGenerator: () => randomUUID(),
            eventStore: eventStore(),
            retryInterval: 100,
            onsessioninitialized: (session) => void open.set(session, transport),
            onsessionclosed: (session) => void open.delete(session)
          })
        : open.get(id)
    return transport.handleRequest(request, response, parsed)
  }
}

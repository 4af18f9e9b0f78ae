// What both surfaces share: the words of a server about itself, and what it saw of calls that were given up.

export const instructions = "Ask for the note first."

/** Completes the names of people. */
export const names = (begun) => ["Ada", "Alan", "Grace"].filter((name) => name.startsWith(begun))

const seen = []
const waiting = []

/** Calls that were given up by their callers; one memory for the whole process. */
export const givenUp = {
  /** Settles when the call is given up, which it remembers. */
  mark: (signal) =>
    new Promise((resolve) => {
      const note = () => {
        const next = waiting.shift()
        if (next === undefined) seen.push(true)
        else next()
        resolve()
      }
      if (signal.aborted) note()
      else signal.addEventListener("abort", note, { once: true })
    }),
  /** Settles when one was, or has been. */
  next: () => (seen.shift() === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve())
}

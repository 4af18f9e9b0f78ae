// Redaction: MB/s of the whole and of the matcher, by values, kind and size of text, beside one replaceAll per value.
// usage: npm run bench:redaction [-- ROUNDS]
import { createHash } from "node:crypto"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { load, median, row, spread } from "./Measure.mjs"

const here = path.dirname(fileURLToPath(import.meta.url))
const rounds = Math.max(5, Number(process.argv[2] ?? 7))
const { contenders } = await import(path.join(here, "build", "redaction.js"))
const sizes = { "1 KiB": 1024, "64 KiB": 65_536, "1 MiB": 1 << 20, "8 MiB": 8 << 20 }

/** Bytes that look random and are the same in every run. */
const bytes = (seed, length) => {
  const parts = []
  for (let index = 0; parts.length * 32 < length; index += 1)
    parts.push(createHash("sha256").update(`${seed}-${index}`).digest())
  return Buffer.concat(parts).subarray(0, length)
}
const values = (count) =>
  Array.from({ length: count }, (_, index) => `tk-${bytes(`value ${index}`, 24).toString("base64url")}`)

const prose =
  "The task_list of https://example.com/a/b?c=d has 12 rows; see src/policy/Secrets.ts and help(me) for the rest.\n" +
  '{"id":4711,"name":"sk-learn","tags":["a","b"],"pageToken":"next","ok":true,"ratio":0.25,"note":"nothing here"}\n'
const fill = (text, size) => text.repeat(Math.ceil(size / text.length)).slice(0, size)
const texts = {
  clean: (size) => fill(prose, size),
  // A secret in each 2 KiB, in one form after the other.
  dirty: (size, known) => {
    const all = known.length === 0 ? ["tk-none"] : known
    const parts = []
    for (let at = 0, index = 0; at < size; index += 1, at += 2_048) {
      const value = all[index % all.length]
      const form = [value, Buffer.from(`u:${value}`).toString("base64"), encodeURIComponent(value)][index % 3]
      parts.push(fill(prose, 2_048 - form.length), form)
    }
    return parts.join("").slice(0, size)
  },
  base64: (size) =>
    bytes("blob", Math.ceil((size * 3) / 4))
      .toString("base64")
      .slice(0, size)
}

const measure = (run, text) => {
  const times = Math.max(1, Math.floor((2 << 20) / text.length))
  const begun = performance.now()
  for (let index = 0; index < times; index += 1) run(text)
  return (text.length * times) / 1e3 / (performance.now() - begun)
}

const results = {}
for (const count of [0, 16, 256]) {
  const known = values(count)
  const made = contenders(known)
  const cases = Object.entries(texts).flatMap(([kind, make]) =>
    Object.entries(sizes).map(([size, length]) => ({ kind, size, text: make(length, known) }))
  )
  for (const { text } of cases) for (const run of Object.values(made)) measure(run, text)
  for (let round = 0; round < rounds; round += 1) {
    for (const { kind, size, text } of cases) {
      for (const [name, run] of Object.entries(made)) {
        const key = `${count}/${kind}/${size}`
        results[key] ??= { whole: [], matcher: [], naive: [] }
        results[key][name].push(measure(run, text))
      }
    }
  }
}

const widths = [8, 8, 8, 12, 8, 12, 12, 14]
console.log(`${rounds} interleaved rounds, Node ${process.version}, ${load()}; MB/s`)
row(["values", "text", "size", "whole", "spread", "matcher", "naive", "whole / naive"], widths)
for (const [key, { whole, matcher, naive }] of Object.entries(results)) {
  const cells = [median(whole), median(matcher), median(naive)].map((value) => value.toFixed(0))
  row(
    [
      ...key.split("/"),
      cells[0],
      `${(spread(whole) * 100).toFixed(0)} %`,
      cells[1],
      cells[2],
      (median(whole) / median(naive)).toFixed(2)
    ],
    widths
  )
}
const of = (key, name) => median(results[key][name])
const least = (name, kinds) =>
  Math.min(...kinds.flatMap((kind) => Object.keys(sizes).map((size) => of(`256/${kind}/${size}`, name))))
console.log(`whole, clean text, 256 values: at least ${least("whole", ["clean"]).toFixed(0)} MB/s (bar 50, goal 80)`)
console.log(
  `matcher, any text, 256 values: at least ${least("matcher", Object.keys(texts)).toFixed(0)} MB/s (bar 120, goal 200)`
)
for (const kind of Object.keys(texts)) {
  const ratio = of(`256/${kind}/64 KiB`, "whole") / of(`256/${kind}/8 MiB`, "whole")
  console.log(
    `linearity, ${kind}: time per character at 8 MiB / at 64 KiB = ${ratio.toFixed(2)} (1 is linear, 128 the square)`
  )
}

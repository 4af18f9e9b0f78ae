/** The tools of the demo server: each shows one thing that sigil does with a server's answer. */
import { type Json, type JsonObject, own } from "../base/Json.ts"

/** A tool of the demo server. */
export interface DemoTool {
  readonly definition: JsonObject
  readonly run: (args: JsonObject, environment: { readonly [name: string]: string | undefined }) => JsonObject
}

const text = (value: string): JsonObject => ({ content: [{ type: "text", text: value }] })

const numberOf = (value: Json | undefined): number => (typeof value === "number" ? value : Number.NaN)

/** All tools by name. */
export const tools: ReadonlyMap<string, DemoTool> = new Map<string, DemoTool>([
  [
    "add",
    {
      definition: {
        name: "add",
        description: "Adds two numbers and answers with text and with a structured result.",
        inputSchema: {
          type: "object",
          properties: {
            a: { type: "number", description: "first number" },
            b: { type: "number", description: "second number" }
          },
          required: ["a", "b"],
          additionalProperties: false
        },
        outputSchema: { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] },
        annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
      },
      run: (args) => {
        const sum = numberOf(own(args, "a")) + numberOf(own(args, "b"))
        return { ...text(JSON.stringify({ sum })), structuredContent: { sum } }
      }
    }
  ],
  [
    "environment",
    {
      definition: {
        name: "environment",
        description: "Names the environment variables that the server can see. Under sigil these are few.",
        inputSchema: { type: "object", properties: {}, additionalProperties: false },
        annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
      },
      run: (_args, environment) => text(Object.keys(environment).sort().join("\n"))
    }
  ],
  [
    "count",
    {
      definition: {
        name: "count",
        description: "Answers with the given number of lines, to show how sigil bounds a long result.",
        inputSchema: {
          type: "object",
          properties: { lines: { type: "integer", minimum: 1, maximum: 100000 } },
          required: ["lines"],
          additionalProperties: false
        },
        annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
      },
      run: (args) => {
        const lines = numberOf(own(args, "lines"))
        return text(Array.from({ length: lines }, (_, index) => `line ${index + 1}`).join("\n"))
      }
    }
  ],
  [
    "fail",
    {
      definition: {
        name: "fail",
        description: "Always reports a failure, to show how a tool's own error reaches the caller.",
        inputSchema: { type: "object", properties: {}, additionalProperties: false },
        annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
      },
      run: () => ({ ...text("This tool fails on purpose."), isError: true })
    }
  ]
])

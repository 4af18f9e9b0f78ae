/** `sigil mcp add`: declare a server. Everything from COMMAND on belongs to the server. */
import { attach, type InputOf, shapeOf } from "../CommandSpec.ts"

const shape = shapeOf({
  path: ["mcp", "add"],
  section: "Servers",
  summary: "Declare a server: a command to run, or a URL.",
  description: [
    "Options of sigil come before COMMAND; everything from COMMAND on is the server's and is kept as typed.",
    "A command is declared for the project (.mcp.json), a URL for you (sigil.toml), unless --scope says otherwise. Nothing is started; the next start reads the entry."
  ],
  examples: [
    {
      line: "sigil mcp add fs npx -y @modelcontextprotocol/server-filesystem /tmp",
      does: "a command with its arguments"
    },
    {
      line: "sigil mcp add --scope user --inherit-env GITHUB_TOKEN gh -- gh-mcp --read-only",
      does: "for you; the server sees one variable of yours"
    },
    {
      line: "sigil mcp add docs https://mcp.example.com/mcp --bearer-token-env-var DOCS_TOKEN",
      does: "a remote server"
    }
  ],
  usage: ["[options] NAME COMMAND ARGS...", "[options] NAME -- COMMAND ARGS...", "[options] NAME URL"],
  args: [
    { key: "name", label: "NAME", summary: "How the server is called from now on." },
    { key: "command", label: "COMMAND|URL", summary: "The program to run, or where the server listens." }
  ],
  tail: { label: "ARGS...", summary: "The server's own arguments, kept as typed.", unless: /^(?:https?|wss?):\/\//i },
  options: {
    scope: {
      kind: "choice",
      choices: ["project", "user", "local"],
      summary: "Where to declare it: shared with the project, for you, or for you in this project."
    },
    settings: { kind: "flag", summary: "With scope user: write settings.json instead of sigil.toml." },
    transport: {
      kind: "choice",
      choices: ["stdio", "http", "streamable_http", "sse", "ws", "http-json"],
      summary: "How to speak to it; a command is stdio, a URL http or, by its scheme, ws."
    },
    env: { kind: "text", value: "KEY=VALUE", repeatable: true, summary: "Set a variable for the server." },
    "inherit-env": {
      kind: "text",
      value: "NAME",
      repeatable: true,
      summary: "Let the server see this variable of yours."
    },
    header: { kind: "text", value: "KEY=VALUE", repeatable: true, summary: "Send a header to a remote server." },
    "env-header": {
      kind: "text",
      value: "KEY=NAME",
      repeatable: true,
      summary: "Send a header whose value is in a variable."
    },
    "bearer-token-env-var": { kind: "text", value: "NAME", summary: "Send the token that is in this variable." },
    oauth: { kind: "flag", summary: "The remote server wants a sign-in." },
    startup: { kind: "choice", choices: ["eager", "lazy"], summary: "Start with sigil, or when first needed." },
    required: { kind: "flag", summary: "An agent run fails when this server does not start." },
    trust: {
      kind: "choice",
      choices: ["official", "self_hosted", "third_party"],
      summary: "Whose server it is."
    },
    approval: { kind: "choice", choices: ["allow", "ask", "deny"], summary: "What happens to calls without a rule." },
    timeout: { kind: "number", value: "SECS", summary: "Deadline of one call." },
    "allow-loopback": {
      kind: "flag",
      summary: "Let sigil call a URL of this machine: write its host and address to [web] of sigil.toml."
    },
    force: { kind: "flag", summary: "Replace an existing entry of this name." }
  }
})

/** Input of the handler. `tail` holds the server's arguments. */
export type Input = InputOf<typeof shape>

/** The command. */
export const command = attach(shape, () => import("../handlers/McpAdd.ts"))

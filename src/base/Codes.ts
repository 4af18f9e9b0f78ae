/**
 * The catalogue of stable error codes.
 *
 * Every failure that sigil reports carries one of these codes. The exit code belongs to the code, so a script
 * can rely on either. `sigil errors CODE` prints an entry; texts may improve, codes and exits never change.
 * Exit codes: spec section 1 (0 done, 1 failed, 2 usage or configuration, 3 start or connection, 4 policy,
 * 5 the tool answered isError, 6 sign-in, 7 cleanup incomplete).
 */

/** One entry of the catalogue. */
export interface CodeEntry {
  /** Process exit code of a command that fails with this code. */
  readonly exit: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 130
  /** One sentence: what the code means. */
  readonly summary: string
  /** What usually helps; shown when a failure carries no fix of its own. */
  readonly fix: string
}

const entry = (exit: CodeEntry["exit"], summary: string, fix: string): CodeEntry => ({ exit, summary, fix })

/** Every code, with its exit code, meaning and remedy. */
export const catalogue = {
  // Usage
  SIGIL_USAGE: entry(2, "The command line does not fit the command.", "Run the command with --help."),
  SIGIL_UNKNOWN_COMMAND: entry(2, "There is no such command.", "Run 'sigil --help' for the list of commands."),
  SIGIL_UNKNOWN_OPTION: entry(2, "The command has no such option.", "Run the command with --help."),
  SIGIL_ARGUMENTS_INVALID: entry(
    2,
    "The arguments do not fit the tool's input schema; nothing was sent.",
    "Compare the arguments with 'sigil mcp tools SERVER --json'."
  ),
  // Unknown names
  SIGIL_UNKNOWN_SERVER: entry(1, "No declared server has this name.", "Run 'sigil mcp list --all' for the names."),
  SIGIL_UNKNOWN_TOOL: entry(1, "The server has no tool of this name.", "Run 'sigil mcp tools SERVER' for the names."),
  SIGIL_UNKNOWN_SURFACE: entry(
    1,
    "The server does not offer what was asked of it.",
    "Run 'sigil mcp list --status' to see what the server offers."
  ),
  SIGIL_UNKNOWN_PROMPT: entry(
    1,
    "The server has no prompt of this name.",
    "Run 'sigil mcp prompts SERVER' for the names."
  ),
  SIGIL_UNKNOWN_CODE: entry(1, "There is no such error code.", "Run 'sigil errors' for the list."),
  SIGIL_UNKNOWN_ARTIFACT: entry(
    1,
    "No stored artifact has this handle.",
    "Handles are printed with the result that made them; old artifacts are removed."
  ),
  // Configuration
  SIGIL_CONFIG_INVALID: entry(
    2,
    "A configuration entry or file does not have the expected form.",
    "Correct the field named in the message."
  ),
  SIGIL_CONFIG_UNREADABLE: entry(
    2,
    "A configuration file exists but cannot be read or parsed.",
    "Correct the file at the position named in the message."
  ),
  SIGIL_CONFIG_CONFLICT: entry(
    1,
    "The file was changed by somebody else while it was being edited; nothing was written.",
    "Reload and retry."
  ),
  SIGIL_CONFIG_WRITE: entry(1, "A configuration file could not be written.", "Check the path and its permissions."),
  SIGIL_DUPLICATE_NAME: entry(
    2,
    "One scope declares this name more than once, so none of them is used.",
    "Keep one of the declarations."
  ),
  SIGIL_NAME_TAKEN: entry(2, "A server of this name is already declared there.", "Choose another name or use --force."),
  SIGIL_MISSING_VARIABLE: entry(
    2,
    "The entry refers to environment variables that are not set.",
    "Set the variables, or give a default with ${NAME:-value}."
  ),
  SIGIL_MISSING_GRANT: entry(
    2,
    "Granted environment variables are missing or not valid UTF-8; the server was not started.",
    "Set every name of inherit_env, or drop the unused grants."
  ),
  SIGIL_LITERAL_CREDENTIAL: entry(
    2,
    "A literal credential must not be written to a file that is shared with the project.",
    "Write ${NAME} and set the variable in the environment."
  ),
  SIGIL_SCOPE_REFUSED: entry(
    4,
    "An entry of this source may not ask for this.",
    "Declare the server in the user's own file, or remove the field."
  ),
  SIGIL_NOT_SUPPORTED: entry(
    2,
    "The entry uses a feature that this version of sigil does not support yet.",
    "Remove the field, or wait for a version that supports it."
  ),
  SIGIL_SAFETY_UNSUPPORTED: entry(
    4,
    "A safety setting or a company policy is present that cannot be enforced, so nothing is started.",
    "Correct or remove the setting, or use a version of sigil that enforces it."
  ),
  SIGIL_PLUGIN_CHANGED: entry(
    4,
    "The manifest of a plugin changed after it was read; nothing of it is started.",
    "Run the command again, so that the manifest is read as it is now."
  ),
  // State
  SIGIL_STATE_UNWRITABLE: entry(
    4,
    "The state directory cannot be written, so no call is made.",
    "Make the directory writable or set SIGIL_STATE_HOME."
  ),
  SIGIL_AUDIT_UNWRITABLE: entry(
    4,
    "The audit log cannot be written, so nothing is done that it would have to record.",
    "Make room or make the log writable; it stands under SIGIL_STATE_HOME."
  ),
  SIGIL_FILE: entry(1, "A file could not be read or written.", "Check the path and its permissions."),
  // Start and connection
  SIGIL_COMMAND_NOT_FOUND: entry(
    3,
    "The server's command was not found as an executable file.",
    "Install the command, or declare the server with an absolute path."
  ),
  SIGIL_SPAWN_FAILED: entry(
    3,
    "The operating system refused to start the server.",
    "See the system's reason in the message."
  ),
  SIGIL_START_FAILED: entry(
    3,
    "The server did not complete its start.",
    "Run the server's command by hand to see what it misses."
  ),
  SIGIL_START_TIMEOUT: entry(
    3,
    "The server did not become ready inside its start budget.",
    "Raise startup_timeout_secs of the server."
  ),
  SIGIL_ZERO_SURFACE: entry(
    3,
    "The server offers no tools, resources or prompts.",
    "Check the server's own configuration."
  ),
  SIGIL_CALL_TIMEOUT: entry(
    3,
    "The server did not answer inside the call deadline.",
    "Raise tool_timeout_secs of the server, or call with --timeout SECS."
  ),
  SIGIL_PROTOCOL_FAULT: entry(
    3,
    "The server broke the Model Context Protocol; its connection was closed.",
    "Check the URL or command of the entry; if they are right, report the fault to the author of the server."
  ),
  SIGIL_LIMIT_EXCEEDED: entry(
    3,
    "The server exceeded a limit; its connection was closed.",
    "Ask the server for less at a time."
  ),
  SIGIL_CONNECTION_LOST: entry(
    3,
    "The connection to the server ended while it was needed.",
    "See the last words of a local server with 'sigil mcp logs NAME'; see whether a remote one can be reached."
  ),
  SIGIL_REDIRECT_REFUSED: entry(
    3,
    "The server answered with a redirect, and sigil follows none.",
    "Declare the server with the address it redirects to, if you trust that one."
  ),
  SIGIL_HTTP_STATUS: entry(
    3,
    "The remote server answered with an HTTP status that is no answer.",
    "Check the URL of the entry, and whether the server is up."
  ),
  SIGIL_SIGN_IN_NEEDED: entry(
    6,
    "The remote server wants a sign-in or another credential.",
    "Give the entry a credential, e.g. bearer_token_env_var, or correct the one it names."
  ),
  SIGIL_CALL_CANCELLED: entry(3, "The server cancelled the call.", "Try the call again."),
  SIGIL_ENVIRONMENT_CHANGED: entry(
    3,
    "A granted environment variable changed while the server was running; its connection was closed.",
    "Start the server again."
  ),
  // Policy
  SIGIL_PENDING_APPROVAL: entry(
    4,
    "The server is declared by the project and has not been approved.",
    "Review it with 'sigil mcp pending NAME', then 'sigil mcp approve NAME'."
  ),
  SIGIL_REJECTED: entry(4, "The server was rejected.", "Run 'sigil mcp approve NAME' to change the decision."),
  SIGIL_DISABLED: entry(4, "The server is disabled.", "Run 'sigil mcp enable NAME'."),
  SIGIL_DENIED: entry(
    4,
    "A policy denies this.",
    "Change the rule that the message names, or ask whoever owns the policy."
  ),
  SIGIL_APPROVAL_REQUIRED: entry(
    4,
    "The call needs somebody's consent and nobody can be asked here.",
    "Allow it with a rule, or answer this one call with --yes."
  ),
  SIGIL_NETWORK_REFUSED: entry(
    4,
    "The network policy of this run does not let the server start.",
    'Set [web] network_mode = "allow", or use a sandbox: [execution] strategy = "sandbox".'
  ),
  SIGIL_ISOLATION_UNAVAILABLE: entry(
    4,
    "An isolation is asked for that this system cannot give, so the server is not started.",
    "Make what the message names available, or ask for less: isolation of the server, [execution] of the run."
  ),
  SIGIL_PIN_MISMATCH: entry(
    4,
    "The server is not the one that was pinned, so it is not used.",
    "Look at what changed; 'sigil mcp pin NAME' pins the present state."
  ),
  SIGIL_TOOL_QUARANTINED: entry(
    4,
    "The tool's definition is malformed or dangerous, so it cannot be called.",
    "Report the schema to the author of the server; the other tools work."
  ),
  SIGIL_TOOL_FILTERED: entry(
    4,
    "The tool is filtered out by includeTools or excludeTools.",
    "Change the filter of the server."
  ),
  SIGIL_SECRET_BLOCKED: entry(
    4,
    "The request holds a known secret and the server may not receive secrets; nothing was sent.",
    "Remove the value, or set allow_secrets = true for this server."
  ),
  SIGIL_REDACTED_WRITEBACK: entry(
    4,
    "The request holds a placeholder that stands for a hidden secret; sending it would destroy data.",
    "Write the real value, or leave the field out."
  ),
  SIGIL_INPUT_REQUIRED: entry(
    4,
    "The server asked for input that nobody can give here.",
    "Run the command in a terminal, or give --answers FILE."
  ),
  // Results
  SIGIL_REMOTE_ERROR: entry(1, "The server answered with a JSON-RPC error.", "The message is the server's."),
  SIGIL_OUTPUT_SCHEMA: entry(
    1,
    "The tool's structured result does not fit the output schema it declares.",
    "Report it to the author of the server; the content is shown."
  ),
  SIGIL_TOOL_ERROR: entry(5, "The tool reported a failure.", "The content says what went wrong."),
  // Ends
  SIGIL_CLEANUP_INCOMPLETE: entry(
    7,
    "Processes of the server could not be confirmed gone.",
    "End the processes named in the message."
  ),
  SIGIL_FINDINGS: entry(1, "The check found something broken.", "Apply the fix lines of the findings."),
  SIGIL_INTERRUPTED: entry(130, "The command was interrupted.", "Run it again."),
  SIGIL_OUTPUT_UNWRITABLE: entry(
    1,
    "What the command prints cannot be written.",
    "Make room, or send the output somewhere else."
  ),
  SIGIL_OUT_OF_FILES: entry(
    1,
    "The system lets this process open no more files.",
    "Raise the limit (ulimit -n), or use fewer servers at once."
  ),
  SIGIL_INTERNAL: entry(1, "A fault inside sigil.", "Report it with the message and the command.")
} as const satisfies Record<string, CodeEntry>

/** A stable error code. */
export type Code = keyof typeof catalogue

/** All codes in the order of the catalogue. */
export const codes = Object.keys(catalogue) as ReadonlyArray<Code> // the keys of a const object

/** The exit code that belongs to `code`. */
export const exitOf = (code: Code): number => catalogue[code].exit

/** Whether `text` is a code of the catalogue. */
export const isCode = (text: string): text is Code => Object.hasOwn(catalogue, text)

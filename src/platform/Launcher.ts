/**
 * A program that starts another one inside some isolation: the one shape of `PidNamespace.ts` and `Sandbox.ts`.
 *
 * The launcher becomes the child of sigil and leads the group; the server is behind it. Killing the launcher's group
 * kills everything behind it.
 */

/** Starts a command inside an isolation. */
export interface Launcher {
  /** Absolute path of the launching program. */
  readonly file: string
  /** What comes before the command. */
  readonly args: ReadonlyArray<string>
  /**
   * How the server's variables travel. Absent: the launcher itself has them. With a function the launcher has none but
   * the marker, and reads what the function gives from descriptor 3: variables such as LD_PRELOAD act on every program
   * that has them, and a launcher still stands outside of what it makes.
   */
  readonly variables?: (variables: { readonly [name: string]: string }) => string
}

/** The command line that runs `file` with `args` through the launcher. */
export const launch = (
  launcher: Launcher,
  file: string,
  args: ReadonlyArray<string>
): { readonly file: string; readonly args: ReadonlyArray<string> } => ({
  file: launcher.file,
  args: [...launcher.args, file, ...args]
})

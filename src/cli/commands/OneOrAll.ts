/** The rule of commands that take one name or `--all`. */

/** What is wrong: neither, or both. */
export const oneOrAll = (input: {
  readonly args: { readonly name: string | undefined }
  readonly options: { readonly all: boolean }
}): string | undefined => {
  if (input.args.name === undefined && !input.options.all) return "Name a server, or give --all."
  if (input.args.name !== undefined && input.options.all) return "Give a name or --all, not both."
  return undefined
}

/** Placeholder: the model of a form; see `server/Elicitor.ts`. */
export interface Form {
  readonly fields: ReadonlyArray<{ readonly name: string }>
}

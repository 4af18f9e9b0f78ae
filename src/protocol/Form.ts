/**
 * A form that a server wants filled in (MCP elicitation; K section 9.14, R section 9.5): the model.
 *
 * A form is flat: one field per property, of a primitive kind or a choice. `FormSchema.ts` reads one from what a server
 * sent, `FormValue.ts` holds values against it, `FormAnswer.ts` makes answers. Texts are the server's: they are within
 * bounds, and whoever shows them escapes them.
 */
import type { Format } from "./FormFormats.ts"

/** What every field has. */
export interface FieldBase {
  /** Exact name of the property. */
  readonly name: string
  /** What people read instead of the name. */
  readonly title?: string
  readonly description?: string
  readonly required: boolean
}

/** A pattern on a linear-time engine. */
export interface Pattern {
  /** As the server wrote it. */
  readonly source: string
  /** Whether it occurs in the text, as JSON Schema means it. */
  readonly test: (text: string) => boolean
}

/** Free text. Lengths in characters (code points). */
export interface TextField extends FieldBase {
  readonly kind: "string"
  readonly format?: Format
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: Pattern
  readonly default?: string
}

/** A number; `integer` has no fraction. */
export interface NumberField extends FieldBase {
  readonly kind: "number" | "integer"
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly default?: number
}

/** Yes or no. */
export interface BooleanField extends FieldBase {
  readonly kind: "boolean"
  readonly default?: boolean
}

/** One option of a choice. */
export interface Choice {
  /** What is sent. */
  readonly value: string
  /** What is shown; the value itself where the server gave nothing else. */
  readonly title: string
}

/** One of several. */
export interface SelectField extends FieldBase {
  readonly kind: "select"
  readonly choices: ReadonlyArray<Choice>
  readonly default?: string
}

/** Any of several, each once. */
export interface MultiField extends FieldBase {
  readonly kind: "multi"
  readonly choices: ReadonlyArray<Choice>
  readonly minItems?: number
  readonly maxItems?: number
  readonly default?: ReadonlyArray<string>
}

/** One field. */
export type Field = TextField | NumberField | BooleanField | SelectField | MultiField

/** A form; without fields it only wants a yes. */
export interface Form {
  /** In the order of the schema; names are unique. */
  readonly fields: ReadonlyArray<Field>
}

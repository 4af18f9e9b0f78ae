/**
 * Reads the fields of one object and collects what is wrong with them.
 *
 * Nothing stops at the first fault: a person who corrects an entry wants to see all of it. Every fault names the
 * field as it is written in the file, what stands there and what is expected. Keys that nobody asked for stay in
 * `unused`, so that each format can treat them its own way.
 */
import {
  childPath,
  type LocatedNode,
  type LocatedObject,
  type LocatedProperty,
  type Position,
  record
} from "./Located.ts"
import { foundText, type Issue, type Issues, kindText } from "./Problem.ts"

/** Which spelling of keys an object uses: TOML has snake_case only, JSON has both. */
export type Spelling = "toml" | "json"

/** Pattern of environment variable names (R section 1.3). */
export const environmentName = /^[A-Za-z_][A-Za-z0-9_]*$/
/** Longest environment variable name in bytes (R section 1.4). */
export const MAX_ENVIRONMENT_NAME = 128

/** The JSON spelling of a key. */
export const camel = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Bounds of a number, both inclusive. */
export interface Range {
  readonly min: number
  readonly max: number
  readonly integer: boolean
  /** Unit for messages, e.g. "seconds". */
  readonly unit: string
}

const rangeText = ({ min, max, integer, unit }: Range): string =>
  `${integer ? "a whole number" : "a number"}${unit === "" ? "" : ` of ${unit}`}${
    Number.isFinite(max) ? ` from ${min} to ${max}` : Number.isFinite(min) ? `, at least ${min}` : ""
  }`

/** Reads fields of one object. Names are given in snake_case. */
export class FieldReader {
  readonly object: LocatedObject
  readonly path: string
  readonly spelling: Spelling
  readonly issues: Issues
  private readonly used = new Set<string>()

  constructor(object: LocatedObject, path: string, spelling: Spelling, issues: Issues) {
    this.object = object
    this.path = path
    this.spelling = spelling
    this.issues = issues
  }

  /** Records a fault. */
  add(field: string, at: Position, text: string, more?: Omit<Issue, "field" | "at" | "text">): void {
    this.issues.push({ field, at, text, ...more })
  }

  /** The field's path as written in the file. */
  pathOf(property: LocatedProperty): string {
    return childPath(this.path, property.key)
  }

  /** The path a missing field would have. */
  missingPath(name: string): string {
    return childPath(this.path, this.spelling === "json" ? camel(name) : name)
  }

  /** The property of that name in any accepted spelling; two spellings at once are a fault. */
  take(name: string): LocatedProperty | undefined {
    const names = this.spelling === "json" && camel(name) !== name ? [camel(name), name] : [name]
    let found: LocatedProperty | undefined
    for (const property of this.object.properties) {
      if (!names.includes(property.key)) continue
      this.used.add(property.key)
      if (found !== undefined && found.key !== property.key)
        this.add(this.pathOf(property), property.at, `this is the same field as ${found.key}; keep one of them`)
      found = property
    }
    return found
  }

  /** Whether the field is written, without using it up. */
  has(name: string): boolean {
    return this.object.properties.some(({ key }) => key === name || (this.spelling === "json" && key === camel(name)))
  }

  /** Marks a key as known by its exact spelling and returns it. */
  takeExact(key: string): LocatedProperty | undefined {
    const found = this.object.properties.findLast((property) => property.key === key)
    if (found !== undefined) this.used.add(key)
    return found
  }

  /** Properties that nobody has taken. */
  unused(): ReadonlyArray<LocatedProperty> {
    return this.object.properties.filter(({ key }) => !this.used.has(key))
  }

  /** Makes every key that nobody has taken a fault. */
  refuseUnused(what: string): void {
    for (const property of this.unused())
      this.add(this.pathOf(property), property.at, `${what} has no key of this name`, { reason: "unknown_key" })
  }

  private wrong(node: LocatedNode, field: string, expected: string): undefined {
    this.add(field, node.at, `found ${foundText(node)}, expected ${expected}`)
    return undefined
  }

  /** A string; `undefined` when absent or faulty. */
  string(name: string, expected = "a string"): string | undefined {
    const property = this.take(name)
    if (property === undefined) return undefined
    const { value } = property
    return value.kind === "string" ? value.value : this.wrong(value, this.pathOf(property), expected)
  }

  /** A string that is not blank and holds no NUL. */
  text(name: string): string | undefined {
    const property = this.take(name)
    if (property === undefined) return undefined
    const { value } = property
    if (value.kind !== "string" || value.value.trim() === "")
      return this.wrong(value, this.pathOf(property), "a string that is not blank")
    const fault = nulFault(value.value)
    if (fault !== undefined) this.add(this.pathOf(property), value.at, fault)
    return value.value
  }

  /** True or false. */
  bool(name: string): boolean | undefined {
    const property = this.take(name)
    if (property === undefined) return undefined
    const { value } = property
    return value.kind === "boolean" ? value.value : this.wrong(value, this.pathOf(property), "true or false")
  }

  /** One of a closed set of words. */
  choice<const A extends string>(name: string, allowed: ReadonlyArray<A>): A | undefined {
    const property = this.take(name)
    return property === undefined ? undefined : this.choiceIn(property, allowed)
  }

  /** One of a closed set of words, in a property that was already taken. */
  choiceIn<const A extends string>(property: LocatedProperty, allowed: ReadonlyArray<A>): A | undefined {
    const { value } = property
    if (value.kind === "string") {
      const match = allowed.find((word) => word === value.value)
      if (match !== undefined) return match
    }
    return this.wrong(value, this.pathOf(property), allowed.map((word) => `"${word}"`).join(" or "))
  }

  /** A number inside bounds. */
  number(name: string, range: Range): number | undefined {
    const property = this.take(name)
    return property === undefined ? undefined : this.numberIn(property.value, this.pathOf(property), range)
  }

  /** A number inside bounds, for a value at hand. */
  numberIn(node: LocatedNode, field: string, range: Range): number | undefined {
    if (
      node.kind === "number" &&
      Number.isFinite(node.value) &&
      node.value >= range.min &&
      node.value <= range.max &&
      (!range.integer || Number.isInteger(node.value))
    )
      return node.value
    this.add(field, node.at, `found ${foundText(node)}, expected ${rangeText(range)}`)
    return undefined
  }

  /** A list of strings; `check` names what is wrong with one. The item's index is part of a fault's path. */
  strings(name: string, check?: (text: string) => string | undefined): ReadonlyArray<string> | undefined {
    const property = this.take(name)
    if (property === undefined) return undefined
    const { value } = property
    const field = this.pathOf(property)
    if (value.kind !== "array") {
      this.add(field, value.at, `found ${kindText(value)}, expected a list of strings`)
      return undefined
    }
    return value.items.flatMap((item, index) => {
      const fault = item.kind === "string" ? (nulFault(item.value) ?? check?.(item.value)) : notAString(item)
      if (fault !== undefined) this.add(`${field}[${index}]`, item.at, fault)
      return item.kind === "string" ? [item.value] : []
    })
  }

  /** Environment variable names, sorted and unique (R section 1.3). */
  variableNames(name: string): ReadonlyArray<string> | undefined {
    const names = this.strings(name, (text) =>
      isEnvironmentName(text) ? undefined : `expected ${environmentNameText}`
    )
    return names === undefined ? undefined : [...new Set(names)].sort()
  }

  /** A map of strings, without a prototype. */
  stringMap(
    name: string
  ): { readonly map: { readonly [key: string]: string }; readonly property: LocatedProperty } | undefined {
    const property = this.take(name)
    if (property === undefined) return undefined
    const inner = this.innerObject(property)
    if (inner === undefined) return undefined
    const field = this.pathOf(property)
    const entries = inner.properties.flatMap(({ key, value }): ReadonlyArray<readonly [string, string]> => {
      const fault = value.kind === "string" ? nulFault(value.value) : notAString(value)
      if (fault !== undefined) this.add(childPath(field, key), value.at, fault)
      return value.kind === "string" ? [[key, value.value]] : []
    })
    return { map: record(entries), property }
  }

  /** A table of keys as a property's value. */
  innerObject(property: LocatedProperty): LocatedObject | undefined {
    if (property.value.kind === "object") return property.value
    this.add(this.pathOf(property), property.value.at, `found ${kindText(property.value)}, expected a table of keys`)
    return undefined
  }

  /** A reader of an inner table; `undefined` when absent or no table. */
  table(name: string): FieldReader | undefined {
    const property = this.take(name)
    if (property === undefined) return undefined
    const inner = this.innerObject(property)
    return inner === undefined ? undefined : new FieldReader(inner, this.pathOf(property), this.spelling, this.issues)
  }
}

/**
 * What would keep a name or pattern from ever matching what a person reads there: invisible characters (Unicode's Cf,
 * such as U+200B), control characters, or white space around it.
 */
export const deadText = (text: string): string | undefined => {
  const hidden = /[\p{Cf}\p{Cc}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/u.exec(text)?.[0]?.codePointAt(0)
  if (hidden !== undefined)
    return `the text holds the invisible character U+${hidden.toString(16).toUpperCase().padStart(4, "0")}, so it matches nothing; remove it`
  return text.trim() === text ? undefined : "the text begins or ends with white space, so it matches nothing; remove it"
}

const nulFault = (text: string): string | undefined =>
  text.includes("\0") ? "the text holds a NUL character, which no program can be given" : undefined

const notAString = (node: LocatedNode): string => `found ${kindText(node)}, expected a string; write it in quotes`

/** Whether a text can name an environment variable (R section 1.4). */
export const isEnvironmentName = (text: string): boolean =>
  environmentName.test(text) && text.length <= MAX_ENVIRONMENT_NAME

/** What `isEnvironmentName` accepts, for messages. */
export const environmentNameText =
  "the name of an environment variable: letters, digits and _, not beginning with a digit, at most 128 characters"

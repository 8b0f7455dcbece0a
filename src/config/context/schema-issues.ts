import type * as z from 'zod'
import type { Issues, Path } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'

type SchemaIssue = z.core.$ZodIssue

const expectedWords: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
}
const absentCodes = new Set(['invalid_type', 'invalid_union', 'invalid_value'])
/** Spellings of "nothing" that a schema accepts and that do not help in a message. */
const silentTypes = new Set(['null', 'undefined'])

/** Reads a value by its schema; undefined, with the problems filed in plain words, if it is invalid. */
export function readSchema<T>(schema: z.ZodType<T>, value: unknown, path: Path, issues: Issues): T | undefined {
  const first = schema.safeParse(value)
  if (first.success) return first.data
  const wrong = reportAll(first.error.issues, schema, value, path, issues)
  return wrong === undefined ? undefined : schema.safeParse(without(value, wrong)).data
}

/**
 * Like readSchema, but continues without unknown keys and wrong values, with placeholders for required values, so
 * that one mistake does not hide the next. `repaired` names what differs from the written value.
 */
export function readRepaired<T>(
  schema: z.ZodType<T>,
  value: unknown,
  path: Path,
  issues: Issues,
): { value: T | undefined; repaired: Path[] } {
  const first = schema.safeParse(value)
  if (first.success) return { value: first.data, repaired: [] }
  const wrong = reportAll(first.error.issues, schema, value, path, issues)
  if (wrong === undefined) return { value: undefined, repaired: [] }
  const left = without(value, wrong)
  const second = schema.safeParse(left)
  const outer = (places: readonly Path[]): Path[] => places.map((place) => [...path, ...place])
  if (second.success) return { value: second.data, repaired: outer(wrong) }
  const missing = second.error.issues
    .flatMap((issue) => spread(issue, left))
    .map((issue): StandIn => ({ path: pathOf(issue), schemas: schemasAt(schema, pathOf(issue)) }))
  const filled = missing.reduce((whole, standIn) => putStandIn(whole, standIn, path), left)
  // The values beside a placeholder in a list's item can only be judged together with it.
  const items = missing.map(({ path: place }) => (place.length > 1 ? place.slice(0, -1) : place))
  return { value: schema.safeParse(filled).data, repaired: outer([...wrong, ...items]) }
}

/** With more, nothing is repaired: each repair reads the whole value. */
const mostProblems = 500

/** Reports the problems, and returns their places; undefined if there are too many. */
function reportAll(
  found: SchemaIssue[],
  schema: z.ZodType,
  value: unknown,
  path: Path,
  issues: Issues,
): Path[] | undefined {
  const spreadOut = found.flatMap((issue) => spread(issue, value))
  const places = spreadOut.flatMap(placesOf)
  for (const issue of spreadOut.slice(0, mostProblems)) report(issue, schema, value, path, issues)
  if (places.length <= mostProblems) return places
  issues.error(path, `has ${places.length} problems, of which the first are shown`)
  return undefined
}

/** Replaces a union's failure with the failures of the form that the value probably has. */
function spread(issue: SchemaIssue, root: unknown): SchemaIssue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const meant = issue.errors.filter((branch) => !branch.some((inner) => isTopType(inner)))
  const branch = meant.length === 1 ? meant[0] : undefined
  if (branch === undefined) return [issue]
  return branch.flatMap((inner) => spread({ ...inner, path: [...issue.path, ...inner.path] } as SchemaIssue, root))
}

const isTopType = (issue: SchemaIssue): boolean =>
  issue.path.length === 0 && (issue.code === 'invalid_type' || issue.code === 'invalid_union')

function report(issue: SchemaIssue, schema: z.ZodType, root: unknown, base: Path, issues: Issues): void {
  const inner = pathOf(issue)
  const path = [...base, ...inner]
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(schema, inner)
    for (const key of issue.keys.slice(0, mostProblems))
      issues.error([...path, key], `unknown key "${key}"${suggestion(key, known)}`)
    return
  }
  const found = valueAt(root, inner)
  const isAbsent = found === undefined && absentCodes.has(issue.code)
  issues.error(path, isAbsent ? 'is required' : describe(issue, found))
}

function describe(issue: SchemaIssue, found: unknown): string {
  switch (issue.code) {
    case 'invalid_type':
    case 'invalid_union':
      // A discriminated union has tried none of its forms.
      if (issue.code === 'invalid_union' && issue.errors.length === 0) return issue.message
      return `expected ${expectedOf(issue).join(' or ')}, found ${foundWords(found)}`
    case 'invalid_value': {
      const words = issue.values.map(String)
      if (typeof found !== 'string') return `expected one of ${words.join(', ')}, found ${foundWords(found)}`
      return `must be one of ${words.join(', ')}, not "${found}"${suggestion(found, words)}`
    }
    case 'too_small':
      if (issue.origin === 'string') return 'must not be empty'
      if (issue.origin === 'array') return 'the list must not be empty'
      return `must be at least ${issue.minimum}, not ${String(found)}`
    case 'too_big':
      if (issue.origin === 'string') return `must not be longer than ${issue.maximum} characters`
      if (issue.origin === 'array') return `the list must not have more than ${issue.maximum} entries`
      return `must be at most ${issue.maximum}, not ${String(found)}`
    case 'invalid_format':
      if (issue.format === 'starts_with' && 'prefix' in issue) {
        return `must start with "${String(issue.prefix)}", not "${String(found)}"`
      }
      return issue.message
    default:
      return issue.message
  }
}

function expectedOf(issue: SchemaIssue): string[] {
  if (issue.code === 'invalid_type') {
    return silentTypes.has(issue.expected) ? [] : [expectedWords[issue.expected] ?? issue.expected]
  }
  if (issue.code !== 'invalid_union') return []
  return [...new Set(issue.errors.flatMap((branch) => branch.flatMap((inner) => expectedOf(inner))))]
}

export function foundWords(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return value === '' ? 'an empty text' : 'text'
  if (typeof value === 'number') return `the number ${value}`
  if (typeof value === 'boolean') return String(value)
  return 'a map'
}

const pathOf = (issue: SchemaIssue): (string | number)[] =>
  issue.path.map((step) => (typeof step === 'number' ? step : String(step)))

function valueAt(root: unknown, path: Path): unknown {
  let value = root
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string | number, unknown>)[step]
  }
  return value
}

/** The schema of a map that lists its keys. */
function keysAt(schema: z.ZodType, path: Path): string[] {
  return schemasAt(schema, path).flatMap((option) => Object.keys(shapeOf(option) ?? {}))
}

/** Every schema that applies to a value at this place. */
function schemasAt(schema: z.ZodType, path: Path): z.core.$ZodType[] {
  let options: z.core.$ZodType[] = [schema]
  for (const step of path) options = options.flatMap(plain).flatMap((option) => inside(option, step))
  return options.flatMap(plain)
}

function plain(schema: z.core.$ZodType): z.core.$ZodType[] {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === 'optional' || def.type === 'nullable' || def.type === 'default') return plain(def.innerType)
  if (def.type === 'union') return def.options.flatMap(plain)
  return [schema]
}

function inside(schema: z.core.$ZodType, step: string | number): z.core.$ZodType[] {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === 'array') return [def.element]
  if (def.type === 'record') return [def.valueType]
  const child = shapeOf(schema)?.[String(step)]
  return child === undefined ? [] : [child]
}

function shapeOf(schema: z.core.$ZodType): Readonly<Record<string, z.core.$ZodType>> | undefined {
  const { def } = (schema as z.core.$ZodTypes)._zod
  return def.type === 'object' ? def.shape : undefined
}

function placesOf(issue: SchemaIssue): Path[] {
  const path = pathOf(issue)
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => [...path, key])
  const lastKey = path.findLastIndex((step) => typeof step === 'string')
  return [path.slice(0, lastKey + 1)]
}

/** A copy without the values at these paths. List positions do not change. */
function without(value: unknown, paths: readonly Path[], at: Path = []): unknown {
  if (paths.some((path) => path.length === at.length && path.every((step, i) => step === at[i]))) return undefined
  if (Array.isArray(value)) return value.map((item, i) => without(item, paths, [...at, i]))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, item]) => [key, without(item, paths, [...at, key])] as const)
  return Object.fromEntries(entries.filter(([key, item]) => item !== undefined || !paths.some((p) => p.at(-1) === key)))
}

/** A required value that is absent or wrong, and the schemas that it may have. */
interface StandIn {
  readonly path: Path
  readonly schemas: readonly z.core.$ZodType[]
}

/**
 * A copy of `whole` with a valid placeholder at the place, so that the rest can be read; the placeholder is never
 * used, since its absence is an error. Unchanged if no valid value is known. `base` makes texts recognizable and
 * unique.
 */
function putStandIn(whole: unknown, { path, schemas }: StandIn, base: Path): unknown {
  const [value] = schemas.flatMap((schema) => acceptable(schema, `/auth/${[...base, ...path].join('.')}`) ?? [])
  return value === undefined ? whole : put(whole, path, value.value)
}

/** The text starts like the URI of a mechanism, the strictest requirement of any schema. */
function acceptable(schema: z.core.$ZodType, text: string): { readonly value: unknown } | undefined {
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'string':
      return { value: text }
    case 'number':
      return { value: 0 }
    case 'boolean':
      return { value: false }
    case 'enum':
      return { value: Object.values(def.entries)[0] }
    case 'array': {
      const item = acceptable(def.element, text)
      return { value: item === undefined ? [] : [item.value] }
    }
    default:
      return undefined
  }
}

function put(whole: unknown, [step, ...rest]: Path, value: unknown): unknown {
  if (step === undefined) return value
  if (Array.isArray(whole)) return whole.map((item, i) => (i === step ? put(item, rest, value) : item))
  if (typeof whole !== 'object' || whole === null) return whole
  return { ...whole, [step]: put((whole as Record<string | number, unknown>)[step], rest, value) }
}

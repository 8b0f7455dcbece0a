import { z } from 'zod'
import type { ReferenceKind } from '#sdk/module/parse-context.ts'

/** What every type of parameter can say. */
export interface ParameterOptions {
  /** Its meaning, for the reference page. */
  readonly about: string
  readonly required?: boolean
  /** The column "Required" of the reference page where `required` and the fallback do not say it, such as "with `events`". */
  readonly requirement?: string
  /** An empty text is a value of a task's field, rather than none. */
  readonly mayBeEmpty?: boolean
  /** Its value is never logged or shown. */
  readonly secret?: boolean
  /** The value names an object of this kind, which must exist. */
  readonly reference?: ReferenceKind
  /** How a reference to a missing object is reported; an error if absent. */
  readonly absentReference?: 'error' | 'warning'
}

/**
 * A parameter of a module, or a field of a task: a Zod schema for a value that is present. The text of the
 * reference page, and the value of an absent one, are in `parameterDescriptions`, since existing YAML also writes
 * `""` for "none".
 */
export type Parameter<T> = z.ZodType<T>

/** A parameter as the reference page shows it. */
export interface ParameterDescription extends ParameterOptions {
  /** Its type on the reference page: text, flag, number, list, one of a, b. */
  readonly type: string
  /** The schema reads a list. */
  readonly many: boolean
  /** The value if the parameter is absent or invalid. */
  readonly fallback: unknown
}

const parameterDescriptions = z.registry<ParameterDescription>()

/** Throws for a schema that no function of this file created. */
export function descriptionOf(parameter: Parameter<unknown>): ParameterDescription {
  const description = parameterDescriptions.get(parameter)
  if (description === undefined) throw new Error('a parameter without a description')
  return description
}

type Required = ParameterOptions & { readonly required: true }
type Defaulted<T> = ParameterOptions & { readonly fallback: T }

function describe<T>(
  schema: z.ZodType,
  type: string,
  fallback: T,
  { about, required, requirement, mayBeEmpty, secret, reference, absentReference }: ParameterOptions,
  many = false,
): Parameter<T> {
  const optional = { required, requirement, mayBeEmpty, secret, reference, absentReference } as ParameterOptions
  return schema.register(parameterDescriptions, { ...optional, about, type, many, fallback }) as Parameter<T>
}

/** A parameter with any text. */
export function text(options: Required | Defaulted<string>): Parameter<string>
export function text(options: ParameterOptions): Parameter<string | undefined>
export function text(options: ParameterOptions & { readonly fallback?: string }): Parameter<string | undefined> {
  const fallback = options.fallback ?? (options.required === true ? '' : undefined)
  return describe(z.string('must be text'), 'text', fallback, options)
}

/** Any number of values, from a YAML list or a repeated name. */
export function list(options: ParameterOptions): Parameter<readonly string[]>
export function list(options: Defaulted<undefined>): Parameter<readonly string[] | undefined>
export function list(options: ParameterOptions): Parameter<readonly string[] | undefined> {
  const fallback = 'fallback' in options ? undefined : []
  return describe(z.array(nonEmpty, 'must be a list'), 'list', fallback, options, true)
}

const nonEmpty = z.string('must be text').min(1, 'must be text')

/** `"true"` or `"false"`, in any letter case. */
export function flag(options: ParameterOptions & { readonly fallback?: boolean }): Parameter<boolean> {
  const read = (value: string): boolean => {
    const word = value.toLowerCase()
    if (word === 'true' || word === 'false') return word === 'true'
    throw new Error(`must be "true" or "false", not "${value}"`)
  }
  return describe(converted(read), 'flag', options.fallback ?? false, options)
}

/** A parameter with a whole number within bounds. */
export function wholeNumber(
  options: ParameterOptions & { readonly fallback: number; readonly min?: number; readonly max?: number },
): Parameter<number> {
  const { fallback, min = 0, max = Number.MAX_SAFE_INTEGER } = options
  const read = (value: string): number => {
    const number = /^-?\d{1,15}$/.test(value) ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    throw new Error(`must be a whole number from ${min} to ${max}, not "${value}"`)
  }
  const range = options.max === undefined ? '' : ` from ${min} to ${max}`
  return describe(converted(read), `number${range}`, fallback, options)
}

/** With the fallback `undefined`, an absent parameter is undefined. */
export function choice<const T extends string>(words: readonly T[], options: Defaulted<T>): Parameter<T>
export function choice<const T extends string>(
  words: readonly T[],
  options: Defaulted<undefined>,
): Parameter<T | undefined>
export function choice<const T extends string>(
  words: readonly T[],
  options: Defaulted<T | undefined>,
): Parameter<T | undefined> {
  const all = words.join(', ')
  const error = ({ input }: { input?: unknown }): string => `must be one of ${all}, not "${String(input)}"`
  return describe(z.enum(words, { error }), `one of ${all}`, options.fallback, options)
}

type Parse<T> = (value: string) => T

/** A text with its own syntax; `parse` throws an Error whose message says what is wrong with it. */
export function parsed<T>(type: string, parse: Parse<T>, options: Defaulted<T>): Parameter<T>
export function parsed<T>(type: string, parse: Parse<T>, options: ParameterOptions): Parameter<T | undefined>
export function parsed<T>(
  type: string,
  parse: Parse<T>,
  options: ParameterOptions & { readonly fallback?: T },
): Parameter<T | undefined> {
  return describe(converted(parse), type, options.fallback, options)
}

/** Any number of such texts. */
export const parsedList = <T>(
  type: string,
  parse: Parse<T>,
  options: ParameterOptions & { readonly fallback?: readonly T[] },
): Parameter<readonly T[]> =>
  describe(z.array(converted(parse), 'must be a list'), type, options.fallback ?? [], options, true)

/** Any YAML value, which the module reads itself; undefined if absent. */
export const anything = (options: ParameterOptions): Parameter<unknown> =>
  describe(z.unknown(), 'any', undefined, options)

function converted<T>(convert: Parse<T>) {
  return z.transform((value: unknown, { issues }) => {
    try {
      if (typeof value === 'string') return convert(value)
      throw new Error('must be text')
    } catch (error) {
      issues.push({ code: 'custom', input: value, message: error instanceof Error ? error.message : String(error) })
      return z.NEVER
    }
  })
}

import type { z } from 'zod'
import type { Issues, Path } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import { descriptionOf, type Parameter } from '#sdk/module/parameter-types.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

/** Keys are parameter names; a name such as `map.<attribute>.source` matches every parameter of that form. */
export type ParameterTable = Readonly<Record<string, Parameter<unknown>>>

type IsForm<K> = K extends `${string}<${string}>${string}` ? true : false

/** The values that a parameter table reads. */
export type ParsedParameters<T extends ParameterTable> = {
  readonly [K in keyof T]: IsForm<K> extends true ? ReadonlyMap<string, z.output<T[K]>> : z.output<T[K]>
}

/**
 * Reads a module's parameters by its table and reports unknown names, missing required ones, several values where
 * one is expected, invalid values, and references to missing objects. An invalid parameter has its fallback, an
 * invalid list is empty. An empty text counts as absent, since existing YAML writes `""` for "none".
 */
export function readParameters<T extends ParameterTable>(
  table: T,
  params: Params,
  issues: Issues,
  context: ParseContext,
): ParsedParameters<T> {
  const rows = Object.entries(table)
  const forms = rows.flatMap(([name, row]) => (name.includes('<') ? [{ name, row, pattern: formPattern(name) }] : []))
  const result: Record<string, unknown> = Object.create(null)
  const read = (name: string, row: Parameter<unknown>): unknown => {
    const values = params.values(name).filter((value) => value !== '')
    const { many, fallback } = descriptionOf(row)
    if (values.length > 1 && !many) {
      issues.error(params.pathOf(name), `parameter "${name}" takes one value, not ${values.length}`)
      return fallback
    }
    return readValue(row, {
      name,
      given: many && values.length > 0 ? values : values[0],
      pathOf: (index) => params.pathOf(name, index),
      firstPath: params.pathOf(name, 0),
      isSecret: params.isSecret(name),
      required: `parameter "${name}" is required`,
      describe: (message) => `"${name}": ${message}`,
      issues,
      context,
    })
  }
  for (const [name, row] of rows) result[name] = name.includes('<') ? new Map<string, unknown>() : read(name, row)
  for (const name of params.names()) {
    if (Object.hasOwn(table, name)) continue
    const form = forms.find((candidate) => candidate.pattern.test(name))
    if (form === undefined) {
      issues.error(params.pathOf(name), `unknown parameter "${name}"${suggestion(name, Object.keys(table))}`)
      continue
    }
    const variable = form.pattern.exec(name)?.[1] ?? name
    const map = result[form.name] as Map<string, unknown>
    map.set(variable, read(name, form.row))
  }
  return result as ParsedParameters<T>
}

/** Reports problems with parameters at their places. */
export interface ParameterReport {
  /** The parameter has a value other than an empty text. */
  isSet(name: string): boolean
  /** Reports an error at the parameter, or where it would be. */
  error(name: string, message: string): void
  /** Reports that a parameter, if it is set, must not be. */
  refuse(name: string, reason: string): void
}

/** For the checks of a module between its parameters. */
export function parameterReport(params: Params, issues: Issues): ParameterReport {
  const isSet = (name: string) => params.values(name).some((value) => value !== '')
  const error = (name: string, message: string) => issues.error(params.pathOf(name), message)
  return {
    isSet,
    error,
    refuse: (name, reason) => {
      if (isSet(name)) error(name, `"${name}" ${reason}`)
    },
  }
}

/** The parameters of a module that uses their values as they are: to be spread into its definition. */
export const withParameters = <T extends ParameterTable>(parameters: T) => ({
  parameters,
  parse: (params: Params, issues: Issues, context: ParseContext) => readParameters(parameters, params, issues, context),
})

/**
 * Reads the fields of a task, or of an object in one, by its table. Numbers and booleans are accepted as texts. The caller
 * reports unknown fields.
 */
export function readFields<T extends ParameterTable>(
  table: T,
  fields: Readonly<Record<string, unknown>>,
  path: Path,
  issues: Issues,
  context: Pick<ParseContext, 'refer'>,
): { readonly [K in keyof T]: z.output<T[K]> } {
  const read = ([name, row]: [string, Parameter<unknown>]) => {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined
    const pathOf = (index?: number): Path => (index === undefined ? [...path, name] : [...path, name, index])
    const { type, mayBeEmpty = false } = descriptionOf(row)
    const parsed = readValue(row, {
      name,
      given: value === null || (value === '' && !mayBeEmpty) ? undefined : scalarsAsText(value, type),
      pathOf,
      firstPath: pathOf(),
      isSecret: false,
      required: `"${name}" is required`,
      describe: (message, index) => `${index === undefined ? '' : 'every entry of '}"${name}" ${message}`,
      issues,
      context,
    })
    return [name, parsed] as const
  }
  return Object.fromEntries(Object.entries(table).map(read)) as { readonly [K in keyof T]: z.output<T[K]> }
}

interface Reading {
  readonly name: string
  /** Undefined when absent. */
  readonly given: unknown
  /** Where the value is, or its n-th entry. */
  pathOf(index?: number): Path
  /** Where a single value is. */
  readonly firstPath: Path
  readonly isSecret: boolean
  /** The message for an absent value. */
  readonly required: string
  /** The message for an invalid value, or for its n-th entry. */
  describe(message: string, index?: number): string
  readonly issues: Issues
  readonly context: Pick<ParseContext, 'refer'>
}

function readValue(schema: Parameter<unknown>, reading: Reading): unknown {
  const { name, given, pathOf, firstPath, issues, context } = reading
  const { type, many, fallback, required, secret, reference, absentReference } = descriptionOf(schema)
  if (given === undefined) {
    if (required === true) issues.error(pathOf(), reading.required)
    return fallback
  }
  const isSecret = secret === true || reading.isSecret
  if (reference !== undefined && isSecret) {
    issues.error(pathOf(), `parameter "${name}" names another object, so it cannot be a secret`)
  } else if (reference !== undefined) {
    for (const [i, value] of (Array.isArray(given) ? given : [given]).entries()) {
      if (typeof value === 'string') context.refer(reference, value, many ? pathOf(i) : firstPath, absentReference)
    }
  }
  const result = schema.safeParse(given)
  if (result.success) return result.data
  for (const { path, message } of result.error.issues) {
    const index = typeof path[0] === 'number' ? path[0] : undefined
    const shown = isSecret ? `the secret is not a ${type} that can be used` : message
    issues.error(index === undefined ? firstPath : pathOf(index), reading.describe(shown, index))
  }
  return many ? [] : fallback
}

function scalarsAsText(value: unknown, type: string): unknown {
  if (type === 'any') return value
  if (Array.isArray(value)) return value.map((entry) => scalarsAsText(entry, type))
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
}

function formPattern(name: string): RegExp {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/<[^>]+>/, '(.+)')
  return new RegExp(`^${escaped}$`)
}

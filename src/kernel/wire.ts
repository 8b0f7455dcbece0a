import * as z from 'zod'

/** The type of a schema's values: read-only, with optional members left out rather than undefined. */
export type Wire<S extends z.ZodType> = ReadOnly<z.output<S>>

type ReadOnly<T> = T extends readonly (infer I)[]
  ? readonly ReadOnly<I>[]
  : T extends object
    ? { readonly [K in keyof T]: ReadOnly<Exclude<T[K], undefined>> }
    : T

type WithDates<T> = T extends string
  ? T | (string extends T ? Date : never)
  : T extends readonly (infer I)[]
    ? readonly WithDates<I>[]
    : T extends object
      ? { readonly [K in keyof T]: WithDates<T[K]> | (object extends Pick<T, K> ? undefined : never) }
      : T

/** Copies only the members that the schema names, at any depth, so that clients see nothing else. Dates become ISO 8601. */
export function wireForm<S extends z.ZodObject>(schema: S, from: WithDates<Wire<S>>): Wire<S> {
  return shown(schema, from) as Wire<S>
}

function shown(schema: unknown, value: unknown): unknown {
  if (value instanceof Date) return value.toISOString()
  if (schema instanceof z.ZodOptional) return shown(schema.unwrap(), value)
  if (schema instanceof z.ZodArray && Array.isArray(value)) return value.map((item) => shown(schema.element, item))
  if (!(schema instanceof z.ZodObject) || typeof value !== 'object' || value === null) return value
  const given = value as Readonly<Record<string, unknown>>
  return Object.fromEntries(
    Object.entries(schema.shape).flatMap(([name, member]): [string, unknown][] =>
      given[name] === undefined ? [] : [[name, shown(member, given[name])]],
    ),
  )
}

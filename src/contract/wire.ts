import type * as z from 'zod'

/** The type of a schema's values: read-only, with optional members left out rather than undefined. */
export type Wire<S extends z.ZodType> = ReadOnly<z.output<S>>

type ReadOnly<T> = T extends readonly (infer I)[]
  ? readonly ReadOnly<I>[]
  : T extends object
    ? { readonly [K in keyof T]: ReadOnly<Exclude<T[K], undefined>> }
    : T

type WithDates<T> = {
  readonly [K in keyof T]: T[K] | (string extends T[K] ? Date : never) | (object extends Pick<T, K> ? undefined : never)
}

/** Copies only the members that the schema names, so that clients see nothing else. Dates become ISO 8601. */
export function wireForm<S extends z.ZodObject>(schema: S, from: WithDates<Wire<S>>): Wire<S> {
  const given = from as Readonly<Record<string, unknown>>
  const members = Object.keys(schema.shape).flatMap((member): [string, unknown][] => {
    const value = given[member]
    if (value === undefined) return []
    return [[member, value instanceof Date ? value.toISOString() : value]]
  })
  return Object.fromEntries(members) as Wire<S>
}

import type * as z from 'zod'

/** What a schema describes, as code uses it: read-only, and absent members are left out. */
export type Wire<S extends z.ZodType> = ReadOnly<z.output<S>>

type ReadOnly<T> = T extends readonly (infer I)[]
  ? readonly ReadOnly<I>[]
  : T extends object
    ? { readonly [K in keyof T]: ReadOnly<Exclude<T[K], undefined>> }
    : T

import type * as z from 'zod'
import type { Path } from '#kernel/issues.ts'

/** A required value that is absent or wrong, and the schemas that it may have. */
export interface StandIn {
  readonly path: Path
  readonly schemas: readonly z.core.$ZodType[]
}

/**
 * A copy of `whole` with something acceptable at the place, so that the rest can be read; nothing of it is ever used,
 * since its absence is an error. Unchanged where nothing acceptable is known. `base` makes texts tell-tale and unlike.
 */
export function putStandIn(whole: unknown, { path, schemas }: StandIn, base: Path): unknown {
  const [value] = schemas.flatMap((schema) => acceptable(schema, `/auth/${[...base, ...path].join('.')}`) ?? [])
  return value === undefined ? whole : put(whole, path, value.value)
}

/** The text starts as an address of a mechanism must, the strictest that any schema asks of a text. */
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

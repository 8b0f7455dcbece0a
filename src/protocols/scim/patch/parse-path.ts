import { tokenize } from '#protocols/scim/filter/filter-tokens.ts'
import { type FilterOptions, parseElementFilter } from '#protocols/scim/filter/parse-filter.ts'
import type { PatchTarget } from '#protocols/scim/patch/patch-operation.ts'
import type { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { Schema } from '#protocols/scim/schema.ts'
import { quoted, scimError } from '#protocols/scim/scim-error.ts'

export const maxPathLength = 4096

export type PatchPath =
  | { readonly kind: 'schema'; readonly schema: Schema; readonly extension?: string }
  | ({ readonly kind: 'attribute' } & PatchTarget)

/**
 * `attr`, `attr.sub`, `attr[filter]`, `attr[filter].sub`, each with or without a schema's URN, or the URN alone.
 * Undefined when the schemas have no such attribute. Throws invalidPath or invalidFilter when it is malformed.
 */
export function parsePath(text: string, schema: ResourceSchema, options: FilterOptions = {}): PatchPath | undefined {
  if (text.length > maxPathLength)
    throw scimError('invalidPath', `path must not be longer than ${maxPathLength} characters.`)
  const resolved = schema.resolve(/^[^\s()[\]"]*/.exec(text)?.[0] ?? '', options.strict)
  if (resolved === undefined) return undefined
  const [, ...rest] = tokenize(text, 'invalidPath')
  if (rest.length === 0) return resolved
  const close = rest.findLastIndex((token) => token.kind === ']')
  const tail = rest.slice(close + 1)
  const [after] = tail
  if (rest[0]?.kind !== '[' || close < 0 || tail.length > 1) throw malformed(text)
  if (after !== undefined && (after.kind !== 'word' || !after.text.startsWith('.'))) throw malformed(text)
  if (resolved.kind === 'schema' || resolved.sub !== undefined || !resolved.attribute.multiValued) throw malformed(text)
  const filter = parseElementFilter(rest.slice(1, close), schema, resolved, options)
  if (after === undefined) return { ...resolved, filter }
  const sub = schema.subAttribute(resolved.attribute, after.text.slice(1))
  return sub === undefined ? undefined : { ...resolved, filter, sub }
}

const malformed = (text: string) =>
  scimError('invalidPath', `path: ${quoted(text)} is malformed. Use attr, attr.sub, attr[filter] or attr[filter].sub.`)

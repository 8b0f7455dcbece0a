import type { AttributeSource } from '#identity/attributes.ts'
import { matches } from '#identity/filter/evaluate.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { SearchPage, SearchQuery } from '#sdk/target.ts'

/** The page of those that match, by key, so that pages stay what they are whatever order the plug-in gives. */
export function selectPage<T>(
  found: readonly T[],
  query: SearchQuery,
  sourceOf: (item: T) => AttributeSource,
  keyOf: (item: T) => string,
): SearchPage<T> {
  const { filter, offset, limit } = query
  const matching = filter === undefined ? found : found.filter((item) => matches(filter, sourceOf(item)))
  const byKey = new Map(matching.map((item) => [keyOf(item), item]))
  const keys = [...byKey.keys()].sort()
  const items = keys.slice(offset, offset + limit).flatMap((key) => byKey.get(key) ?? [])
  return { items, total: keys.length }
}

/** The login and the id can be filtered on like attributes; an attribute of that name goes first. */
export const userSource = ({ userID, id, attributes, groups }: User): AttributeSource =>
  named(attributes, { userid: [userID], id: [id ?? userID], groups })

export const groupSource = ({ id, name, description, members, attributes }: Group): AttributeSource =>
  named(attributes, { id: [id], name: [name], description: description === undefined ? [] : [description], members })

function named(
  attributes: AttributeSource | undefined,
  fields: Readonly<Record<string, readonly string[]>>,
): AttributeSource {
  return {
    values: (name) => {
      const values = attributes?.values(name) ?? []
      const key = name.toLowerCase()
      if (values.length > 0 || !Object.hasOwn(fields, key)) return values
      return fields[key] ?? []
    },
  }
}

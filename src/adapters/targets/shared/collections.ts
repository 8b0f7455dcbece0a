import { timeAttribute, timeValues } from '#identity/entry-times.ts'
import type { AttributeSource } from '#identity/filter/attribute-source.ts'
import type { Group } from '#identity/group.ts'
import type { Collection } from '#identity/paging.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'

/** Filters can use the login and the id like attributes; an attribute of that name wins. */
const userSource = (user: User): AttributeSource =>
  named(user, { userid: [user.userID], id: [user.id ?? user.userID], groups: user.groups })

const groupSource = (group: Group): AttributeSource => {
  const { id, name, description, members } = group
  return named(group, { id: [id], name: [name], description: description === undefined ? [] : [description], members })
}

function named(entry: User | Group, fields: Readonly<Record<string, readonly string[]>>): AttributeSource {
  const { attributes } = entry
  return {
    values: (name) => {
      const time = timeAttribute(name)
      if (time !== undefined) return timeValues(time, entry)
      const values = attributes?.values(name) ?? []
      const key = name.toLowerCase()
      if (values.length > 0 || !Object.hasOwn(fields, key)) return values
      return fields[key] ?? []
    },
  }
}

/** Ordered by login and by name, so that pages are stable whatever order the target returns. */
export const userCollection: Collection<User> = { of: 'users', source: userSource, key: ({ userID }) => userID }
export const groupCollection: Collection<Group> = { of: 'groups', source: groupSource, key: ({ name }) => name }

/** The page with the attributes of the query. */
export function withAttributes(page: SearchPage<User>, { attributes }: SearchQuery): SearchPage<User> {
  if (attributes === undefined) return page
  return { ...page, items: page.items.map((user) => ({ ...user, attributes: user.attributes.pick(attributes) })) }
}

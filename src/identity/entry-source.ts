import { timeAttribute, timeValues } from '#identity/entry-times.ts'
import type { AttributeSource } from '#identity/filter/attribute-source.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'

/** Filters can use the login and the id like attributes; an attribute of that name wins. */
export const userEntrySource = (user: User): AttributeSource =>
  named(user, { userid: [user.userID], id: [user.id ?? user.userID], groups: user.groups })

export const groupEntrySource = (group: Group): AttributeSource => {
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

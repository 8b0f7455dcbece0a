import type { AttributeSource } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import type { Collection } from '#identity/page-in-memory.ts'
import type { User } from '#identity/user.ts'

/** The login and the id can be filtered on like attributes; an attribute of that name goes first. */
const userSource = ({ userID, id, attributes, groups }: User): AttributeSource =>
  named(attributes, { userid: [userID], id: [id ?? userID], groups })

const groupSource = ({ id, name, description, members, attributes }: Group): AttributeSource =>
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

/** By login and by name, so that pages stay what they are whatever order the target gives. */
export const userCollection: Collection<User> = { of: 'users', source: userSource, key: ({ userID }) => userID }
export const groupCollection: Collection<Group> = { of: 'groups', source: groupSource, key: ({ name }) => name }

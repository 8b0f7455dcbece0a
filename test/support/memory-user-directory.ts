import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'

const missing = (): never => {
  throw new Error('not in this fake')
}

/** Users by login, for tests that need no database; they can be created, found, listed and deleted. */
export function memoryUserDirectory(): UserDirectory {
  const users = new Map<string, User>()
  return {
    findByLogin: async (userID) => users.get(userID.toLowerCase()),
    searchUsers: async ({ offset, limit }) => {
      const items = [...users.values()].slice(offset, offset + limit)
      return { items, total: users.size }
    },
    create: async (user) => {
      const key = user.userID.toLowerCase()
      if (users.has(key)) throw new GatewayError('CONFLICT', `there is a user "${user.userID}"`)
      users.set(key, { ...user, attributes: Attributes.from(user.attributes) })
      return []
    },
    delete: async (userID) => {
      users.delete(userID.toLowerCase())
      return []
    },
    findById: missing,
    sync: missing,
    findGroupByName: missing,
    findGroupById: missing,
    searchGroups: missing,
    createGroup: missing,
    updateGroup: missing,
    deleteGroup: missing,
    changeMembers: missing,
    changeMemberGroups: missing,
    containingGroups: missing,
    close: async () => {},
  }
}

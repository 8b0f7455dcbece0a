const paging = ['offset', 'limit', 'page', 'cursor'] as const

/** What the API may be asked for: the places of each request, and whether a body takes attributes beside them. */
export const operations = {
  findUser: { places: ['userID'], answer: 'one', about: 'Finds a user by login.' },
  findUserById: { places: ['id'], answer: 'one', about: 'Finds a user by the API’s own id.' },
  searchUsers: { places: paging, answer: 'list', about: 'Lists all users, page by page.' },
  userGroups: {
    places: ['userID', 'id', ...paging],
    answer: 'list',
    about: 'Lists the names of a user’s groups, where the user itself does not tell them.',
  },
  createUser: { places: ['userID'], attributes: 'user', about: 'Creates a user.' },
  updateUser: { places: ['userID', 'id', 'version'], attributes: 'user', about: 'Changes a user.' },
  deleteUser: { places: ['userID', 'id', 'version'], about: 'Deletes a user.' },
  setPassword: { places: ['userID', 'id', 'password'], about: 'Sets a user’s password.' },
  findGroup: { places: ['group'], answer: 'one', about: 'Finds a group by name.' },
  findGroupById: { places: ['groupId'], answer: 'one', about: 'Finds a group by the API’s own id.' },
  searchGroups: { places: paging, answer: 'list', about: 'Lists all groups, page by page.' },
  groupMembers: {
    places: ['group', 'groupId', ...paging],
    answer: 'list',
    about: 'Lists the members of a group, where the group itself does not tell them.',
  },
  createGroup: { places: ['group'], attributes: 'group', about: 'Creates a group.' },
  updateGroup: { places: ['group', 'groupId', 'version'], attributes: 'group', about: 'Changes a group.' },
  deleteGroup: { places: ['group', 'groupId', 'version'], about: 'Deletes a group.' },
  addMember: { places: ['userID', 'id', 'group', 'groupId'], about: 'Adds a user to a group.' },
  removeMember: { places: ['userID', 'id', 'group', 'groupId'], about: 'Removes a user from a group.' },
} as const satisfies Readonly<Record<string, OperationKind>>

interface OperationKind {
  readonly places: readonly string[]
  readonly answer?: 'one' | 'list'
  readonly attributes?: 'user' | 'group'
  readonly about: string
}

export type OperationName = keyof typeof operations

export const operationNames = Object.keys(operations) as readonly OperationName[]

export const isOperation = (name: string): name is OperationName => Object.hasOwn(operations, name)

export const kindOf = (name: OperationName): OperationKind => operations[name]

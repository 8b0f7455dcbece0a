/** The operations for a value, with their methods. Every lookup and write of a target is here. */
export const targetOperations = {
  'create user': 'createUser',
  'find by login': 'findUser',
  'stored at': 'storedAt',
  'look up by login': 'lookupUserByLogin',
  'read rows': 'readRows',
  'look up by id': 'lookupUserById',
  'users equal': 'searchUsers',
  'users substring': 'searchUsers',
  'users and/or/not': 'searchUsers',
  'users page': 'searchUsers',
  'users sorted': 'searchUsers',
  'users position': 'searchUsers',
  'change attributes': 'syncUser',
  'change memberships': 'syncUser',
  'rename user': 'syncUser',
  'change user of version': 'syncUser',
  'delete user': 'deleteUser',
  'delete user of version': 'deleteUser',
  'set password': 'setUserPassword',
  'create group': 'createGroup',
  'find group': 'findGroup',
  'look up group by name': 'lookupGroupByName',
  'members of group': 'lookupGroupByName',
  'look up group by id': 'lookupGroupById',
  'groups equal': 'searchGroups',
  'groups substring': 'searchGroups',
  'groups and/or/not': 'searchGroups',
  'groups page': 'searchGroups',
  'groups position': 'searchGroups',
  'change group': 'updateGroup',
  'rename group': 'updateGroup',
  'nest group': 'changeMemberGroups',
  'groups above': 'containingGroups',
  'delete group': 'deleteGroup',
  'delete group of version': 'deleteGroup',
} as const

/** The same for a directory insert, and for one with writes. */
export const insertOperations = {
  'read person': 'search',
  'read group': 'search',
  equal: 'search',
  substring: 'search',
  'and/or/not': 'search',
  'by membership': 'search',
  page: 'search',
  position: 'search',
  'is member': 'isMember',
  members: 'members',
  'check password': 'bind',
  'set entry password': 'setEntryPassword',
  'add person': 'addPerson',
  'set password': 'setPassword',
  'remove person': 'removePerson',
  'list people': 'listPeople',
  'position in list': 'listPeople',
} as const

export type TargetOperation = keyof typeof targetOperations
export type InsertOperation = keyof typeof insertOperations

export type Tally<O extends string> = Partial<Record<O, number>>

/** They close it, or compute names, places and defaults without sending a value. */
const noOperations = new Set([
  'constructor',
  'close',
  'loginOf',
  'nameOf',
  'entryOf',
  'personEntry',
  'storable',
  'requirePlaces',
  'checkPlaces',
  'defaultValue',
])

/** The methods of an object that are operations. Throws for one without an operation in the table. */
export function offeredMethods(offering: object, operations: Readonly<Record<string, string>>): ReadonlySet<string> {
  const known = new Set(Object.values(operations))
  const names = new Set<string>()
  for (
    let level: object | null = offering;
    level !== null && level !== Object.prototype;
    level = Object.getPrototypeOf(level)
  ) {
    for (const name of Object.getOwnPropertyNames(level)) names.add(name)
  }
  const methods = [...names].filter((name) => typeof Reflect.get(offering, name) === 'function')
  const offered = methods.filter((name) => !noOperations.has(name))
  const unknown = offered.filter((name) => !known.has(name))
  if (unknown.length > 0) throw new Error(`no hostile value goes through ${unknown.join(', ')}: add it to the table`)
  return new Set(offered)
}

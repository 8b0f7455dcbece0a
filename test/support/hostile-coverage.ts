import { expect } from 'vitest'
import type { DirectoryInsert } from '#sdk/directory-insert.ts'
import type { Target } from '#sdk/target.ts'

/** What a value goes through, and the method that is called for it. Every look-up and write of a target is here. */
export const targetOperations = {
  'create user': 'createUser',
  'find by login': 'findUser',
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
  'delete group': 'deleteGroup',
  'delete group of version': 'deleteGroup',
} as const

/** The same of a directory insert, and of one that people can be written to. */
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
  'add person': 'addPerson',
  'set password': 'setPassword',
  'remove person': 'removePerson',
  'list people': 'listPeople',
  'position in list': 'listPeople',
} as const

export type TargetOperation = keyof typeof targetOperations
export type InsertOperation = keyof typeof insertOperations

/** What is offered beyond the least, and how many of all values go where not each one can in bounded time. */
interface TargetRow {
  /** Those that the row speaks of; what one class has two forms of has two rows. */
  readonly className: string
  readonly groups: boolean
  readonly renames: boolean
  readonly versions: boolean
  readonly passwords: boolean
  readonly bounds: Bounds
}

interface InsertRow {
  readonly className: string
  readonly people: boolean
  readonly passwords: boolean
  readonly bounds: Bounds
}

/**
 * Each value stands in an attribute. A login and the name of a group can hold one, so that every `perName` of them has
 * them to itself; with `HOSTILE_EACH=1` in the environment, every single one does, whatever time that takes.
 */
export interface Bounds {
  readonly values: number
  readonly perName: number
  /** A password costs a hash, made to be slow, wherever the server is not quick at it. */
  readonly passwords: number
  /** Made up positions and versions, of which a target reads all it holds, or asks the server, before it refuses them. */
  readonly positions: number
  readonly versions: number
}

const each = process.env['HOSTILE_EACH'] === '1'
/** How long one trial may take. */
export const trialMillis = each ? 14_400_000 : 600_000

const sample = (values: number): number => (each ? 10_000 : values)
const bounds = (perName: number, more: Partial<Bounds> = {}): Bounds => ({
  values: 10_000,
  perName: each ? 1 : perName,
  passwords: 10_000,
  positions: 1000,
  versions: 1000,
  ...more,
})

const all = { groups: true, renames: true, versions: true, passwords: true } as const
const hashed = { passwords: 20 } as const
/** Where another row puts all values through the same code. */
const again = { values: sample(2000) } as const

/** Target x what it offers x how many values. */
export const targetCoverage = {
  'database on SQLite': { ...all, className: 'targets.Database', bounds: bounds(10, hashed) },
  'database on PostgreSQL': { ...all, className: 'targets.Database', bounds: bounds(20, { ...hashed, ...again }) },
  'SQL tables on SQLite': { ...all, className: 'targets.Sql', bounds: bounds(20, hashed) },
  'SQL tables on PostgreSQL': { ...all, className: 'targets.Sql', bounds: bounds(20, { ...hashed, ...again }) },
  'SQL statements on SQLite': {
    ...all,
    className: 'targets.Sql',
    groups: false,
    versions: false,
    bounds: bounds(20, { ...hashed, ...again }),
  },
  'SQL statements on PostgreSQL': {
    ...all,
    className: 'targets.Sql',
    groups: false,
    versions: false,
    bounds: bounds(20, { ...hashed, ...again }),
  },
  'LDAP on OpenLDAP': { ...all, className: 'targets.Ldap', bounds: bounds(5, { positions: 100 }) },
  /** The application hashes passwords. */
  'webhook on the example': {
    ...all,
    className: 'targets.Webhook',
    bounds: bounds(20, { ...hashed, positions: 100, versions: 300 }),
  },
  /** Each write is a run of a workflow there: a sample. All 10,000 are in attributes in a test of their own. */
  'SCIM on a second gateway': {
    ...all,
    className: 'targets.Scim',
    passwords: false,
    bounds: bounds(5, { values: sample(500) }),
  },
  'plug-in': {
    ...all,
    className: 'targets.Plugin',
    groups: false,
    versions: false,
    passwords: false,
    bounds: bounds(10),
  },
  'legacy script': { ...all, className: 'targets.Plugin', renames: false, versions: false, bounds: bounds(10, again) },
  'Kubernetes users by request': {
    ...all,
    className: 'targets.KubernetesUsers',
    groups: false,
    renames: false,
    passwords: false,
    bounds: bounds(1),
  },
  /** A sample, as each look-up of a group lists all users; the rest is in the requests, above. */
  'Kubernetes users on an API server': {
    ...all,
    className: 'targets.KubernetesUsers',
    groups: false,
    renames: false,
    passwords: false,
    bounds: bounds(10, { values: sample(1000), positions: 20, versions: 50 }),
  },
  'Kubernetes role bindings by request': {
    ...all,
    className: 'targets.KubernetesRoleBindings',
    groups: false,
    renames: false,
    versions: false,
    passwords: false,
    bounds: bounds(1),
  },
  /** Users have no attributes there, so a value is a login or nothing. */
  'Kubernetes role bindings on an API server': {
    ...all,
    className: 'targets.KubernetesRoleBindings',
    groups: false,
    renames: false,
    versions: false,
    passwords: false,
    bounds: { ...bounds(1), values: sample(200), positions: 20 },
  },
} as const satisfies Record<string, TargetRow>

export const insertCoverage = {
  'database on SQLite': {
    className: 'directory.Database',
    people: true,
    passwords: true,
    bounds: bounds(10, { passwords: 40 }),
  },
  'database on PostgreSQL': {
    className: 'directory.Database',
    people: true,
    passwords: true,
    bounds: bounds(20, { passwords: 40, ...again }),
  },
  'LDAP on OpenLDAP': {
    className: 'directory.Ldap',
    people: false,
    passwords: true,
    bounds: bounds(10, { passwords: 200, positions: 100, ...again }),
  },
  target: { className: 'directory.Target', people: false, passwords: false, bounds: bounds(10, again) },
} as const satisfies Record<string, InsertRow>

/** These hold nobody: nothing can be looked up or written. */
export const holdNobody = ['targets.Kubernetes'] as const
/** Other words for the same code, under other names of attributes. */
export const sameCode: Readonly<Record<string, string>> = { 'targets.ActiveDirectory': 'targets.Ldap' }

export type TargetRowName = keyof typeof targetCoverage
export type InsertRowName = keyof typeof insertCoverage
export type Tally<O extends string> = Partial<Record<O, number>>

/** Where a value stands in an attribute, of which an entry has many. */
const byValue = new Set<string>([
  ...['create user', 'users equal', 'users substring', 'users and/or/not', 'users page', 'users sorted'],
  ...['change attributes', 'add person', 'read person', 'equal', 'substring', 'and/or/not', 'page', 'list people'],
])

function countOf(operation: string, { values, perName, passwords, positions, versions }: Bounds): number {
  if (byValue.has(operation)) return values
  const names = Math.ceil(values / perName)
  if (operation.endsWith('password')) return Math.min(names, passwords)
  if (operation.includes('position')) return Math.min(names, positions)
  return operation.endsWith('of version') ? Math.min(names, versions) : names
}

/** What the table promises for a row. */
export function promised<O extends string>(
  operations: Readonly<Record<O, string>>,
  methods: ReadonlySet<string>,
  bounds: Bounds,
  isOffered: (operation: O) => boolean,
): Tally<O> {
  const offered = (Object.keys(operations) as O[]).filter((one) => methods.has(operations[one]) && isOffered(one))
  return Object.fromEntries(offered.map((operation) => [operation, countOf(operation, bounds)])) as Tally<O>
}

/** They end it, or reckon with names and ask nobody. */
const noOperations = new Set(['constructor', 'close', 'loginOf', 'personEntry'])

/** The methods of an object that are operations. Throws for one that the table has no operation for. */
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

/** The trial did with the target what its row says, and the target offers no more than that. */
export function expectTargetCovered(name: TargetRowName, target: Target, tally: Tally<TargetOperation>): void {
  const row: TargetRow = targetCoverage[name]
  const methods = offeredMethods(target, targetOperations)
  const offered = {
    groups: methods.has('createGroup'),
    renames: target.renamesUsers === true,
    versions: target.keepsVersions === true,
    passwords: methods.has('setUserPassword'),
  }
  const { groups, renames, versions, passwords } = row
  expect(offered).toEqual({ groups, renames, versions, passwords })
  const isOffered = (operation: TargetOperation): boolean =>
    operation === 'rename user' ? renames : operation.endsWith('of version') ? versions : true
  expect(tally).toEqual(promised(targetOperations, methods, row.bounds, isOffered))
}

export function expectInsertCovered(name: InsertRowName, insert: DirectoryInsert, tally: Tally<InsertOperation>): void {
  const row: InsertRow = insertCoverage[name]
  const methods = offeredMethods(insert, insertOperations)
  expect({ people: methods.has('addPerson'), passwords: methods.has('bind') }).toEqual({
    people: row.people,
    passwords: row.passwords,
  })
  expect(tally).toEqual(promised(insertOperations, methods, row.bounds, () => true))
}

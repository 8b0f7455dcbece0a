import { expect } from 'vitest'
import type { DirectoryInsert } from '#sdk/directory/directory-insert.ts'
import type { Target } from '#sdk/target/target.ts'
import {
  type InsertOperation,
  insertOperations,
  offeredMethods,
  type Tally,
  type TargetOperation,
  targetOperations,
} from '#testing/hostile-operations.ts'

/** What is offered beyond the least, and how many of all values go where in the short form. */
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
 * Each value is in an attribute. A login and the name of a group can hold one, so that every `perName` of them has
 * them to itself. In the full form, with `HOSTILE_VALUES`, every single one does, in every place and operation.
 */
export interface Bounds {
  readonly values: number
  readonly perName: number
  /** Of which each takes a connection of its own to be checked. */
  readonly passwords: number
  /** Made up positions and versions, of which a target reads all it holds, or asks the server, before it refuses them. */
  readonly positions: number
  readonly versions: number
}

/** How many of all values there are in the full form; undefined in the short one. */
const full = process.env['HOSTILE_VALUES'] === undefined ? undefined : Number(process.env['HOSTILE_VALUES'])
/** How long one trial may take. */
export const trialMillis = full === undefined ? 600_000 : 14_400_000

/** How long one call may take, in whatever a target is told that by: on a busy machine none is too late. */
export const callMillis = 60_000

const bounds = (perName: number, more: Partial<Bounds> = {}): Bounds =>
  full === undefined
    ? { values: 2000, perName, passwords: 2000, positions: 200, versions: 200, ...more }
    : { values: full, perName: 1, passwords: full, positions: full, versions: full }

const all = { groups: true, renames: true, versions: true, passwords: true } as const
/** Where another row puts all values through the same code. */
const again = { values: 500 } as const

/** Target x what it offers x how many values. */
export const targetCoverage = {
  'database on SQLite': { ...all, className: 'targets.Database', bounds: bounds(10) },
  'database on PostgreSQL': { ...all, className: 'targets.Database', bounds: bounds(20, again) },
  'SQL tables on SQLite': { ...all, className: 'targets.Sql', bounds: bounds(20) },
  'SQL tables on PostgreSQL': { ...all, className: 'targets.Sql', bounds: bounds(20, again) },
  'SQL statements on SQLite': {
    ...all,
    className: 'targets.Sql',
    groups: false,
    versions: false,
    bounds: bounds(20, again),
  },
  'SQL statements on PostgreSQL': {
    ...all,
    className: 'targets.Sql',
    groups: false,
    versions: false,
    bounds: bounds(20, again),
  },
  'LDAP on OpenLDAP': { ...all, className: 'targets.Ldap', bounds: bounds(5, { positions: 100 }) },
  'webhook on the example': {
    ...all,
    className: 'targets.Webhook',
    bounds: bounds(20, { positions: 100, versions: 300 }),
  },
  /** Each write is a run of a workflow there. 10,000 of them are in attributes in a test of their own. */
  'SCIM on a second gateway': {
    ...all,
    className: 'targets.Scim',
    passwords: false,
    bounds: bounds(5, { values: 500 }),
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
  /** Each look-up of a group lists all users; the rest is in the requests, above. */
  'Kubernetes users on an API server': {
    ...all,
    className: 'targets.KubernetesUsers',
    groups: false,
    renames: false,
    passwords: false,
    bounds: bounds(10, { values: 1000, positions: 20, versions: 50 }),
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
    bounds: bounds(1, { values: 200, positions: 20 }),
  },
} as const satisfies Record<string, TargetRow>

export const insertCoverage = {
  'database on SQLite': {
    className: 'directory.Database',
    people: true,
    passwords: true,
    bounds: bounds(10),
  },
  'database on PostgreSQL': {
    className: 'directory.Database',
    people: true,
    passwords: true,
    bounds: bounds(20, again),
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

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
} from '#testing/hostile/hostile-operations.ts'
import { fullValues } from '#testing/hostile/sample.ts'

/** The optional operations of a target, and the number of values per place in the short form. */
interface TargetRow {
  /** The class of the row; a class with two forms has two rows. */
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
 * Each value is in an attribute. Only every `perName`-th value is also a login and the name of a group. In the full
 * form, with `HOSTILE_VALUES`, every value is, in every place and operation.
 */
export interface Bounds {
  readonly values: number
  readonly perName: number
  /** Each takes its own connection to check. */
  readonly passwords: number
  /** Invented positions and versions. To reject them, a target reads all its data, or calls the server. */
  readonly positions: number
  readonly versions: number
}

/** The time limit of one trial. */
export const trialMillis = fullValues === undefined ? 600_000 : 14_400_000

/** The time limit of one call in the target's parameters: no call times out on a busy machine. */
export const callMillis = 60_000

const bounds = (perName: number, more: Partial<Bounds> = {}): Bounds =>
  fullValues === undefined
    ? { values: 400, perName, passwords: 400, positions: 40, versions: 40, ...more }
    : { values: fullValues, perName: 1, passwords: fullValues, positions: fullValues, versions: fullValues }

const all = { groups: true, renames: true, versions: true, passwords: true } as const
/** Another row puts all values through the same code. */
const again = { values: 250 } as const

/** Target x its operations x the number of values. */
export const targetCoverage = {
  'database on SQLite': { ...all, className: 'targets.Database', bounds: bounds(10) },
  'database on PostgreSQL': { ...all, className: 'targets.Database', bounds: bounds(10, again) },
  'SQL tables on SQLite': { ...all, className: 'targets.Sql', bounds: bounds(10) },
  'SQL tables on PostgreSQL': { ...all, className: 'targets.Sql', bounds: bounds(10, again) },
  'SQL statements on SQLite': {
    ...all,
    className: 'targets.Sql',
    groups: false,
    versions: false,
    bounds: bounds(10, again),
  },
  'SQL statements on PostgreSQL': {
    ...all,
    className: 'targets.Sql',
    groups: false,
    versions: false,
    bounds: bounds(10, again),
  },
  'LDAP on OpenLDAP': { ...all, className: 'targets.Ldap', bounds: bounds(5) },
  'webhook on the example': {
    ...all,
    className: 'targets.Webhook',
    bounds: bounds(10),
  },
  /** Each write is a workflow run there. Another test puts many more of them in attributes. */
  'SCIM on a second gateway': {
    ...all,
    className: 'targets.Scim',
    passwords: false,
    bounds: bounds(5, again),
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
  /** Each lookup of a group lists all users; the requests above cover the rest. */
  'Kubernetes users on an API server': {
    ...all,
    className: 'targets.KubernetesUsers',
    groups: false,
    renames: false,
    passwords: false,
    bounds: bounds(10, { positions: 20 }),
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
  /** Users have no attributes there, so a value can only be a login. */
  'Kubernetes role bindings on an API server': {
    ...all,
    className: 'targets.KubernetesRoleBindings',
    groups: false,
    renames: false,
    versions: false,
    passwords: false,
    bounds: bounds(1, { values: 100, positions: 20 }),
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
    bounds: bounds(10, again),
  },
  'LDAP on OpenLDAP': {
    className: 'directory.Ldap',
    people: false,
    passwords: true,
    bounds: bounds(10, again),
  },
  target: { className: 'directory.Target', people: false, passwords: false, bounds: bounds(10, again) },
} as const satisfies Record<string, InsertRow>

/** These have no users: nothing can be looked up or written. */
export const targetsWithoutUsers = ['targets.ArgoCD', 'targets.Kubernetes', 'targets.RemoteGateway'] as const
/** Aliases of the same code, with other names of attributes. */
export const sameCode: Readonly<Record<string, string>> = { 'targets.ActiveDirectory': 'targets.Ldap' }

export type TargetRowName = keyof typeof targetCoverage
export type InsertRowName = keyof typeof insertCoverage

/** Operations with values in attributes, of which an entry has many. */
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

/** The table's promise for a row. */
export function promised<O extends string>(
  operations: Readonly<Record<O, string>>,
  methods: ReadonlySet<string>,
  bounds: Bounds,
  isOffered: (operation: O) => boolean,
): Tally<O> {
  const offered = (Object.keys(operations) as O[]).filter((one) => methods.has(operations[one]) && isOffered(one))
  return Object.fromEntries(offered.map((operation) => [operation, countOf(operation, bounds)])) as Tally<O>
}

/** The trial covered the operations of the target's row, and the target offers no more. */
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

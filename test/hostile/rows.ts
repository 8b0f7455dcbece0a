import type { InsertRowName, TargetRowName } from '#testing/hostile-coverage.ts'

/** Where the trial of a row is: a tier, a file of it, and what the test's name begins with, after that of its suite. */
export interface TrialPlace {
  readonly tier: 'unit' | 'conformance' | 'kube'
  readonly file: string
  readonly test: string
}

export type HostileRow = TargetRowName | `directory: ${InsertRowName}`

const at = (tier: TrialPlace['tier'], file: string, test: string): TrialPlace => ({ tier, file, test })
const targets = 'src/modules/targets'
const inserts = 'src/modules/directory-inserts'
const database = `${targets}/database/database-hostile.conformance.test.ts`
const sql = `${targets}/sql/sql-hostile.conformance.test.ts`
const plugins = `${targets}/plugin/legacy-target.conformance.test.ts`
const directory = `${inserts}/database/database.conformance.test.ts`

/** All rows of the table of hostile values, the quickest first. */
export const places: Readonly<Record<HostileRow, TrialPlace>> = {
  'Kubernetes role bindings by request': at(
    'unit',
    `${targets}/kubernetes-role-bindings/role-bindings-hostile.test.ts`,
    'each hostile value',
  ),
  'Kubernetes users by request': at(
    'unit',
    `${targets}/kubernetes-users/kubernetes-users-hostile.test.ts`,
    'each hostile value',
  ),
  'database on SQLite': at('conformance', database, 'SQLite each goes'),
  'plug-in': at('conformance', plugins, 'plug-in: each'),
  'directory: target': at('conformance', `${inserts}/target/target-hostile.conformance.test.ts`, 'each hostile value'),
  'directory: database on SQLite': at('conformance', directory, 'SQLite each hostile value'),
  'SQL tables on SQLite': at('conformance', sql, 'SQLite tables: each'),
  'SQL statements on SQLite': at('conformance', sql, 'SQLite statements: each'),
  'database on PostgreSQL': at('conformance', database, 'PostgreSQL each goes'),
  'directory: database on PostgreSQL': at('conformance', directory, 'PostgreSQL each hostile value'),
  'SQL tables on PostgreSQL': at('conformance', sql, 'PostgreSQL tables: each'),
  'SQL statements on PostgreSQL': at('conformance', sql, 'PostgreSQL statements: each'),
  'LDAP on OpenLDAP': at('conformance', `${targets}/ldap/ldap-hostile.conformance.test.ts`, 'each goes'),
  'directory: LDAP on OpenLDAP': at('conformance', `${inserts}/ldap/ldap-hostile.conformance.test.ts`, 'each goes'),
  'webhook on the example': at('conformance', `${targets}/webhook/injection.conformance.test.ts`, 'each hostile value'),
  'legacy script': at('conformance', plugins, 'legacy script: each'),
  'Kubernetes role bindings on an API server': at(
    'kube',
    `${targets}/kubernetes-role-bindings/kubernetes-role-bindings.kube.test.ts`,
    'each hostile value',
  ),
  'Kubernetes users on an API server': at(
    'kube',
    `${targets}/kubernetes-users/kubernetes-users.kube.test.ts`,
    'each hostile value',
  ),
  'SCIM on a second gateway': at('conformance', `${targets}/scim/scim-injection.conformance.test.ts`, 'each goes'),
}

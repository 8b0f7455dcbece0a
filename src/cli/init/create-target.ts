import { closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf, WrongUsage } from '#cli/command-line/command-line.ts'
import { resultCodeOf, resultCodes } from '#protocols/ldap/ldap-failure.ts'
import { LdapServer } from '#protocols/ldap/ldap-server.ts'
import { openDatabase } from '#protocols/sql/open-database.ts'
import type { GatewayPlan } from './plan.ts'
import { targetSchema } from './target.ts'

const timeoutMillis = 20_000

/** Creates what config/target.yaml assumes of the system: tables, or entries above users and groups. Returns what it did. */
export async function createTarget({ target }: GatewayPlan): Promise<string> {
  try {
    if (target.kind === 'sql') return await createTables(target)
    if (target.kind === 'ldap') return await createEntries(target)
  } catch (error) {
    throw new Error(`--create-target: ${messageOf(error)}. Nothing was written.`, { cause: error })
  }
  throw new WrongUsage(`--create-target has no effect with --target ${target.kind}`)
}

/** The file of an SQL target with SQLite. */
export const sqliteFile = ({ dialect, secret }: GatewayPlan['target']): string | undefined =>
  dialect === 'sqlite' ? secret?.slice('sqlite:'.length) : undefined

/** All tables or none. Throws if one of them exists. */
async function createTables(target: GatewayPlan['target']): Promise<string> {
  const { secret: url = '', dialect = 'sqlite' } = target
  const file = sqliteFile(target)
  const isNew = file !== undefined && !existsSync(file)
  if (isNew && !existsSync(dirname(file))) {
    throw new Error(`the folder ${dirname(file)} does not exist. Create it first`)
  }
  if (file !== undefined && isNew) closeSync(openSync(file, 'wx', 0o600))
  const database = await openDatabase({ url, timeoutMillis, maxConnections: 1, onIdleLoss: () => {} })
  try {
    const statements = targetSchema(dialect)
      .replaceAll(/^--.*$/gm, '')
      .split(';')
    await database.transaction(async (tx) => {
      for (const text of statements) if (text.trim() !== '') await tx.run({ sql: text, params: [] })
    })
  } catch (error) {
    if (file !== undefined && isNew) rmSync(file)
    throw error
  } finally {
    await database.close()
  }
  return 'Created the tables of target-schema.sql in the database.'
}

async function createEntries({ values, secret, certificate }: GatewayPlan['target']): Promise<string> {
  const { TARGET_URL = '', TARGET_BASE = '', TARGET_USER = '' } = values
  const server = new LdapServer({
    name: 'the LDAP server',
    url: TARGET_URL,
    ca: certificate,
    startTls: false,
    credentials: { dn: TARGET_USER, password: secret ?? '' },
    timeoutMillis,
    maxConnections: 2,
    idleMillis: 1000,
    pageSize: 100,
    referrals: 'ignore',
  })
  try {
    for (const name of ['people', 'groups']) {
      await server
        .add(`ou=${name},${TARGET_BASE}`, [
          ['objectClass', ['organizationalUnit']],
          ['ou', [name]],
        ])
        .catch((error: unknown) => {
          if (resultCodeOf(error) !== resultCodes.entryAlreadyExists) throw error
        })
    }
  } finally {
    server.close()
  }
  return `ou=people,${TARGET_BASE} and ou=groups,${TARGET_BASE} exist.`
}

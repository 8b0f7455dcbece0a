import { expect, test } from 'vitest'
import { entryIdentity, formerIdentity, identitiesOf, issuerIdentity, type UserRef } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { type Migration, migrate, migration, readMigrations } from '#storage/client/migrate.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { builderFor, dynamic } from '#storage/sql/queries.ts'
import { listRuns } from '#storage/sql/run-reads.ts'
import { SqlApprovalStore } from '#storage/sql/sql-approval-store.ts'
import { SqlDelegationStore } from '#storage/sql/sql-delegation-store.ts'
import { SqlPortalStore } from '#storage/sql/sql-portal-store.ts'
import { SqlUserDirectory } from '#storage/sql/sql-user-directory.ts'

const first = migration('0001_first.sql', 'create table first (a bigint); create table second (a bigint);')
const later = migration('0002_later.sql', 'create table third (a bigint);')

/** How databases are brought to the present form; `connect` connects again and again to the test's own one. */
export function migrationConformance(connect: () => Promise<() => SqlClient>): void {
  const run = (client: SqlClient, migrations: readonly Migration[]) =>
    migrate(client, migrations, systemClock, silentLogger)
  const applied = async (client: SqlClient) =>
    (
      await client.query(
        dynamic(builderFor(client.dialect).selectFrom('schema_migrations').select('name').orderBy('name')),
      )
    ).map(({ name }) => name)

  test('each migration runs once, and later ones follow', async () => {
    const client = (await connect())()
    await run(client, [first])
    await run(client, [first])
    await run(client, [first, later])
    expect(await applied(client)).toEqual(['0001_first.sql', '0002_later.sql'])
  })

  test('many who start at the same time migrate once', async () => {
    const open = await connect()
    const clients = Array.from({ length: 5 }, () => open())
    await Promise.all(clients.map((client) => run(client, [first, later])))
    for (const client of clients) expect(await applied(client)).toHaveLength(2)
  })

  test('a migration that fails leaves nothing behind', async () => {
    const client = (await connect())()
    await run(client, [first])
    const broken = migration('0003_broken.sql', 'create table fourth (a bigint); create table first (a bigint);')
    await expect(run(client, [first, later, broken])).rejects.toThrow(/first/)
    expect(await applied(client)).toEqual(['0001_first.sql'])
    await run(client, [first, later])
    expect(await applied(client)).toHaveLength(2)
  })

  test('a database of a newer program is refused', async () => {
    const client = (await connect())()
    await run(client, [first, later])
    await expect(run(client, [first])).rejects.toThrow(/newer version.*0002_later/)
  })

  test('a migration that was changed after its release is refused, but not for its line ends', async () => {
    const client = (await connect())()
    await run(client, [first])
    await run(client, [migration(first.name, first.script.replaceAll('; ', ';\r\n').replaceAll(';\r\n', '; '))])
    await expect(run(client, [migration(first.name, `${first.script}\n-- changed`)])).rejects.toThrow(
      /0001_first.*changed/,
    )
  })

  test('a migration that would come before one that has run is refused', async () => {
    const client = (await connect())()
    await run(client, [later])
    await expect(run(client, [first, later])).rejects.toThrow(/0001_first.*before/)
  })

  test('the migrations of the program run, and run again', async () => {
    const client = (await connect())()
    const migrations = readMigrations(client.dialect)
    expect(migrations.length).toBeGreaterThan(0)
    await run(client, migrations)
    await run(client, migrations)
    expect(await applied(client)).toEqual(migrations.map(({ name }) => name))
  })

  test('what entries held before they held it in one piece is still there', async () => {
    const client = (await connect())()
    const migrations = readMigrations(client.dialect)
    await run(
      client,
      migrations.filter(({ name }) => name < '0005'),
    )
    const db = builderFor(client.dialect)
    const value = (name: string, position: number, text: string) => ({
      entry: 7,
      collection: 3,
      name_key: name.toLowerCase(),
      position,
      name,
      value: text,
      value_key: text.toLowerCase(),
      long_key: null,
      number: null,
    })
    await client.transaction(async (tx) => {
      const named = { pk: 3, directory: 'old', kind: 'users' }
      await tx.run(dynamic(db.insertInto('collections').values(named)))
      const times = { version: 4, created: 1, modified: 2 }
      const old = { pk: 7, collection: 3, id: 'id7', name: 'Ada', key: 'ada', number: null, ...times }
      await tx.run(dynamic(db.insertInto('entries').values(old)))
      const rows = [value('Mail', 1, 'b"@x'), value('Mail', 0, 'a@x'), value('sn', 0, 'Lovelace')]
      await tx.run(dynamic(db.insertInto('attributes').values(rows)))
    })
    await run(client, migrations)
    const directory = new SqlUserDirectory(client, 'old', systemClock, async () => {})
    const found = await directory.findByLogin('ada')
    expect(found?.attributes.toObject()).toEqual({ Mail: ['a@x', 'b"@x'], sn: ['Lovelace'] })
    expect(found?.version).toBe('4')
  })

  test('rows from before identities belong to the user who has their login', async () => {
    const client = (await connect())()
    const migrations = readMigrations(client.dialect)
    await run(
      client,
      migrations.filter(({ name }) => name < '0018'),
    )
    const rows = [
      `insert into runs (id, name, definition, state, subject, subject_key, requestor, requestor_key, caller, data, attempt,
        fence, lease_until, due, touched, created, updated) values ('r', 'w', 'h', 'waiting', 'Bob', 'bob', 'Ann', 'ann',
        'Svc', '{}', 0, 0, 0, 0, 0, 1, 1)`,
      `insert into approvals (id, run, step, label, state, opened, allow_self, rules, data, escalation, version)
        values ('a', 'r', 1, 'l', 'open', 1, 0, '[]', '{}', 0, 1)`,
      "insert into approval_approvers (approval, approver_key, approver, open) values ('a', 'boss', 'Boss', 1)",
      `insert into delegations (id, login, login_key, deputy, deputy_key, starts, ends)
        values ('d', 'Boss', 'boss', 'Deputy', 'deputy', 0, 9999999999999)`,
      "insert into portal_marks (login_key, list, kind, name, at) values ('ann', 'favourite', 'url', 'wiki', 1)",
    ]
    await client.transaction(async (tx) => {
      for (const row of rows) await tx.run({ sql: row, params: [], name: undefined })
    })
    await run(client, migrations)
    const user = (login: string): UserRef => ({ identity: entryIdentity('people', `id of ${login}`), login })
    const runs = (query: object) => listRuns(client, { limit: 5, ...query }).then((page) => page.runs)
    const [found] = await runs({ requestedBy: user('ANN') })
    expect(found).toMatchObject({ id: 'r', who: { caller: formerIdentity('svc') } })
    expect(await runs({ about: user('bob') })).toHaveLength(1)
    for (const query of [{ requestedBy: user('bob') }, { about: user('ann') }]) expect(await runs(query)).toEqual([])
    const approvals = new SqlApprovalStore(client)
    expect((await approvals.listForApprovers(identitiesOf(user('boss')), { limit: 5 })).approvals).toHaveLength(1)
    expect((await approvals.get('a'))?.approvers).toEqual([{ login: 'Boss', identity: formerIdentity('boss') }])
    const delegations = new SqlDelegationStore(client)
    expect(await delegations.representedBy(user('deputy'))).toMatchObject([{ login: 'Boss' }])
    expect(await delegations.listOf(user('boss'))).toHaveLength(1)
    const portal = new SqlPortalStore(client)
    expect(await portal.marks(user('ann'), 'favourite')).toMatchObject([{ name: 'wiki' }])
    const external = (login: string): UserRef => ({ identity: issuerIdentity('https://idp', login), login })
    for (const query of [{ requestedBy: external('ann') }, { about: external('bob') }]) {
      expect(await runs(query)).toEqual([])
    }
    expect(await delegations.representedBy(external('deputy'))).toEqual([])
    expect(await delegations.listOf(external('boss'))).toEqual([])
    expect(await delegations.deputiesOf(external('boss'))).toEqual([])
    expect(await delegations.remove(external('boss'), 'd')).toBe(false)
    await portal.unmark(external('ann'), 'favourite', { kind: 'url', name: 'wiki' })
    expect(await portal.marks(external('ann'), 'favourite')).toEqual([])
    expect(await portal.marks(user('ann'), 'favourite')).toHaveLength(1)
    await portal.unmark(user('ann'), 'favourite', { kind: 'url', name: 'wiki' })
    expect(await portal.marks(user('ann'), 'favourite')).toEqual([])
  })

  test('registrations that wait may only create accounts from then on; other runs stay as they are', async () => {
    const client = (await connect())()
    const migrations = readMigrations(client.dialect)
    await run(
      client,
      migrations.filter(({ name }) => name < '0018'),
    )
    const started = (id: string, requestor: string, touched: number): string[] => [
      `insert into runs (id, name, definition, state, subject, subject_key, requestor, requestor_key, data, attempt,
        fence, lease_until, due, touched, created, updated) values ('${id}', 'w', 'h', 'waiting', '${id}', '${id}',
        '${requestor}', '${requestor}', '{"format":1,"user":{}}', 0, 0, 0, 0, ${touched}, 1, 1)`,
      `insert into approvals (id, run, step, label, state, opened, allow_self, rules, data, escalation, version)
        values ('of ${id}', '${id}', 1, 'l', 'open', 1, 0, '[]', '{}', 0, 1)`,
    ]
    const held = (id: string): string =>
      `insert into reservations (key, owner, run, expires) values ('${id}', '${id}', '${id}', 1)`
    const rows = [
      ...started('registration', 'anonymous', 0),
      ...started('own', 'own', 0),
      ...started('touched', 'anonymous', 1),
      ...started('other', 'anonymous', 0),
      ...['registration', 'own', 'touched'].map(held),
    ]
    await client.transaction(async (tx) => {
      for (const row of rows) await tx.run({ sql: row, params: [], name: undefined })
    })
    await run(client, migrations)
    const db = builderFor(client.dialect)
    const found = await client.query(dynamic(db.selectFrom('runs').select(['id', 'data']).orderBy('id')))
    expect(found.filter(({ data }) => data.includes('newAccount'))).toEqual([
      { id: 'registration', data: '{"newAccount":{"unique":[],"created":[]},"format":1,"user":{}}' },
    ])
    const marked = db.selectFrom('approvals').select('run').where('new_account', '=', 1)
    expect(await client.query(dynamic(marked))).toEqual([{ run: 'registration' }])
  })
}

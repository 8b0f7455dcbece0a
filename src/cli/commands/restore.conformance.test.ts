import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { migratedSchema, postgresUrl, runSql } from '#testing/databases/postgres.ts'
import { auditRow } from '#testing/databases/workflow-stores.ts'
import { runCommand } from '#testing/gateway/command.ts'

describe.skipIf(postgresUrl() === '')('a restore of PostgreSQL is finished', () => {
  /** The anchor after some records, in a database that the key of the data folder seals. */
  async function anchorAfter(url: string, data: string, records: number): Promise<string> {
    const auditKeys = await loadAuditKeys({ environment: {}, dataFolder: data }, 'gateway')
    const storage: Storage = openStorage({ url, clock: systemClock, log: silentLogger, auditKeys })
    try {
      await storage.ready()
      await storage.audit.authenticate()
      for (let i = 0; i < records; i++) await storage.audit.append([auditRow(`row-${i}`)])
      return `${JSON.stringify(await storage.audit.anchor())}\n`
    } finally {
      await storage.close()
    }
  }

  test('sessions end, the audit gets an entry, and lost records are reported', async () => {
    const [url, data] = [await migratedSchema(), temporaryFolder()]
    const [same, newer] = [join(data, 'same.jsonl'), join(data, 'newer.jsonl')]
    writeFileSync(same, await anchorAfter(url, data, 2))
    writeFileSync(newer, await anchorAfter(`sqlite:${join(data, 'lost.db')}`, data, 50))
    await runSql(
      url,
      `insert into sessions (id, application, user_id, user_key, data, created, touched, idle_seconds, expires)
       values ('s', 'portal', 'ada', 'ada', '{}', 1, 1, 1, 9000000000000)`,
    )
    const restore = (...more: string[]) => runCommand(['restore', '--database', url, '--data', data, '--yes', ...more])
    expect(await restore('--anchor', same)).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/has every record[\s\S]*Ended 1 session,[\s\S]*Finished: start the gateways/),
    })
    expect(await runSql(url, 'select id from sessions')).toEqual([])
    expect(await restore('--anchor', newer)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/lost: chain 0: records \d+ to 50 are in anchors and not in the backup/),
    })
    const entries = await runSql(url, `select reason from audit where changes like '%"database"%' order by time`)
    expect(entries.map(({ reason }) => reason)).toEqual([
      '1 session ended',
      expect.stringMatching(/^0 sessions ended; chain 0: records \d+ to 50/),
    ])
    expect(await runCommand(['audit', 'verify', '--database', url, '--data', data])).toMatchObject({ code: 0 })
  })

  test.each([
    [
      'trigger keep of sessions',
      `create or replace function keep() returns trigger language plpgsql as 'begin return null; end';
       create trigger keep before delete on sessions for each row execute function keep()`,
    ],
    ['rule keep of sessions', 'create rule keep as on delete to sessions do instead nothing'],
    ['policy hide of sessions', 'create policy hide on sessions using (false)'],
  ])('a database whose dump brought the %s is refused', async (name, code) => {
    const [url, data] = [await migratedSchema(), temporaryFolder()]
    // Another test gets the schema.
    onTestFinished(async () => void (await runSql(url, `drop ${name.replace(' of ', ' on ')}`)))
    await anchorAfter(url, data, 1)
    for (const each of code.split(';\n')) await runSql(url, each)
    expect(await runCommand(['restore', '--database', url, '--data', data, '--yes'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`contains the ${name}`),
    })
    expect(await runSql(url, `select name from schema_migrations where name = 'restore'`)).toEqual([])
  })

  test('a changed audit is refused, and nothing changes', async () => {
    const [url, data] = [await migratedSchema(), temporaryFolder()]
    await anchorAfter(url, data, 2)
    await runSql(url, `update audit set requestor = 'mallory'`)
    const refused = await runCommand(['restore', '--database', url, '--data', data, '--yes'])
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/changed: [\s\S]*Nothing was changed/) })
    expect(await runSql(url, `select id from audit where changes like '%"database"%'`)).toEqual([])
    expect(await runSql(url, `select name from schema_migrations where name = 'restore'`)).toEqual([])
  })
})

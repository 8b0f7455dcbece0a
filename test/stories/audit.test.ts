import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StoryGateway, startCallWorkflow } from '#testing/call-workflow-story.ts'
import { until } from '#testing/gateway-process.ts'
import { freshSchema, postgresUrl, runSql } from '#testing/postgres.ts'

type Sql = (statement: string) => Promise<void>

describe('the audit on SQLite', () =>
  story(undefined, (gateway) => async (statement) => {
    const database = new DatabaseSync(join(gateway.process.dataFolder, 'gatehouse.db'))
    try {
      database.exec(statement)
    } finally {
      database.close()
    }
  }))

describe.skipIf(postgresUrl() === '')('the audit on PostgreSQL', () => {
  let url = ''
  story(
    async () => {
      url = await freshSchema()
      return url
    },
    () => async (statement) => void (await runSql(url, statement)),
  )
})

/** Beside the gateway, which goes on all the time. */
function story(databaseUrl: (() => Promise<string>) | undefined, sqlOf: (gateway: StoryGateway) => Sql): void {
  let gateway: StoryGateway
  let sql: Sql
  beforeAll(async () => {
    gateway = await startCallWorkflow(await databaseUrl?.())
    sql = sqlOf(gateway)
    const token = await gateway.token('svc')
    for (let i = 0; i < 40; i++) await onboard(`user-${i}`, token)
  })
  afterAll(async () => gateway?.close())

  async function onboard(uid: string, token: string): Promise<void> {
    const response = await fetch(`${gateway.process.url}/call-workflow`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        name: 'onboard',
        uidAttributeName: 'uid',
        user: { attributes: [{ name: 'uid', values: [uid] }] },
        requestParams: { team: 'blue' },
      }),
    })
    expect(response.status).toBe(200)
  }

  const verify = () => gateway.command('audit', 'verify')
  const exported = async () =>
    (await gateway.command('audit', 'export')).output
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  /** The records of the chain that has the most, in their order. */
  async function records(): Promise<{ chain: number; number: number; hash: string }[]> {
    const found = new Map<string, { chain: number; number: number; hash: string }>()
    for (const { record } of await exported()) found.set(`${record.chain}/${record.number}`, record)
    const chains = Map.groupBy(found.values(), ({ chain }) => chain)
    return [...chains.values()].sort((a, b) => b.length - a.length)[0] ?? []
  }

  test('verifies as it was written, and is exported whole', async () => {
    expect(await verify()).toMatchObject({ code: 0, output: expect.stringMatching(/^\d+ records checked: all as/) })
    const subjects = new Set((await exported()).map(({ subject }) => subject))
    expect(subjects).toEqual(new Set(Array.from({ length: 40 }, (_, i) => `user-${i}`)))
  })

  test('a changed record is named, and no other', async () => {
    const [, record] = await records()
    if (record === undefined) throw new Error('a chain with two records is needed')
    const place = `chain = ${record.chain} and chain_seq = ${record.number}`
    await sql(`update audit set requestor = requestor || 'x' where ${place}`)
    expect(await verify()).toMatchObject({
      code: 1,
      output: expect.stringMatching(
        new RegExp(
          `^changed: chain ${record.chain}, record ${record.number}, row .*\\n\\d+ records checked: 1 problem`,
        ),
      ),
    })
    await sql(`update audit set requestor = substr(requestor, 1, length(requestor) - 1) where ${place}`)
    expect((await verify()).code).toBe(0)
  })

  test('a removed record is named, the last of a chain too', async () => {
    for (const at of [0, -1]) {
      const record = (await records()).at(at)
      if (record === undefined) throw new Error('a record is needed')
      const place = `chain = ${record.chain} and chain_seq = ${record.number}`
      await sql(`create table kept as select * from audit where ${place}`)
      await sql(`delete from audit where ${place}`)
      expect(await verify()).toMatchObject({
        code: 1,
        output: expect.stringMatching(new RegExp(`^removed: chain ${record.chain}, record ${record.number}\\n`)),
      })
      await sql('insert into audit select * from kept')
      await sql('drop table kept')
      expect((await verify()).code).toBe(0)
    }
  })

  test('an inserted record is named, within the chains and outside', async () => {
    const last = (await records()).at(-1)
    if (last === undefined) throw new Error('a record is needed')
    const columns = 'time, requestor, requestor_key, subject, subject_key, workflow_id, workflow_name, target, changes'
    await sql(
      `insert into audit (id, chain, chain_seq, hash, ${columns}) select 'forged', chain, chain_seq + 1, hash, ${columns} from audit where chain = ${last.chain} and chain_seq = ${last.number}`,
    )
    expect(await verify()).toMatchObject({
      code: 1,
      output: expect.stringContaining(`inserted: chain ${last.chain}, record ${last.number + 1}`),
    })
    await sql("update audit set chain = null, chain_seq = null, hash = null where id = 'forged'")
    expect((await verify()).output).toMatch(/^inserted: a record outside the chains, row forged/)
    await sql("delete from audit where id = 'forged'")
    expect((await verify()).code).toBe(0)
  })

  test('whoever follows sees changes as they are made, each once', async () => {
    const child = spawn('bin/gatehouse', ['audit', 'tail', '--follow', '--json', '--limit', '1', ...gateway.place])
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
    const ended = once(child, 'exit')
    try {
      await until(async () => output.includes('user-39'), 10_000)
      await onboard('newcomer', await gateway.token('svc'))
      await until(async () => output.includes('newcomer'), 10_000)
      await new Promise((resolve) => setTimeout(resolve, 1500))
    } finally {
      child.kill()
      await ended
    }
    const ids = output.match(/"id":"[^"]+","time"/g) ?? []
    expect(ids.length).toBeGreaterThan(1)
    expect(output).not.toContain('user-38')
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('what is pruned is gone, and the rest verifies', async () => {
    expect((await gateway.command('audit', 'prune', '--before', '0s')).code).toBe(2)
    expect((await exported()).length).toBeGreaterThan(0)
    const pruned = await gateway.command('audit', 'prune', '--before', '0s', '--yes')
    expect(pruned).toMatchObject({ code: 0, output: expect.stringMatching(/^\d+ records from before/) })
    expect(await exported()).toEqual([])
    expect((await verify()).code).toBe(0)
  })
}

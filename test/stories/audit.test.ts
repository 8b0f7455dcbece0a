import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ChainedRecord, chainedRecord, linkHash } from '#audit/store/audit-chain.ts'
import { freshSchema, postgresUrl, runSql } from '#testing/databases/postgres.ts'
import { gatehouse, until } from '#testing/gateway/gateway-process.ts'
import { type StoryGateway, startCallWorkflow } from '#testing/stories/call-workflow-story.ts'

type Sql = (statement: string) => Promise<readonly Readonly<Record<string, unknown>>[]>

describe('the audit on SQLite', () =>
  story(undefined, (gateway) => async (statement) => {
    const database = new DatabaseSync(join(gateway.process.dataFolder, 'gatehouse.db'))
    try {
      database.exec('pragma busy_timeout = 5000')
      return database.prepare(statement).all()
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
    () => (statement) => runSql(url, statement),
  )
})

/** Runs beside the gateway, which stays up all the time. */
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

  /** Without the start time, which every report of a sealed audit has. */
  const verify = async () => {
    const { code, output } = await gateway.command('audit', 'verify')
    const lines = output.split('\n')
    const others = lines.filter((line) => !/^authenticated since \d{4}-\S+: /.test(line))
    expect(lines.length - others.length).toBe(1)
    return { code, output: others.join('\n') }
  }
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

  test('verifies unchanged, and is exported as a whole', async () => {
    expect(await verify()).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^\d+ records checked: all unchanged/),
    })
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
    await sql("update audit set chain = 77 where id = 'forged'")
    expect((await verify()).output).toMatch(/^inserted: a record outside the chains, row forged/)
    await sql("delete from audit where id = 'forged'")
    expect((await verify()).code).toBe(0)
  })

  test('a follower sees changes as they are made, each once', async () => {
    const child = spawn(gatehouse, ['audit', 'tail', '--follow', '--output', 'json', '--limit', '1', ...gateway.place])
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

  /** The first and the last record of the longest chain, and its head. */
  async function longest() {
    const all = await records()
    const [first, last] = [all[0], all.at(-1)]
    if (first === undefined || last === undefined || all.length < 4) throw new Error('a longer chain is needed')
    return { chain: first.chain, first, last, beforeLast: all.at(-2), all }
  }

  /** Tampers with the database, calls `look`, and restores everything. */
  async function tampered(statements: readonly string[], look: () => Promise<void>): Promise<void> {
    for (const table of ['audit', 'audit_chains']) await sql(`create table kept_${table} as select * from ${table}`)
    try {
      for (const statement of statements) await sql(statement)
      await look()
    } finally {
      for (const table of ['audit', 'audit_chains']) {
        await sql(`delete from ${table}`)
        await sql(`insert into ${table} select * from kept_${table}`)
        await sql(`drop table kept_${table}`)
      }
    }
    expect((await verify()).code).toBe(0)
  }

  test('records that were removed at an end together with the chain’s row are detected', async () => {
    const { chain, first, last, beforeLast } = await longest()
    const forged = new RegExp(`^forged: chain ${chain}, record`)
    const lastOnes = [
      `delete from audit where chain = ${chain} and chain_seq = ${last.number}`,
      `update audit_chains set seq = ${beforeLast?.number}, hash = '${beforeLast?.hash}' where chain = ${chain}`,
    ]
    await tampered(lastOnes, async () => {
      expect(await verify()).toMatchObject({ code: 1, output: expect.stringMatching(forged) })
    })
    const firstOnes = [
      `delete from audit where chain = ${chain} and chain_seq = ${first.number}`,
      `update audit_chains set base_seq = ${first.number}, base_hash = '${first.hash}' where chain = ${chain}`,
    ]
    await tampered(firstOnes, async () => {
      expect(await verify()).toMatchObject({ code: 1, output: expect.stringMatching(forged) })
    })
  })

  test('an edited or removed record is detected, even if every later hash was recomputed', async () => {
    const { chain, all } = await longest()
    const number = all[1]?.number
    for (const change of [
      `update audit set requestor = 'mallory' where chain = ${chain} and chain_seq = ${number}`,
      `delete from audit where chain = ${chain} and chain_seq = ${number}`,
    ]) {
      await tampered([change], async () => {
        expect((await verify()).code).toBe(1)
        await rechain(chain)
        expect(await verify()).toMatchObject({
          code: 1,
          output: expect.stringMatching(new RegExp(`^forged: chain ${chain}`)),
        })
      })
    }
  })

  /** Recomputes numbers and hashes of the chain, like an attacker without the key. */
  async function rechain(chain: number): Promise<void> {
    let [before, number] = ['', 0]
    for (const row of await sql(`select ${chainedRecord} from audit where chain = ${chain} order by chain_seq`)) {
      const record = { ...row, time: Number(row['time']) } as unknown as ChainedRecord
      number++
      before = linkHash(before, chain, number, record)
      await sql(`update audit set chain_seq = ${number}, hash = '${before}' where id = '${record.id}'`)
    }
    await sql(`update audit_chains set seq = ${number}, hash = '${before}' where chain = ${chain}`)
  }

  test('a restored backup is detected by an anchor of the log, and by an export', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-anchors-'))
    const [anchors, exported] = [join(folder, 'anchors.log'), join(folder, 'export.jsonl')]
    try {
      for (const table of ['audit', 'audit_chains']) await sql(`create table old_${table} as select * from ${table}`)
      await onboard('after-the-backup', await gateway.token('svc'))
      // The head is anchored at shutdown, regardless of the interval.
      await gateway.process.stop()
      writeFileSync(anchors, gateway.process.output())
      writeFileSync(exported, (await gateway.command('audit', 'export')).output)
      const compare = () => gateway.command('audit', 'verify', '--anchor', anchors, '--export', exported)
      expect(await compare()).toMatchObject({
        code: 0,
        output: expect.stringMatching(/anchored heads? compared: all/),
      })
      for (const table of ['audit', 'audit_chains']) {
        await sql(`delete from ${table}`)
        await sql(`insert into ${table} select * from old_${table}`)
      }
      await gateway.restartKilled()
      expect((await verify()).code).toBe(0)
      const found = await compare()
      expect(found.code).toBe(1)
      expect(found.output).toMatch(/anchors\.log: older: chain \d+, record \d+ \(.*old backup/)
      expect(found.output).toMatch(/export\.jsonl: older: chain \d+, record/)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }, 120_000)

  test('prune removes records, writes an entry, and the rest verifies', async () => {
    expect((await gateway.command('audit', 'prune', '--before', '0s')).code).toBe(2)
    expect((await exported()).length).toBeGreaterThan(0)
    const pruned = await gateway.command('audit', 'prune', '--before', '0s', '--yes', '--by', 'ada')
    expect(pruned).toMatchObject({ code: 0, output: expect.stringMatching(/^Deleted \d+ records? from before/) })
    expect(await exported()).toMatchObject([
      { kind: 'audit', action: 'delete', attribute: 'records', requestor: 'ada' },
    ])
    expect(await verify()).toMatchObject({ code: 0, output: expect.stringMatching(/^pruned: chain \d+, records 1 to/) })
  })
}

import { createSecretKey, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { type ChainedRecord, chainedRecord, linkHash } from '#audit/store/audit-chain.ts'
import type { AuditEntry, AuditRecord } from '#sdk/audit/audit-entry.ts'
import type { Storage } from '#server/composition/stores.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { type SealedDatabase, sealedDatabase } from '#testing/databases/sealed-database.ts'
import { auditRow } from '#testing/databases/workflow-stores.ts'
import type { AuditAnchor, AuditKey } from './audit-seal.ts'

const auditKey = (id: string): AuditKey => ({ id, key: createSecretKey(randomBytes(32)) })

const [key, other] = [auditKey('one'), auditKey('two')]
const past = (day: number): Date => new Date(Date.UTC(2020, 0, day))
const by = { by: 'operator' }

/** One record each, since the subjects differ. */
const records = (count: number, first = 0): AuditEntry[] =>
  Array.from({ length: count }, (_, i) => auditRow(`row-${first + i}`, { subject: `user-${first + i}` }))

const login = 'system:serviceaccount:shop:cart'

/** As the token service writes it. */
const issuance = (id: string): AuditEntry => ({
  ...auditRow(id, { kind: 'token', action: 'issue', attribute: 'jti', value: id, requestId: id, subject: login }),
  requestor: login,
  workflow: { id, name: 'sts' },
  reason: '{"pod":"cart-0","ttl":900}',
  recurring: 15,
})

onEachDatabase('seals of the audit', (freshUrl) => {
  const fresh = async () => sealedDatabase(await freshUrl())

  /** A started gateway, and 20 records in one chain. */
  const filled = async () => {
    const { open, sql } = await fresh()
    const { audit } = await open([key])
    expect(await audit.authenticate()).toEqual({ sealed: true, records: 0, forged: [] })
    await audit.append(records(20))
    const [row] = await sql("select chain from audit where id = 'row-10'")
    const chain = Number(row?.['chain'])
    const kinds = async () => (await audit.verify()).problems.map(({ kind }) => kind)
    return { open, sql, audit, chain, kinds }
  }

  /** Makes `number` the last record, like someone who can write to the database. */
  const truncate = async (sql: SealedDatabase['sql'], chain: number, number: number) => {
    const [last] = await sql(`select hash from audit where chain = ${chain} and chain_seq = ${number}`)
    await sql(`delete from audit where chain = ${chain} and chain_seq > ${number}`)
    await sql(`update audit_chains set seq = ${number}, hash = '${last?.['hash']}' where chain = ${chain}`)
  }

  /** Computes every hash of a chain again, and its head. */
  const rechain = async (sql: SealedDatabase['sql'], chain: number) => {
    let before = ''
    for (const row of await sql(`select ${chainedRecord} from audit where chain = ${chain} order by chain_seq`)) {
      const record = { ...row, time: Number(row['time']) } as unknown as ChainedRecord
      before = linkHash(before, chain, Number(record.chainSeq), record)
      await sql(`update audit set hash = '${before}' where id = '${record.id}'`)
    }
    await sql(`update audit_chains set hash = '${before}' where chain = ${chain}`)
  }

  test('an unchanged audit is authenticated, also by another process', async () => {
    const { audit, open } = await filled()
    const clean = { checked: 20, authenticated: true, sealed: [], pruned: [], problems: [] }
    expect(await audit.verify()).toEqual({ ...clean, since: expect.any(Date) })
    const second = (await open([key])).audit
    await second.authenticate()
    await second.append(records(5, 20))
    await audit.append(records(5, 25))
    expect(await second.verify()).toEqual({ ...clean, since: expect.any(Date), checked: 30 })
  })

  test('an edited record is detected, and one with all hashes computed again', async () => {
    const { sql, kinds, chain } = await filled()
    await sql("update audit set subject = 'mallory' where id = 'row-10'")
    expect(await kinds()).toEqual(['changed'])
    await rechain(sql, chain)
    expect(await kinds()).toEqual(['forged'])
  })

  test('removed first records are detected, even if the base says that they were pruned', async () => {
    const { sql, kinds, chain } = await filled()
    const [third] = await sql(`select hash from audit where chain = ${chain} and chain_seq = 3`)
    await sql(`delete from audit where chain = ${chain} and chain_seq <= 3`)
    expect(await kinds()).toEqual(['removed'])
    await sql(`update audit_chains set base_seq = 3, base_hash = '${third?.['hash']}' where chain = ${chain}`)
    expect(await kinds()).toEqual(['forged'])
  })

  test('removed last records are detected, even if the head was reset', async () => {
    const { sql, kinds, chain } = await filled()
    await truncate(sql, chain, 17)
    expect(await kinds()).toEqual(['forged'])
  })

  test('removed middle records are detected, even if the rest was renumbered and chained again', async () => {
    const { sql, kinds, chain } = await filled()
    await sql(`delete from audit where chain = ${chain} and chain_seq in (8, 9)`)
    expect(await kinds()).toEqual(['removed'])
    for (let number = 10; number <= 20; number++)
      await sql(`update audit set chain_seq = ${number - 2} where chain = ${chain} and chain_seq = ${number}`)
    await sql(`update audit_chains set seq = 18 where chain = ${chain}`)
    await rechain(sql, chain)
    expect(await kinds()).toEqual(['forged'])
  })

  test('what happens after a forgery does not hide it, until an operator accepts it', async () => {
    const { audit, sql, kinds, chain } = await filled()
    await truncate(sql, chain, 17)
    // Every chain gets records, however the database chooses.
    for (let i = 0; i < 40; i++) await Promise.all(records(16, 100 + i * 16).map((row) => audit.append([row])))
    expect(await kinds()).toEqual(['broken'])
    expect((await audit.verify()).problems).toEqual([{ kind: 'broken', chain, number: 17 }])
    const { rows } = await audit.list({ limit: 1, target: 'audit' })
    expect(rows).toMatchObject([{ kind: 'audit', action: 'refuse', value: `chain ${chain}, record 17` }])
    expect((await audit.seal('operator')).records).toBe(17 + 640 + 1)
    const report = await audit.verify()
    expect(report).toMatchObject({ authenticated: true, problems: [] })
    expect(report.sealed.find((each) => each.chain === chain)?.number).toBeGreaterThanOrEqual(17)
    expect((await audit.list({ limit: 1, target: 'audit' })).rows).toMatchObject([{ requestor: 'operator' }])
  }, 60_000)

  test('a removed seal is a forgery for a running gateway', async () => {
    const { audit, sql, kinds } = await filled()
    await sql('update audit_chains set mac = null, key_id = null')
    expect(new Set(await kinds())).toEqual(new Set(['unsealed']))
    await audit.append(records(1, 20))
    expect(await kinds()).toContain('broken')
  })

  test('the first start with a key seals existing records and reports from which record on the audit is proven', async () => {
    const { open, sql } = await fresh()
    const before = (await open()).audit
    await before.append(records(20))
    expect(await before.verify()).toMatchObject({ checked: 20, authenticated: false, problems: [] })
    const [row] = await sql("select chain from audit where id = 'row-10'")
    const chain = Number(row?.['chain'])
    const { audit } = await open([key])
    expect(await audit.authenticate()).toEqual({ sealed: true, records: 20, forged: [] })
    expect(await audit.authenticate()).toEqual({ sealed: false, records: 0, forged: [] })
    expect(await audit.verify()).toEqual({
      checked: 21,

      authenticated: true,
      since: expect.any(Date),
      sealed: [{ chain, number: 20, at: expect.any(Date) }],
      pruned: [],
      problems: [],
    })
    const { rows } = await audit.list({ limit: 5, target: 'audit' })
    expect(rows).toMatchObject([{ kind: 'audit', attribute: 'seal', value: `chain ${chain}, record 20` }])
  })

  test('a chain that lost its seal before a restart is reported and not sealed again', async () => {
    const { open, sql, chain } = await filled()
    const forget = 'mac = null, key_id = null, sealed_seq = null, sealed_at = null'
    await sql(`update audit_chains set ${forget} where chain = ${chain}`)
    const restarted = (await open([key])).audit
    expect(await restarted.authenticate()).toEqual({ sealed: false, records: 0, forged: [chain] })
    expect((await restarted.verify()).problems).toMatchObject([{ kind: 'unsealed', chain }])
  })

  test('a changed or removed context of a compact record is detected', async () => {
    const { audit, sql, kinds } = await filled()
    await audit.append([issuance('t1'), issuance('t2')])
    const [stored] = await sql("select reason, subject, context from audit where id = 't1'")
    expect(stored).toMatchObject({ reason: ',"ttl":900}', subject: '', context: expect.any(String) })
    expect(await kinds()).toEqual([])
    await sql("update audit_contexts set shared = replace(shared, 'cart-0', 'cart-1')")
    expect(await kinds()).toEqual(['changed', 'changed'])
    await sql("update audit_contexts set shared = replace(shared, 'cart-1', 'cart-0')")
    expect(await kinds()).toEqual([])
    await sql("update audit_contexts set subject = 'system:serviceaccount:shop:till'")
    expect(await kinds()).toEqual(['changed', 'changed'])
    await sql('delete from audit_contexts')
    expect(await kinds()).toEqual(['changed', 'changed'])
  })

  test('an entry whose context has the id of another one is stored whole', async () => {
    const first = await fresh()
    await (await first.open([key])).audit.append([{ ...issuance('t1'), time: past(1) }])
    const [own] = await first.sql('select id, day from audit_contexts')
    const { open, sql } = await fresh()
    const { audit } = await open([key])
    await audit.authenticate()
    await sql(`insert into audit_contexts (id, day, subject, shared)
      values ('${own?.['id']}', ${own?.['day']}, 'system:serviceaccount:shop:till', '{"pod":"cart-0"')`)
    for (const id of ['t1', 't2']) await audit.append([{ ...issuance(id), time: past(1) }])
    expect((await audit.verify()).problems).toEqual([])
    expect((await audit.list({ limit: 9 })).rows.map(({ subject }) => subject)).toEqual([login, login])
  })

  test('contexts are removed although older records of other kinds are kept', async () => {
    const { open, sql } = await fresh()
    const { audit } = await open([key])
    await audit.authenticate()
    await audit.append([{ ...auditRow('login'), time: past(1) }])
    for (const day of [1, 2]) await audit.append([{ ...issuance(`t${day}`), time: past(day) }])
    await audit.prune(past(2), { ...by, part: 'tokens' })
    expect(await sql('select day from audit_contexts')).toHaveLength(1)
    expect((await audit.verify()).problems).toEqual([])
  })

  test('contexts are removed with the last records of their day', async () => {
    const { open, sql } = await fresh()
    const { audit } = await open([key])
    await audit.authenticate()
    const contexts = async () => (await sql('select day from audit_contexts order by day')).length
    for (const [i, day] of [1, 2, 2, 9].entries()) await audit.append([{ ...issuance(`t${i}`), time: past(day) }])
    expect(await contexts()).toBe(3)
    await audit.prune(past(2), { ...by, part: 'tokens' })
    expect(await contexts()).toBe(2)
    await audit.append([{ ...issuance('again'), time: past(2) }])
    expect((await audit.verify()).problems).toEqual([])
    await audit.prune(past(10), { ...by, part: 'tokens' })
    expect(await contexts()).toBe(0)
    await audit.append([{ ...issuance('last'), time: new Date() }])
    expect((await audit.verify()).problems).toEqual([])
    expect((await audit.list({ limit: 1, target: 'people' })).rows).toMatchObject([{ id: 'last', subject: login }])
  })

  test('a process without the key, or with another one, neither writes nor proves anything', async () => {
    const { open, audit } = await filled()
    const without = (await open()).audit
    await expect(without.append(records(1, 20))).rejects.toMatchObject({ code: 'INTERNAL' })
    expect(await without.verify()).toMatchObject({ authenticated: false, checked: 20 })
    expect((await without.verify()).problems[0]).toEqual({ kind: 'no key', chain: 0, key: 'one' })
    const stranger = (await open([other])).audit
    await expect(stranger.authenticate()).rejects.toThrow(/sealed with key one/)
    await expect(stranger.append(records(1, 20))).rejects.toThrow(/sealed with key one/)
    expect((await audit.verify()).problems).toEqual([])
  })

  test('a key is replaced by putting the new one before it', async () => {
    const { open } = await filled()
    const both = (await open([other, key])).audit
    expect(await both.authenticate()).toEqual({ sealed: false, records: 0, forged: [] })
    await both.append(records(1, 20))
    const alone = (await open([other])).audit
    expect(await alone.authenticate()).toEqual({ sealed: false, records: 0, forged: [] })
    expect(await alone.verify()).toMatchObject({ authenticated: true, checked: 21, problems: [] })
  })

  test('pruning moves the sealed base and is an entry', async () => {
    const { open, sql } = await fresh()
    const { audit } = await open([key])
    await audit.authenticate()
    await audit.append(records(20).map((row, i) => ({ ...row, time: past(1 + i) })))
    expect(await audit.prune(past(11), by)).toEqual({ removed: 10, waiting: [] })
    const report = await audit.verify()
    expect(report).toMatchObject({ checked: 11, authenticated: true, problems: [], pruned: [{ number: 10 }] })
    const { rows } = await audit.list({ limit: 5, target: 'audit' })
    expect(rows).toMatchObject([
      { requestor: 'operator', action: 'delete', attribute: 'records', value: `before ${past(11).toISOString()}` },
    ])
    expect(await audit.prune(past(11), by)).toEqual({ removed: 0, waiting: [] })
    expect((await audit.list({ limit: 5, target: 'audit' })).rows).toHaveLength(1)
    const chain = report.pruned[0]?.chain
    await sql(`update audit_chains set base_seq = 11, base_hash =
      (select hash from audit where chain = ${chain} and chain_seq = 11) where chain = ${chain}`)
    await sql(`delete from audit where chain = ${chain} and chain_seq = 11`)
    expect((await audit.verify()).problems.map(({ kind }) => kind)).toEqual(['forged'])
    await expect(audit.prune(past(15), by)).rejects.toMatchObject({ code: 'INTERNAL' })
  })

  const anchorOf = async (storage: Pick<Storage, 'audit'>): Promise<AuditAnchor> => {
    const anchor = await storage.audit.anchor()
    if (anchor === undefined) throw new Error('an anchor was expected')
    return anchor
  }
  /** The audit's part of a backup. */
  const backUp = async (sql: SealedDatabase['sql']) => {
    for (const table of ['audit', 'audit_chains']) await sql(`create table old_${table} as select * from ${table}`)
  }
  const restore = async (sql: SealedDatabase['sql']) => {
    for (const table of ['audit', 'audit_chains']) {
      await sql(`delete from ${table}`)
      await sql(`insert into ${table} select * from old_${table}`)
    }
  }

  test('a restored backup passes on its own, and an anchor detects it, even if the gateway has written since', async () => {
    const { audit, sql, open, chain } = await filled()
    await backUp(sql)
    const earlier = await anchorOf({ audit })
    await audit.append(records(5, 20))
    const later = await anchorOf({ audit })
    expect(later.heads.length).toBeGreaterThanOrEqual(1)
    expect(await audit.compareAnchors([earlier, later])).toMatchObject({ pruned: 0, problems: [] })
    await restore(sql)
    const again = (await open([key])).audit
    expect((await again.authenticate()).forged).toEqual([])
    expect((await again.verify()).problems).toEqual([])
    expect((await again.compareAnchors([earlier])).problems).toEqual([])
    const { problems } = await again.compareAnchors([later])
    expect(problems.map(({ kind }) => kind)).toEqual(['older'])
    for (let i = 0; i < 20; i++) await Promise.all(records(16, 200 + i * 16).map((row) => again.append([row])))
    expect((await again.verify()).problems).toEqual([])
    expect((await again.compareAnchors([later])).problems.map(({ kind }) => kind)).toEqual(['differs'])
    expect(chain).toBeGreaterThanOrEqual(0)
  }, 60_000)

  test('a report says since when the audit is sealed, even of one that was emptied before a restart', async () => {
    const { audit, sql, open } = await filled()
    const { since = new Date(Number.NaN) } = await audit.verify()
    const without = 'mac = null, key_id = null, sealed_seq = null, sealed_at = null'
    await sql('delete from audit')
    await sql(`update audit_chains set seq = 0, hash = '', base_seq = 0, base_hash = '', ${without}`)
    const emptied = Date.now()
    expect(since.getTime()).toBeLessThanOrEqual(emptied)
    const again = (await open([key])).audit
    expect(await again.authenticate()).toEqual({ sealed: true, records: 0, forged: [] })
    expect((await again.verify()).since?.getTime()).toBeGreaterThanOrEqual(emptied)
    // Without the key no one can set another time.
    await sql(`update audit_chains set sealed_at = ${since.getTime() - 1}`)
    expect(await again.verify()).toMatchObject({ authenticated: false, since: undefined })
  })

  test('an anchor detects that all seals were removed before a restart', async () => {
    const { audit, sql, open, chain } = await filled()
    const anchor = await anchorOf({ audit })
    await truncate(sql, chain, 15)
    await sql('update audit_chains set mac = null, key_id = null, sealed_seq = null, sealed_at = null')
    const again = (await open([key])).audit
    expect((await again.authenticate()).records).toBe(15)
    expect(await again.verify()).toMatchObject({ problems: [], sealed: [{ chain, number: 15 }] })
    expect((await again.compareAnchors([anchor])).problems).toEqual([
      { kind: expect.stringMatching(/older|differs/), chain, number: 20 },
    ])
  })

  test('an anchor is signed, and needs its key', async () => {
    const { audit, open } = await filled()
    const anchor = await anchorOf({ audit })
    const [head] = anchor.heads
    if (head === undefined) throw new Error('a head was expected')
    const forged = { ...anchor, heads: [{ ...head, number: 3 }] }
    expect((await audit.compareAnchors([forged])).problems).toEqual([{ kind: 'invalid' }])
    const stranger = (await open([other])).audit
    expect((await stranger.compareAnchors([anchor])).problems).toEqual([{ kind: 'no key', key: 'one' }])
    expect(await (await open()).audit.anchor()).toBeUndefined()
  })

  test('an anchor of records that were pruned since is accepted, unless the chain was sealed again', async () => {
    const { audit } = await filled()
    const anchor = await anchorOf({ audit })
    for (let i = 0; i < 20; i++) await Promise.all(records(16, 100 + i * 16).map((row) => audit.append([row])))
    await audit.prune(new Date(Date.UTC(2031, 0, 1)), by)
    expect(await audit.compareAnchors([anchor])).toEqual({ compared: 0, pruned: 1, problems: [] })
    await audit.append(records(5, 1000))
    await audit.seal('operator')
    const { problems } = await audit.compareAnchors([anchor])
    expect(problems.map(({ kind }) => kind)).toEqual(['resealed'])
  })

  test('an export is compared record by record', async () => {
    const { audit, sql, chain } = await filled()
    const exported: readonly AuditRecord[] = (await audit.export({ limit: 500 })).records
    expect(await audit.compareRecords(exported)).toEqual({ compared: 20, pruned: 0, problems: [] })
    await sql("update audit set changes = replace(changes, 'bob@', 'eve@') where id = 'row-10'")
    await rechain(sql, chain)
    await audit.seal('operator')
    expect((await audit.verify()).problems).toEqual([])
    const { problems } = await audit.compareRecords(exported)
    expect(problems[0]).toEqual({ kind: 'differs', chain, number: 11 })
    expect(problems).toHaveLength(10)
    await truncate(sql, chain, 5)
    expect((await audit.compareRecords(exported.slice(-1))).problems).toEqual([{ kind: 'older', chain, number: 20 }])
  })
})

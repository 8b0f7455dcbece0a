import { expect, test } from 'vitest'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { auditRow } from '#testing/databases/workflow-stores.ts'

const at = (day: number): Date => new Date(Date.UTC(2020, 0, day))
const by = { by: 'operator' }

/** One record each, since the subjects differ. */
const records = (count: number, more: (i: number) => Partial<AuditEntry> = () => ({})): AuditEntry[] =>
  Array.from({ length: count }, (_, i) => auditRow(`row-${i}`, { subject: `user-${i}`, ...more(i) }))

onEachDatabase('audit chains', (freshUrl) => {
  const open = async () => openStores(await freshUrl())
  const filled = async (count = 20) => {
    const stores = await open()
    await stores.one.audit.append(records(count))
    const [row] = await stores.sql("select chain from audit where id = 'row-10'")
    return { ...stores, chain: Number(row?.['chain']) }
  }

  test('entries in any number of chains verify while others append', async () => {
    const { one, two } = await open()
    expect(await one.audit.verify()).toMatchObject({ checked: 0, problems: [] })
    const appends = Array.from({ length: 60 }, (_, i) =>
      (i % 2 === 0 ? one : two).audit.append([
        auditRow(`${i}-a`, { caller: 'app', approval: 'ap', reason: 'é\0' }),
        auditRow(`${i}-b`, { target: 'other' }),
      ]),
    )
    const meanwhile = await two.audit.verify()
    await Promise.all(appends)
    expect(meanwhile.problems).toEqual([])
    expect(await one.audit.verify()).toMatchObject({ checked: 120, problems: [] })
    const { rows } = await one.audit.list({ limit: 500, target: 'people' })
    expect(rows).toHaveLength(60)
    expect(rows[0]).toMatchObject({ caller: 'app', approval: 'ap', reason: 'é\ufffd' })
  })

  test('a chain of several pages verifies', async () => {
    const { one } = await open()
    await one.audit.append(records(1203))
    expect(await one.audit.verify()).toMatchObject({ checked: 1203, problems: [] })
  })

  test.each([
    ["changes = replace(changes, 'bob@', 'eve@')", 'a value'],
    ["requestor = 'mallory'", 'who asked'],
    ["requestor_key = 'mallory'", 'a key'],
    ["approval = 'none'", 'an approval'],
    ["request_id = ''", 'an absent text made empty'],
    ['time = time + 1', 'a time'],
    ["hash = 'x'", 'a hash'],
  ])('a changed record is detected: %s', async (change) => {
    const { one, sql, chain } = await filled()
    await sql(`update audit set ${change} where id = 'row-10'`)
    const { problems, checked } = await one.audit.verify()
    expect(checked).toBe(20)
    expect(problems[0]).toEqual({ kind: 'changed', chain, number: 11, id: 'row-10' })
  })

  test('a changed or removed last record is detected', async () => {
    const { one, sql, chain } = await filled()
    await sql("update audit set subject = 'x' where id = 'row-19'")
    expect((await one.audit.verify()).problems).toEqual([{ kind: 'changed', chain, number: 20, id: 'row-19' }])
    await sql("delete from audit where id = 'row-19'")
    expect((await one.audit.verify()).problems).toEqual([{ kind: 'removed', chain, number: 20 }])
  })

  test('removed records are detected, at the start, in the middle, and all of them', async () => {
    const { one, sql, chain } = await filled()
    await sql("delete from audit where id in ('row-0', 'row-10', 'row-11')")
    expect((await one.audit.verify()).problems).toEqual([
      { kind: 'removed', chain, number: 1 },
      { kind: 'removed', chain, number: 11 },
    ])
    await sql('delete from audit')
    expect((await one.audit.verify()).problems).toEqual([{ kind: 'removed', chain, number: 1 }])
  })

  test('a chain that was removed with its head is detected', async () => {
    const { one, sql, chain } = await filled()
    await sql('delete from audit')
    await sql(`delete from audit_chains where chain = ${chain}`)
    expect((await one.audit.verify()).problems).toEqual([{ kind: 'removed', chain, number: 1 }])
  })

  test('inserted records are detected, before, after and outside the chains', async () => {
    const { one, sql, chain } = await filled()
    const columns =
      'time, requestor, requestor_key, subject, subject_key, workflow_id, workflow_name, target, request_id, changes'
    const insert = (id: string, place: string) =>
      sql(`insert into audit (id, ${columns}, chain, chain_seq, hash)
        select '${id}', ${columns}, ${place} from audit where id = 'row-10'`)
    await insert('behind', `${chain}, 21, hash`)
    await insert('before', `${chain}, 0, hash`)
    await insert('elsewhere', '77, 1, hash')
    const { problems } = await one.audit.verify()
    expect(problems).toEqual([
      { kind: 'inserted', chain, number: 0, id: 'before' },
      { kind: 'inserted', chain, number: 21 },
      { kind: 'inserted', id: 'elsewhere' },
    ])
  })

  test('records that changed places are detected', async () => {
    const { one, sql } = await filled()
    await sql("update audit set chain_seq = 1000 where id = 'row-10'")
    await sql("update audit set chain_seq = 11 where id = 'row-11'")
    await sql("update audit set chain_seq = 12 where id = 'row-10'")
    expect((await one.audit.verify()).problems.map(({ kind }) => kind)).toContain('changed')
  })

  test('a record that moved in the order of all records, and a head of another record, are detected', async () => {
    const { one, sql, chain } = await filled()
    await sql("update audit set seq = -1 where id = 'row-10'")
    await sql("update audit_chains set hash = 'x' where chain >= 0")
    expect((await one.audit.verify()).problems).toContainEqual({ kind: 'changed', chain, number: 11, id: 'row-10' })
    expect((await one.audit.verify()).problems).toContainEqual({ kind: 'changed', chain, number: 20 })
  })

  test('pruning removes the start of each chain, and the rest verifies', async () => {
    const { one, two } = await open()
    await one.audit.append(records(1500, (i) => ({ time: at(1 + Math.floor(i / 500)) })))
    expect((await one.audit.prune(at(1), by)).removed).toBe(0)
    expect((await one.audit.prune(at(3), by)).removed).toBe(1000)
    expect(await two.audit.verify()).toMatchObject({ checked: 501, problems: [] })
    expect((await one.audit.prune(at(9), by)).removed).toBe(500)
    await two.audit.append([auditRow('later')])
    expect(await two.audit.verify()).toMatchObject({ checked: 3, problems: [] })
  })

  test('the export returns every record once, oldest first, with its position', async () => {
    const { one } = await open()
    await one.audit.append([
      ...records(7, (i) => ({ time: at(1 + i) })),
      auditRow('row-6b', { subject: 'user-6', time: at(7) }),
    ])
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await one.audit.export({ limit: 3, from: at(2), ...(after === undefined ? {} : { after }) })
      for (const { link, rows } of page.records) {
        expect(link?.hash).toMatch(/^[\w-]{43}$/)
        seen.push(rows.map(({ id }) => id).join('+'))
      }
      after = page.next
    } while (after !== undefined)
    expect(seen).toEqual(['row-1', 'row-2', 'row-3', 'row-4', 'row-5', 'row-6+row-6b'])
    await expect(one.audit.export({ limit: 1, after: '1.1' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('a transaction of another database is rejected, and nothing is written', async () => {
    const { one } = await open()
    expect(await one.audit.appendWithin({}, [auditRow('a')])).toBe(false)
    expect((await one.audit.list({ limit: 1 })).rows).toEqual([])
  })
})

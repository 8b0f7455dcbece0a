import { expect, test } from 'vitest'
import { newId } from '#kernel/ids.ts'
import type { AuditRecord } from '#sdk/audit/audit-entry.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { auditRow, workflowStores } from '#testing/databases/workflow-stores.ts'

const idsOf = (records: readonly AuditRecord[]): string[] => records.flatMap(({ rows }) => rows.map(({ id }) => id))
const token = () => ({ ...auditRow(newId()), kind: 'token', action: 'issue', attribute: 'jti' }) as const

onEachDatabase('feeds of reconciliations', (freshUrl) => {
  const open = async () => {
    const { one, two } = await workflowStores(await freshUrl())
    return { audit: one.audit, feeds: one.changeFeeds, other: two.changeFeeds }
  }

  test('a feed has a position once it was started, and then what was written after it, again until it moves', async () => {
    const { audit, feeds, other } = await open()
    await feeds.move('chat', await feeds.end())
    expect(await feeds.read('chat')).toBeUndefined()
    await audit.append([auditRow('before')])
    await feeds.start('chat', await feeds.end())
    expect((await feeds.read('chat'))?.records).toEqual([])
    for (let i = 0; i < 20; i++) await audit.append([auditRow(`a${i}`), auditRow(`b${i}`)])
    const part = await feeds.read('chat')
    expect(idsOf(part?.records ?? []).sort()).toEqual(
      Array.from({ length: 20 }, (_, i) => [`a${i}`, `b${i}`])
        .flat()
        .sort(),
    )
    expect(await other.read('chat')).toEqual(part)
    await other.move('chat', part?.positions ?? new Map())
    expect((await feeds.read('chat'))?.records).toEqual([])
    expect(await feeds.read('wiki')).toBeUndefined()
  })

  test('decisions about tokens are not in it', async () => {
    const { audit, feeds } = await open()
    await feeds.start('chat', await feeds.end())
    await audit.append([token()])
    await audit.append([auditRow('person')])
    const part = await feeds.read('chat')
    expect(idsOf(part?.records ?? [])).toEqual(['person'])
    await feeds.move('chat', part?.positions ?? new Map())
    expect((await feeds.read('chat'))?.records).toEqual([])
  })

  test('a feed whose records were removed has no position any more', async () => {
    const { audit, feeds } = await open()
    await audit.append([auditRow('first')])
    await feeds.start('chat', await feeds.end())
    for (let i = 0; i < 40; i++) await audit.append([auditRow(`r${i}`)])
    await audit.prune(new Date(Date.UTC(2031, 0, 1)), { by: 'test' })
    expect(await feeds.read('chat')).toBeUndefined()
  })
})

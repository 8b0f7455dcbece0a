import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { auditRow } from '#testing/databases/workflow-stores.ts'

const link = { reconciliation: 'chat', source: '42', target: 'U7', decidedBy: 'Ada' }

onEachDatabase('links of people to accounts', (freshUrl) => {
  const open = async () => {
    const { one } = await openStores(await freshUrl())
    return { links: one.accountLinks, audit: one.audit }
  }

  test('are found by person and by account, and replaced by a later decision', async () => {
    const { links, audit } = await open()
    await links.set(link, [auditRow('linked')])
    await links.set({ ...link, reconciliation: 'wiki' }, [])
    await links.set({ reconciliation: 'chat', source: '43', decidedBy: 'Ada', reason: 'left' }, [])
    expect(await links.ofSources('chat', ['42', '43', '44'])).toEqual([
      { source: '42', target: 'U7' },
      { source: '43' },
    ])
    expect(await links.ofTargets('chat', ['U7', 'U8'])).toEqual([{ source: '42', target: 'U7' }])
    expect(await links.ofSources('chat', [])).toEqual([])
    await links.set({ ...link, target: 'U8' }, [])
    expect(await links.ofTargets('chat', ['U7', 'U8'])).toEqual([{ source: '42', target: 'U8' }])
    expect(await links.list('chat', 10)).toMatchObject([
      { source: '42', target: 'U8', decidedBy: 'Ada', decided: expect.any(Date) },
      { source: '43', reason: 'left' },
    ])
    expect(await links.list('chat', 10, '42')).toMatchObject([{ source: '43' }])
    expect((await audit.list({ limit: 5 })).rows.map(({ id }) => id)).toEqual(['linked'])
  })

  test('give an account to one person only', async () => {
    const { links } = await open()
    await links.set(link, [])
    await expect(links.set({ ...link, source: '43' }, [auditRow('no')])).rejects.toMatchObject({
      code: 'CONFLICT',
      publicText: expect.stringContaining('"42"'),
    })
    expect(await links.remove('chat', '42', [auditRow('gone')])).toBe(true)
    expect(await links.remove('chat', '42', [auditRow('gone again')])).toBe(false)
    await links.set({ ...link, source: '43' }, [])
  })

  test.each(['', 'x'.repeat(501), 'a\0b'])('refuse a name that cannot be stored', async (name) => {
    const { links } = await open()
    await expect(links.set({ ...link, source: name }, [])).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await expect(links.set({ ...link, target: name }, [])).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(await links.ofSources('chat', [name])).toEqual([])
  })
})

import { expect, test } from 'vitest'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { ClaimedMail, MailKind, NewMail } from '#sdk/mail/new-mail.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { minute, noLease, workflowStores } from '#testing/databases/workflow-stores.ts'
import type { MailStore } from './mail-store.ts'

const mail = (id: string, more: Partial<NewMail> = {}): NewMail => ({
  id,
  recipient: 'bob@example.com',
  subject: 'Please decide',
  text: 'Hello',
  ...more,
})

async function claimOne(mails: MailStore, leaseMillis = minute): Promise<ClaimedMail> {
  const [claimed] = await mails.claim(1, leaseMillis)
  if (claimed === undefined) throw new Error('no mail')
  return claimed
}

onEachDatabase('mails', (freshUrl) => {
  const open = async () => workflowStores(await freshUrl())

  test('a claimed mail has all fields, with unstorable characters replaced', async () => {
    const { one, two } = await open()
    await one.mails.add([mail('a', { run: 'r', step: 3, html: '<p>é\0</p>', subject: '\ud800', notifier: 'n' })])
    expect(await two.mails.claim(5, minute)).toEqual([
      {
        ...mail('a', { run: 'r', step: 3, html: '<p>é\ufffd</p>', subject: '\ufffd', notifier: 'n' }),
        fence: 1,
        attempt: 1,
      },
    ])
    await one.mails.add([])
  })

  test('a message to a channel has its links until it was sent', async () => {
    const { one, two, sql } = await open()
    const links = [{ label: 'Approve', url: 'https://gate.test/decide?token=x', style: 'primary' as const }]
    await one.mails.add([mail('a', { recipient: '#slack', notifier: 'slack', links })])
    const claimed = await claimOne(two.mails)
    expect(claimed).toMatchObject({ recipient: '#slack', links })
    await two.mails.sent(claimed)
    expect(await sql('select body, links from mails')).toEqual([{ body: '', links: null }])
    await one.mails.add([mail('b'), mail('c', { recipient: '#slack', links: [] })])
    const claim = async (kind: MailKind) => (await two.mails.claim(5, minute, kind)).map(({ id }) => id)
    expect([await claim('mail'), await claim('channel message')]).toEqual([['b'], ['c']])
  })

  test('adding a mail twice sends it once, even when it was already sent', async () => {
    const { one, two } = await open()
    await Promise.all([one, two, one, two].map(({ mails }) => mails.add([mail('a'), mail('a'), mail('b')])))
    const claimed = await one.mails.claim(10, minute)
    expect(claimed).toHaveLength(2)
    for (const each of claimed) expect(await one.mails.sent(each)).toBe(true)
    await two.runs.record({ mails: [mail('a', { text: 'again' })] })
    expect(await two.mails.claim(10, minute)).toEqual([])
  })

  test('concurrent claims never return the same mail', async () => {
    const { one, two } = await open()
    await one.mails.add(Array.from({ length: 30 }, (_, i) => mail(`${i}`)))
    const claims = await Promise.all(
      Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? one : two).mails.claim(5, minute)),
    )
    const claimed = [...claims.flat(), ...(await one.mails.claim(100, minute))]
    expect(new Set(claimed.map(({ id }) => id)).size).toBe(claimed.length)
    expect(claimed).toHaveLength(30)
  })

  test('a failed mail is tried again later, or given up', async () => {
    const { one } = await open()
    await one.mails.add([mail('a')])
    const first = await claimOne(one.mails)
    expect(await one.mails.failed(first, 'busy', { inMillis: noLease })).toBe(true)
    const second = await claimOne(one.mails)
    expect(second.attempt).toBe(2)
    await one.mails.failed(second, 'busy', { inMillis: minute })
    expect(await one.mails.claim(1, minute)).toEqual([])
    await one.mails.add([mail('b')])
    expect(await one.mails.failed(await claimOne(one.mails), 'no such mailbox')).toBe(true)
    expect(await one.mails.claim(1, minute)).toEqual([])
    expect(await one.mails.figures()).toEqual({ queued: 1, unknown: 0, failed: 1 })
  })

  test('a claim with an expired lease is void once another worker has claimed the mail', async () => {
    const { one, two } = await open()
    await one.mails.add([mail('a')])
    const stale = await claimOne(one.mails, noLease)
    const held = await claimOne(two.mails)
    expect(await one.mails.sent(stale)).toBe(false)
    expect(await one.mails.failed(stale, 'late')).toBe(false)
    expect(await two.mails.sent(held)).toBe(true)
    expect(await two.mails.sent(held)).toBe(false)
  })

  test('a mail whose worker died during the hand-over is not sent again until an administrator retries it', async () => {
    const { one, two, sql } = await open()
    await one.mails.add([mail('a'), mail('b')])
    const dying = await claimOne(one.mails, noLease)
    expect(dying.id).toBe('a')
    expect(await one.mails.handOver(dying)).toBe(true)
    expect((await two.mails.claim(5, minute)).map(({ id }) => id)).toEqual(['b'])
    expect(await two.mails.figures()).toMatchObject({ queued: 1, unknown: 1, failed: 0 })
    expect(await two.mails.list({ state: 'unknown', limit: 10 })).toEqual({
      mails: [
        {
          id: 'a',
          state: 'unknown',
          recipient: 'bob@example.com',
          subject: 'Please decide',
          attempt: 1,
          updated: expect.any(Date),
        },
      ],
    })
    expect((await two.mails.list({ state: 'queued', limit: 10 })).mails.map(({ id }) => id)).toEqual(['b'])
    const row: AuditEntry = {
      id: 'row',
      time: new Date(0),
      requestor: 'admin',
      subject: 'bob',
      workflow: { id: 'r', name: 'w' },
      target: 'gatehouse',
      kind: 'entry',
      action: 'replace',
      attribute: 'mail',
    }
    await two.mails.retry('a', [row])
    expect(await sql('select workflow_id from audit')).toMatchObject([{ workflow_id: 'r' }])
    const again = await claimOne(two.mails)
    expect(again).toMatchObject({ id: 'a', attempt: 1, text: 'Hello' })
    expect(await one.mails.sent(dying)).toBe(false)
    expect(await two.mails.sent(again)).toBe(true)
    await expect(two.mails.retry('a', [])).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(two.mails.retry('z', [])).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(two.mails.retry('b', [])).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('a worker can record the result after its lease has expired; a rejected mail is not unknown', async () => {
    const { one } = await open()
    await one.mails.add([mail('a'), mail('b'), mail('c')])
    const [a, b, c] = (await one.mails.claim(3, noLease)).toSorted((x, y) => x.id.localeCompare(y.id))
    if (a === undefined || b === undefined || c === undefined) throw new Error('no mail')
    for (const each of [a, b, c]) expect(await one.mails.handOver(each)).toBe(true)
    expect((await one.mails.figures()).unknown).toBe(3)
    expect(await one.mails.sent(a)).toBe(true)
    expect(await one.mails.failed(b, 'busy', { inMillis: noLease })).toBe(true)
    expect(await one.mails.unknown(c, 'cut off')).toBe(true)
    expect(await one.mails.get('c')).toMatchObject({ state: 'unknown', error: 'cut off' })
    expect((await one.mails.claim(5, minute)).map(({ id }) => id)).toEqual(['b'])
    expect(await one.mails.get('a')).toMatchObject({ state: 'sent' })
    expect(await one.mails.get('x')).toBeUndefined()
    expect(await one.mails.prune(new Date(Date.now() + minute))).toBe(2)
  })

  test('lists mails in pages', async () => {
    const { one } = await open()
    await one.mails.add(['a', 'b', 'c'].map((id) => mail(id)))
    const first = await one.mails.list({ state: 'queued', limit: 2 })
    expect(first.mails.map(({ id }) => id)).toEqual(['a', 'b'])
    const second = await one.mails.list({ state: 'queued', limit: 2, after: first.next ?? '' })
    expect(second.mails.map(({ id }) => id)).toEqual(['c'])
    expect(second.next).toBeUndefined()
  })

  test('a sent mail keeps no text and is pruned; a queued mail stays', async () => {
    const { one, sql } = await open()
    await one.mails.add([mail('a', { html: '<b>x</b>' })])
    await one.mails.sent(await claimOne(one.mails))
    expect(await sql('select state, body, html from mails')).toMatchObject([{ state: 'sent', body: '', html: null }])
    await one.mails.add([mail('b')])
    expect((await one.mails.figures()).oldestMillis).toBeGreaterThanOrEqual(0)
    expect(await one.mails.prune(new Date(0))).toBe(0)
    expect(await one.mails.prune(new Date(Date.now() + minute))).toBe(1)
    expect(await one.mails.figures()).toMatchObject({ queued: 1, failed: 0 })
  })
})

import { expect, test } from 'vitest'
import { minute, noLease, type WorkflowStores } from '#storage/conformance/workflow-stores.ts'
import type { ClaimedMail, MailStore, NewMail } from '#storage/mail-store.ts'

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

/** What every MailStore owes; `open` gives an empty database. */
export function mailStoreConformance(open: () => Promise<WorkflowStores>): void {
  test('a mail is claimed as it was added, whatever characters it holds', async () => {
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

  test('a mail that is added twice is one mail, even when it was sent already', async () => {
    const { one, two } = await open()
    await Promise.all([one, two, one, two].map(({ mails }) => mails.add([mail('a'), mail('a'), mail('b')])))
    const claimed = await one.mails.claim(10, minute)
    expect(claimed).toHaveLength(2)
    for (const each of claimed) expect(await one.mails.sent(each)).toBe(true)
    await two.runs.record({ mails: [mail('a', { text: 'again' })] })
    expect(await two.mails.claim(10, minute)).toEqual([])
  })

  test('of many who claim, each mail goes to one', async () => {
    const { one, two } = await open()
    await one.mails.add(Array.from({ length: 30 }, (_, i) => mail(`${i}`)))
    const claims = await Promise.all(
      Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? one : two).mails.claim(5, minute)),
    )
    const claimed = [...claims.flat(), ...(await one.mails.claim(100, minute))]
    expect(new Set(claimed.map(({ id }) => id)).size).toBe(claimed.length)
    expect(claimed).toHaveLength(30)
  })

  test('a mail that failed is tried again later, or given up', async () => {
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
    expect(await one.mails.figures()).toEqual({ queued: 1, failed: 1 })
  })

  test('a claim whose lease ran out is void once another has the mail', async () => {
    const { one, two } = await open()
    await one.mails.add([mail('a')])
    const stale = await claimOne(one.mails, noLease)
    const held = await claimOne(two.mails)
    expect(await one.mails.sent(stale)).toBe(false)
    expect(await one.mails.failed(stale, 'late')).toBe(false)
    expect(await two.mails.sent(held)).toBe(true)
    expect(await two.mails.sent(held)).toBe(false)
  })

  test('what was sent keeps no text, and is forgotten in time; what is queued stays', async () => {
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
}

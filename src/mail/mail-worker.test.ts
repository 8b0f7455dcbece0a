import { afterEach, describe, expect, test } from 'vitest'
import { Scope } from '#kernel/scope.ts'
import type { When } from '#kernel/time.ts'
import type { ClaimedMail, MailClaim, MailKind } from '#sdk/mail/new-mail.ts'
import type { HandOver, OutgoingMail, SendOutcome } from '#sdk/notifier/notifier.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { recordingLogger } from '#testing/workflows/workflow-fixture.ts'
import { type MailQueue, MailWorker, mailRetryMillis } from './mail-worker.ts'
import type { Notifiers } from './notifiers.ts'
import { createNotifiers } from './notifiers.ts'

/** Each mail is claimed once; records the worker's reports. */
class Outbox implements MailQueue {
  #queue: ClaimedMail[]
  readonly notes: { readonly id: string; readonly error?: string; readonly retry?: When }[] = []
  readonly handed: string[] = []
  /** This worker still has the claim. */
  held = true
  /** How often recording a sent mail fails. */
  awayFor = 0
  claims = 0
  failure: Error | undefined

  constructor(mails: readonly Partial<ClaimedMail>[]) {
    const mail = { fence: 1, attempt: 1, recipient: 'ada@example.com', subject: 'Hi', text: '1 < 2' }
    this.#queue = mails.map((one, i) => ({ ...mail, id: `m${i}`, ...one }))
  }

  async claim(limit: number, _: number, kind: MailKind | 'any' = 'any'): Promise<readonly ClaimedMail[]> {
    this.claims++
    if (this.failure !== undefined) throw this.failure
    const isWanted = ({ links }: ClaimedMail) => kind === 'any' || (kind === 'mail') === (links === undefined)
    const claimed = this.#queue.filter(isWanted).slice(0, limit)
    this.#queue = this.#queue.filter((mail) => !claimed.includes(mail))
    return claimed
  }
  async sent({ id }: MailClaim): Promise<boolean> {
    if (this.awayFor-- > 0) throw new Error('away')
    this.notes.push({ id })
    return true
  }
  async failed({ id }: MailClaim, error: string, retry?: When): Promise<boolean> {
    this.notes.push(retry === undefined ? { id, error } : { id, error, retry })
    return true
  }
  async handOver({ id }: MailClaim): Promise<boolean> {
    this.handed.push(id)
    return this.held
  }
  async unknown({ id }: MailClaim, error: string): Promise<boolean> {
    this.notes.push({ id, error: `unknown: ${error}` })
    return true
  }
}

const workers: MailWorker[] = []
afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.close()
})

type Send = (mail: OutgoingMail, handOver: HandOver) => Promise<SendOutcome>

function start(store: Outbox, send: Send, notifiers?: Notifiers) {
  const log = recordingLogger()
  const counts: string[] = []
  const used = notifiers ?? { isEmpty: false, find: () => ({ send }) }
  const worker = new MailWorker(
    {
      store,
      log,
      clock: () => new Date('2026-01-02T03:04:05Z'),
      meter: { counted: (outcome) => void counts.push(outcome) },
      use: (work) => work(used),
    },
    { idleMillis: 5 },
  )
  workers.push(worker)
  return { worker, log, counts }
}

const accepts: Send = async () => ({ kind: 'accepted' })

describe('a mail of the outbox', () => {
  test('that a server accepted is recorded as sent once the database is back, and is not sent again', async () => {
    const store = new Outbox([{}])
    store.awayFor = 3
    let sends = 0
    start(store, async (_, handOver) => {
      sends++
      await handOver()
      return { kind: 'accepted' }
    })
    await until(async () => store.notes.length === 1, 5000)
    expect({ sends, handed: store.handed, notes: store.notes }).toEqual({
      sends: 1,
      handed: ['m0'],
      notes: [{ id: 'm0' }],
    })
  })

  test('does not wait for channels whose receivers do not answer', async () => {
    const store = new Outbox([
      ...Array.from({ length: 30 }, () => ({ links: [] })),
      ...Array.from({ length: 12 }, () => ({})),
    ])
    const hanging: (() => void)[] = []
    start(store, async ({ id }) => {
      if (Number(id.slice(1)) < 30) await new Promise<void>((resolve) => hanging.push(resolve))
      return { kind: 'accepted' }
    })
    await until(async () => store.notes.length === 12, 5000)
    expect(hanging).toHaveLength(5)
    while (store.notes.length < 42) {
      for (const answer of hanging.splice(0)) answer()
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  })

  test('whose delivery is unknown is reported and not retried', async () => {
    const store = new Outbox([{}])
    const { counts, log } = start(store, async () => ({ kind: 'unknown', reason: 'cut off' }))
    await until(async () => store.notes.length === 1, 2000)
    expect(store.notes).toEqual([{ id: 'm0', error: 'unknown: cut off' }])
    expect(counts).toEqual(['unknown'])
    expect(JSON.stringify(log.lines)).toContain('it is unknown whether a mail arrived')
  })

  test('that another worker has claimed must not be handed over', async () => {
    const store = new Outbox([{}])
    store.held = false
    const refused: unknown[] = []
    start(store, async (_, handOver) => {
      await handOver().catch((error: unknown) => refused.push(error))
      return { kind: 'failed', reason: 'not handed over' }
    })
    await until(async () => store.notes.length === 1, 2000)
    expect(refused).toHaveLength(1)
  })

  test('is sent once with its id and both forms, and recorded as sent', async () => {
    const store = new Outbox([{}, { html: '<b>x</b>' }])
    const seen: OutgoingMail[] = []
    const { counts } = start(store, async (mail) => {
      seen.push(mail)
      return { kind: 'accepted' }
    })
    await until(async () => store.notes.length === 2, 2000)
    const common = {
      recipient: 'ada@example.com',
      subject: 'Hi',
      text: '1 < 2',
      date: new Date('2026-01-02T03:04:05Z'),
    }
    expect(seen).toEqual([
      { ...common, links: [], id: 'm0', html: '<div style="white-space: pre-wrap">1 &lt; 2</div>' },
      { ...common, links: [], id: 'm1', html: '<b>x</b>' },
    ])
    expect(store.notes).toEqual([{ id: 'm0' }, { id: 'm1' }])
    expect(counts).toEqual(['sent', 'sent'])
  })

  test('is retried after a failure, and given up after a rejection or many attempts', async () => {
    const store = new Outbox([{ attempt: 3 }, { recipient: 'gone@example.com' }, { attempt: 60 }])
    const { counts, log } = start(store, async ({ recipient }) => ({
      kind: recipient.startsWith('gone') ? 'refused' : 'failed',
      reason: 'busy',
    }))
    await until(async () => store.notes.length === 3, 2000)
    const [again, ...given] = store.notes
    expect(again).toMatchObject({ id: 'm0', error: 'busy', retry: { inMillis: expect.any(Number) } })
    expect(given).toEqual([
      { id: 'm1', error: 'busy' },
      { id: 'm2', error: 'busy' },
    ])
    expect(counts.sort()).toEqual(['failed', 'failed', 'retried'])
    expect(JSON.stringify(log.lines)).not.toContain('gone@example.com')
  })

  test('without a matching Notifier stays queued', async () => {
    const store = new Outbox([{ attempt: 1000, notifier: 'gone' }])
    start(store, accepts, { isEmpty: false, find: () => undefined })
    await until(async () => store.notes.length === 1, 2000)
    expect(store.notes).toEqual([{ id: 'm0', error: 'no Notifier "gone"', retry: { inMillis: 60_000 } }])
  })

  test('is not claimed while there is no Notifier', async () => {
    const store = new Outbox([{}])
    start(store, accepts, { isEmpty: true, find: () => undefined })
    await new Promise((resolve) => setTimeout(resolve, 40))
    expect(store.claims).toBe(0)
  })
})

test('a failing database does not stop the worker, and closing waits for mails that are being sent', async () => {
  const store = new Outbox([{}])
  store.failure = new Error('away')
  let finish: (() => void) | undefined
  const { worker, log } = start(store, () => new Promise((resolve) => (finish = () => resolve({ kind: 'accepted' }))))
  await until(async () => log.lines.length > 1, 2000)
  store.failure = undefined
  await until(async () => finish !== undefined, 2000)
  let closed = false
  const closing = worker.close().then(() => {
    closed = true
  })
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect({ closed, notes: store.notes }).toEqual({ closed: false, notes: [] })
  finish?.()
  await closing
  expect(store.notes).toEqual([{ id: 'm0' }])
})

test('the pause doubles up to half an hour, with a random part, for about a day', () => {
  expect(mailRetryMillis(1, 0)).toBe(2_500)
  expect(mailRetryMillis(1, 1)).toBe(5_000)
  expect(mailRetryMillis(4, 1)).toBe(40_000)
  expect(mailRetryMillis(40, 1)).toBe(30 * 60_000)
  expect(mailRetryMillis(60, 1)).toBeUndefined()
  const hours = (chance: number) =>
    Array.from({ length: 59 }, (_, i) => mailRetryMillis(i + 1, chance) ?? 0).reduce((a, b) => a + b) / 3600_000
  expect(hours(0)).toBeGreaterThan(12)
  expect(hours(1)).toBeLessThan(28)
})

test('the only Notifier is the default one; of several, the one named so', async () => {
  const made = async (...names: string[]) => madeBeside([], ...names)
  const madeBeside = async (aside: readonly string[], ...names: string[]) => {
    const configs = names.map((name) => {
      const notifier = {
        className: 'x',
        delivers: 'mails' as const,
        create: async () => ({ send: async (): Promise<SendOutcome> => ({ kind: 'failed', reason: name }) }),
      }
      return [name, { name, namespace: undefined, at: 'n.yaml:1:1', notifier }] as const
    })
    const setAside = aside.map((name) => ({ kind: 'Notifier', name, reason: 'it has errors' }))
    const configuration = { notifiers: new Map(configs), setAside }
    const notifiers = await createNotifiers(configuration, () => fakeModuleHost(), new Scope())
    const mail = { id: 'i', recipient: 'a@b', subject: '', text: '', html: '', links: [], date: new Date() }
    return async (name?: string) => {
      const outcome = await notifiers.find(name)?.send(mail, async () => {})
      return outcome?.kind === 'failed' ? outcome.reason : outcome
    }
  }
  const one = await made('mail')
  expect([await one(), await one('mail'), await one('other')]).toEqual(['mail', 'mail', undefined])
  const several = await made('mail', 'default')
  expect([await several(), await several('mail')]).toEqual(['default', 'mail'])
  expect(await (await made('a', 'b'))()).toBeUndefined()
  // One that is set aside leaves its mails waiting, and does not make another one the default.
  expect(await (await madeBeside(['default'], 'mail'))()).toBeUndefined()
  expect(await (await madeBeside(['other'], 'mail'))()).toBeUndefined()
})

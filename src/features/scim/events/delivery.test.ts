import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt } from 'jose'
import { expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { PushOutcome } from '#protocols/secevent/event-pusher.ts'
import { memoryEventStore } from '#testing/workflows/memory-event-store.ts'
import type { EventStore, StoredEvent } from './event-store.ts'
import { Delivery, type EventOutcome, type Receiver } from './event-streams.ts'

const signingKey = generateKeyPairSync('rsa', { modulusLength: 2048 })
const keys = { publicKey: async () => undefined, signingKey: async () => signingKey, secretKeys: async () => [] }
const accepted: PushOutcome = { kind: 'accepted' }

const events = (...ids: string[]): StoredEvent[] =>
  ids.map((id) => ({ id, time: new Date(), key: 'k', claims: { jti: id } }))

/** Responds as the test says, and records the order of the tokens. */
class FakeReceiver implements Receiver {
  readonly taken: string[] = []
  readonly tried: string[] = []
  readonly #answer: (id: string, attempt: number) => PushOutcome | Promise<PushOutcome>

  constructor(answer: (id: string, attempt: number) => PushOutcome | Promise<PushOutcome> = () => accepted) {
    this.#answer = answer
  }

  async push(token: string): Promise<PushOutcome> {
    const id = String(decodeJwt(token).jti)
    this.tried.push(id)
    const outcome = await this.#answer(id, this.tried.length)
    if (outcome.kind === 'accepted') this.taken.push(id)
    return outcome
  }
}

function deliver(store: EventStore, receiver: Receiver, owner = 'one', times = { idleMillis: 50 }) {
  const counts: Partial<Record<EventOutcome, number>> = {}
  const meter = {
    counted: (_: string, outcome: EventOutcome, count: number) => {
      counts[outcome] = (counts[outcome] ?? 0) + count
    },
    oldest: () => {},
  }
  const parts = { stream: 's', owner, store, keys, clock: systemClock, log: silentLogger, meter }
  const delivery = new Delivery({ ...parts, receiver: () => receiver }, times)
  onTestFinished(() => delivery.close())
  return { delivery, counts }
}

const soon = { timeout: 15_000, interval: 10 }

test('events are pushed in order and removed once the receiver accepts them', async () => {
  const store = memoryEventStore()
  const ids = Array.from({ length: 45 }, (_, i) => `${i}`)
  await store.append('s', events(...ids))
  const receiver = new FakeReceiver()
  const { counts } = deliver(store, receiver)
  await vi.waitFor(async () => expect(await store.ids('s')).toEqual([]), soon)
  expect(receiver.taken).toEqual(ids)
  expect(counts).toEqual({ delivered: 45 })
})

test('an event appended later is pushed after a wake-up or by the next poll', async () => {
  const store = memoryEventStore()
  const receiver = new FakeReceiver()
  const { delivery } = deliver(store, receiver, 'one', { idleMillis: 60_000 })
  await store.append('s', events('1'))
  delivery.wake()
  await vi.waitFor(() => expect(receiver.taken).toEqual(['1']), soon)
  const { counts } = deliver(store, receiver, 'two')
  await store.append('s', events('2'))
  await vi.waitFor(() => expect(counts).toEqual({ delivered: 1 }), soon)
})

test('after a failure the same event is pushed again, before later ones', async () => {
  const store = memoryEventStore()
  await store.append('s', events('1', '2', '3'))
  const receiver = new FakeReceiver((_, attempt) => (attempt === 2 ? { kind: 'failed', reason: '503' } : accepted))
  const { counts } = deliver(store, receiver)
  await vi.waitFor(() => expect(receiver.tried).toEqual(['1', '2']), soon)
  await vi.waitFor(async () => expect((await store.stream('s'))?.failures).toBe(1), soon)
  expect(await store.ids('s')).toEqual(['2', '3'])
  await vi.waitFor(async () => expect(await store.ids('s')).toEqual([]), soon)
  expect(receiver.taken).toEqual(['1', '2', '3'])
  expect(counts).toEqual({ delivered: 3, failed: 1 })
  await vi.waitFor(async () => expect((await store.stream('s'))?.failures).toBe(0), soon)
})

test('a receiver that returns Retry-After gets nothing until then', async () => {
  const store = memoryEventStore()
  await store.append('s', events('1'))
  const receiver = new FakeReceiver(() => ({ kind: 'failed', reason: '429', retryAfterMillis: 60_000 }))
  const { delivery } = deliver(store, receiver)
  await vi.waitFor(async () => expect((await store.stream('s'))?.retryAt).toBeGreaterThan(Date.now() + 50_000), soon)
  await store.append('s', events('2'))
  delivery.wake()
  await new Promise((resolve) => setTimeout(resolve, 150))
  expect(receiver.tried).toEqual(['1'])
})

test('a rejected event is dropped, and the next one is pushed', async () => {
  const store = memoryEventStore()
  await store.append('s', events('1', '2'))
  const receiver = new FakeReceiver((id) => (id === '1' ? { kind: 'refused', reason: '400' } : accepted))
  const { counts } = deliver(store, receiver)
  await vi.waitFor(async () => expect(await store.ids('s')).toEqual([]), soon)
  expect(receiver.taken).toEqual(['2'])
  expect(counts).toEqual({ refused: 1, delivered: 1 })
})

test('only one of two processes delivers at a time, and each event is pushed once', async () => {
  const store = memoryEventStore()
  let together = 0
  let most = 0
  const receiver = new FakeReceiver(async () => {
    most = Math.max(most, ++together)
    await new Promise((resolve) => setTimeout(resolve, 2))
    together--
    return accepted
  })
  const first = deliver(store, receiver, 'one').delivery
  const second = deliver(store, receiver, 'two').delivery
  for (let i = 0; i < 30; i++) {
    await store.append('s', events(`${i}`))
    first.wake()
    second.wake()
  }
  await vi.waitFor(() => expect(receiver.taken).toHaveLength(30), soon)
  expect(receiver.taken).toEqual(Array.from({ length: 30 }, (_, i) => `${i}`))
  expect(most).toBe(1)
})

test('closing aborts a push, keeps its event and releases the claim', async () => {
  const store = memoryEventStore()
  await store.append('s', events('1'))
  const pushing = Promise.withResolvers<void>()
  const receiver: Receiver = {
    push: (_, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ kind: 'failed', reason: 'aborted' }))
        pushing.resolve()
      }),
  }
  const { delivery, counts } = deliver(store, receiver)
  await pushing.promise
  await delivery.close()
  expect(await store.ids('s')).toEqual(['1'])
  expect(await store.stream('s')).toMatchObject({ owner: '', failures: 0, retryAt: 0 })
  expect(counts).toEqual({})
})

test('delivery continues after the database has failed for a while', async () => {
  const store = memoryEventStore()
  await store.append('s', events('1'))
  let failing = true
  const read = store.read.bind(store)
  store.read = async (name, limit) => {
    if (failing) throw new Error('away')
    return read(name, limit)
  }
  const receiver = new FakeReceiver()
  deliver(store, receiver)
  await new Promise((resolve) => setTimeout(resolve, 60))
  failing = false
  await vi.waitFor(() => expect(receiver.taken).toEqual(['1']), soon)
})

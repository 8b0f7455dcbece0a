import { afterEach, expect, test, vi } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { Leadership, type LeaseObjects } from '#protocols/kubernetes/leadership.ts'
import type { ClusterObject } from './cluster.ts'

const times = { leaseMillis: 5_000, renewMillis: 20 }

/** One Lease with the API server's rules for writing it. */
class LeaseStore implements LeaseObjects {
  stored: ClusterObject | undefined
  isAway = false
  #version = 0

  async get(): Promise<ClusterObject | undefined> {
    this.#answer()
    return this.stored
  }

  async create(_resource: unknown, object: JsonObject): Promise<ClusterObject> {
    this.#answer()
    if (this.stored !== undefined) throw new GatewayError('CONFLICT', 'it is there')
    return this.#keep(object)
  }

  async replace(_resource: unknown, _name: string, object: JsonObject): Promise<ClusterObject> {
    this.#answer()
    const { resourceVersion } = object['metadata'] as unknown as { resourceVersion: string }
    if (this.stored?.metadata.resourceVersion !== resourceVersion) throw new GatewayError('VERSION_MISMATCH', 'changed')
    return this.#keep(object)
  }

  get holder(): unknown {
    return (this.stored?.content['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity
  }

  #answer(): void {
    if (this.isAway) throw new GatewayError('TARGET_UNREACHABLE', 'away')
  }

  #keep(content: JsonObject): ClusterObject {
    this.stored = { metadata: { name: 'l', uid: 'u', resourceVersion: String(++this.#version) }, content }
    return this.stored
  }
}

const opened: Leadership[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const one of opened.splice(0)) await one.close()
})

function candidate(objects: LeaseObjects, identity: string, chosen = times) {
  const onGain = vi.fn()
  const onError = vi.fn()
  // The clocks of machines differ, and the election must not depend on them.
  const clock = () => new Date(identity === 'a' ? '2001-01-01' : '2040-01-01')
  const leadership = new Leadership({
    objects,
    namespace: 'ns',
    name: 'l',
    identity,
    clock,
    times: chosen,
    onGain,
    onError,
  })
  opened.push(leadership)
  return { leadership, onGain, onError }
}

test('one of several leads, and stays the leader', async () => {
  const store = new LeaseStore()
  const all = ['a', 'b', 'c'].map((identity) => candidate(store, identity))
  for (const { leadership } of all) leadership.start()
  await vi.waitFor(() => expect(store.holder).toBeDefined())
  const first = store.holder
  await new Promise((resume) => setTimeout(resume, 300))
  expect(all.filter(({ leadership }) => leadership.isLeader)).toHaveLength(1)
  expect(store.holder).toBe(first)
  expect(all.flatMap(({ onGain }) => onGain.mock.calls)).toHaveLength(1)
})

test('a leader that ends gives its lease back at once', async () => {
  const store = new LeaseStore()
  const [a, b] = [candidate(store, 'a'), candidate(store, 'b')]
  expect(await a.leadership.attempt()).toBe(true)
  expect(await b.leadership.attempt()).toBe(false)
  await a.leadership.close()
  expect([store.holder, a.leadership.isLeader]).toEqual(['', false])
  expect(await b.leadership.attempt()).toBe(true)
})

test('a lease that is not renewed is taken over after its duration, and not before', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const store = new LeaseStore()
  const [a, b] = [candidate(store, 'a'), candidate(store, 'b')]
  await a.leadership.attempt()
  expect(await b.leadership.attempt()).toBe(false)
  vi.advanceTimersByTime(4_990)
  expect(await b.leadership.attempt()).toBe(false)
  vi.advanceTimersByTime(20)
  expect(a.leadership.isLeader).toBe(false)
  expect(await b.leadership.attempt()).toBe(true)
  expect(await a.leadership.attempt()).toBe(false)
})

test("a leader that can't renew stops leading before another can start", async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const store = new LeaseStore()
  const { leadership, onError } = candidate(store, 'a')
  expect(await leadership.attempt()).toBe(true)
  store.isAway = true
  expect(await leadership.attempt()).toBe(true)
  vi.advanceTimersByTime(4_500)
  expect(leadership.isLeader).toBe(false)
  expect(onError).toHaveBeenCalled()
})

test('it waits for the lease of a leader that was killed, and not for one that lives', async () => {
  const short = { leaseMillis: 400, renewMillis: 20 }
  const store = new LeaseStore()
  await candidate(store, 'killed', short).leadership.attempt()
  const { leadership } = candidate(store, 'b', short)
  expect(await leadership.succeed()).toBe(true)
  expect(store.holder).toBe('b')
  leadership.start()
  expect(await candidate(store, 'c', short).leadership.succeed()).toBe(false)
})

test('a leader whose renewal is late gives its lease back too', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const store = new LeaseStore()
  const { leadership } = candidate(store, 'a')
  await leadership.attempt()
  vi.advanceTimersByTime(4_500)
  await leadership.close()
  expect([leadership.isLeader, store.holder]).toEqual([false, ''])
})

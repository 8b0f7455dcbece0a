import { generateKeyPairSync } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import { openStorage } from '#server/composition/stores.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { openGateway, People, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import { ClientRates } from './client-rates.ts'
import scimGateway from './scim-gateway.ts'

/** Comes back so slowly that a slow machine gets no more. */
const slow = 0.001

onEachDatabase('rates of clients', (freshUrl) => {
  test('hold for all processes together, up to a bundle', async () => {
    const url = await freshUrl()
    const processes = Array.from({ length: 4 }, () => {
      const storage = openStorage({ url, clock: systemClock, log: silentLogger })
      onTestFinished(() => storage.close())
      return storage.rateLimits
    })
    // On SQLite there is one process.
    const shared = processes[0] instanceof MemoryRateLimits ? [processes[0]] : processes
    const rates = shared.map(
      (rateLimits) =>
        new ClientRates({ gateway: 'scim', rate: { burst: 100, perMinute: slow }, rateLimits, clock: systemClock }),
    )
    const tries = Array.from({ length: 200 }, (_, n) => rates[n % rates.length])
    const outcomes = await Promise.allSettled(tries.map(async (one) => one?.take('idp')))
    const passed = outcomes.filter(({ status }) => status === 'fulfilled').length
    expect(passed).toBeLessThanOrEqual(100)
    expect(passed).toBeGreaterThan(100 - rates.length * 5)
    await rates[0]?.take('other')
  })
})

test('a burst comes back at the rate', async () => {
  let now = 1_000_000
  const clock = () => new Date(now)
  const rateLimits = new MemoryRateLimits(clock)
  const rates = new ClientRates({ gateway: 'scim', rate: { burst: 60, perMinute: 60 }, rateLimits, clock })
  const passed = async (tries: number): Promise<number> => {
    let count = 0
    for (let n = 0; n < tries; n++) {
      const isPassed = await Promise.resolve(rates.take('idp')).then(
        () => true,
        () => false,
      )
      if (isPassed) count++
    }
    return count
  }
  expect(await passed(100)).toBe(60)
  now += 10_000
  expect(await passed(100)).toBeGreaterThanOrEqual(9)
  now += 3600_000
  // What is left of a bundle does not add up with a whole burst.
  expect(await passed(1)).toBe(1)
  now += 3600_000
  expect(await passed(100)).toBe(60)
})

test('a client below its rate is never refused, however its requests are spread over processes', async () => {
  let now = 1_000_000
  const clock = () => new Date(now)
  const rateLimits = new MemoryRateLimits(clock)
  const rate = { burst: 1500, perMinute: 1500 }
  const [first, second] = [1, 2].map(() => new ClientRates({ gateway: 'scim', rate, rateLimits, clock }))
  for (let n = 0; n < 6000; n++) {
    await (n % 2 === 0 ? first : second)?.take('idp')
    now += 100
  }
})

const limited = { ...tutorialParams, requestsPerMinute: '1', requestBurst: '5' }

test('requests beyond the rate are answered 429 with Retry-After, and nothing is done', async () => {
  const people = new People()
  people.add('ada')
  const host = { rateLimits: new MemoryRateLimits(systemClock) }
  const idp = await openGateway(scimGateway, { people, params: limited, host })
  const other = await openGateway(scimGateway, { people, params: limited, host, client: 'other' })
  for (let n = 0; n < 5; n++) expect((await idp.send('GET', '/Users/ada')).status).toBe(200)
  for (const forwarded of ['10.0.0.1', '10.0.0.2']) {
    const { status, body } = await idp.send('POST', '/Users', { userName: 'eve' }, { 'x-forwarded-for': forwarded })
    expect([status, body]).toEqual([
      429,
      {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
        status: '429',
        detail: expect.stringMatching(/^This client has sent too many requests\. Try again in \d+ seconds\.$/),
      },
    ])
  }
  expect((await idp.send('GET', '/Nothing')).status).toBe(429)
  expect(idp.workflows.calls).toEqual([])
  expect((await other.send('GET', '/Users/ada')).status).toBe(200)
})

test('operations of a bulk request count, those of a dry run too', async () => {
  const { send, people } = await openGateway(scimGateway, {
    params: limited,
    host: { rateLimits: new MemoryRateLimits(systemClock) },
  })
  const operation = (n: number) => ({ method: 'POST', path: '/Users', bulkId: `b${n}`, data: { userName: `user${n}` } })
  const { body } = await send('POST', '/Bulk', {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
    Operations: [1, 2, 3, 4, 5, 6].map(operation),
  })
  const statuses = (body['Operations'] as { status: string }[]).map(({ status }) => status)
  expect(statuses).toEqual(['201', '201', '201', '201', '429', '429'])
  expect(people.people.size).toBe(4)
  expect((await send('POST', '/Users?dryRun=true', { userName: 'x' })).status).toBe(429)
})

test('reads for events count for no client, and events keep their data', async () => {
  const { eventStreams, keys, events } = fakeModuleHost({
    signingKey: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  })
  const { send } = await openGateway(scimGateway, {
    params: {
      ...limited,
      events: 'people',
      eventsIssuer: 'https://gw.example.com',
      eventsAudience: 'https://receiver.example.com',
      eventsPayload: 'full',
    },
    host: { rateLimits: new MemoryRateLimits(systemClock), eventStreams, keys },
  })
  for (let n = 0; n < 5; n++) expect((await send('POST', '/Users', { userName: `user${n}` })).status).toBe(201)
  expect((await send('POST', '/Users', { userName: 'user5' })).status).toBe(429)
  expect(events.map((event) => Object.keys(event.events))).toEqual(
    Array(5).fill(['urn:ietf:params:scim:event:prov:create:full']),
  )
})

test('callers of one login and different issuers have a rate each', async () => {
  const host = { rateLimits: new MemoryRateLimits(systemClock) }
  const here = await openGateway(scimGateway, { params: limited, host, client: 'idp,ou=one' })
  const there = await openGateway(scimGateway, { params: limited, host, client: 'idp,ou=two' })
  for (let n = 0; n < 5; n++) expect((await here.send('GET', '/Users')).status).toBe(200)
  expect((await here.send('GET', '/Users')).status).toBe(429)
  expect((await there.send('GET', '/Users')).status).toBe(200)
  expect([here, there].map(({ exchanges }) => exchanges[0]?.subject.uid)).toEqual(['idp', 'idp'])
})

test('a burst needs a rate', async () => {
  await expect(openGateway(scimGateway, { params: { ...tutorialParams, requestBurst: '5' } })).rejects.toThrow(
    '"requestBurst" needs "requestsPerMinute"',
  )
})

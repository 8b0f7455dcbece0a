import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { openScimTarget } from '#adapters/targets/scim/scim-target.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { addUser, comparedSystems, linesOf, memoryTarget } from '#testing/reconciliation/compared-systems.ts'
import { compare } from './compare.ts'

const people = 1200
const failingRow = 600

interface ListPage {
  readonly logins: readonly string[]
  readonly total: number
}

/** What a server answers to a list from this position on, and then. */
interface Habit {
  list(all: string[], start: number, count: number): ListPage | number
}

const honest = (all: readonly string[], start: number, count: number): ListPage => ({
  logins: all.slice(start, start + count),
  total: all.length,
})

/** A SCIM server that answers lists as the habit says, and everything else truthfully. */
async function startServer({ list }: Habit): Promise<URL> {
  const all = Array.from({ length: people }, (_, i) => `user${String(i).padStart(4, '0')}`)
  const user = (userName: string) => ({
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
    id: `id-${userName}`,
    userName,
  })
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://scim')
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/scim+json' }).end(JSON.stringify(body))
    const [, collection, id] = url.pathname.split('/')
    if (collection === 'Users' && id === undefined) {
      const filter = /^(?:userName|id) eq "(?:id-)?([^"]+)"$/.exec(url.searchParams.get('filter') ?? '')
      const start = Number(url.searchParams.get('startIndex') ?? 1) - 1
      const count = Number(url.searchParams.get('count') ?? 100)
      const found =
        filter === null
          ? list(all, start, count)
          : honest(
              all.filter((one) => one === filter[1]),
              start,
              count,
            )
      if (typeof found === 'number') return answer(found, { detail: 'broken' })
      const Resources = found.logins.map(user)
      return answer(200, {
        totalResults: found.total,
        startIndex: start + 1,
        itemsPerPage: Resources.length,
        Resources,
      })
    }
    const one = all.find((login) => `id-${login}` === decodeURIComponent(id ?? ''))
    if (collection === 'Users' && one !== undefined) return answer(200, user(one))
    if (collection === 'Groups' && id === undefined) return answer(200, { totalResults: 0, Resources: [] })
    return answer(404, { detail: 'not found' })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
}

/** Compares people behind the server with a target that has an account of each and one more. */
async function compareWith(habit: Habit, from?: string) {
  const url = await startServer(habit)
  const config = {
    url,
    access: { kind: 'token', token: 'secret' },
    authority: undefined,
    profile: undefined,
    memberships: 'user',
    missingGroups: 'refuse',
    passwords: false,
    timeoutMillis: 5_000,
  } as const
  const host = { name: 'people', log: silentLogger, clock: systemClock, javaScript: () => undefined }
  const source = await openScimTarget(config, host)
  onTestFinished(async () => source.close?.())
  const target = memoryTarget()
  for (let i = 0; i < people; i++) await addUser(target, `user${String(i).padStart(4, '0')}`)
  await addUser(target, 'extra')
  const spec =
    'attributes: [{ name: TREMOLO_USER_ID, source: TREMOLO_USER_ID, sourceType: user }]\nmissing: create\nextra: delete\n'
  const systems = await comparedSystems({ source, target, spec, ...(from === undefined ? {} : { from }) })
  const lines: string[] = []
  let agree = 0
  const end = (async () => {
    for await (const { differences, counts } of compare(systems)) {
      lines.push(...linesOf(differences))
      agree += counts.agree
    }
  })()
  return { end, lines, agreed: () => agree }
}

test.each<[string, Habit, object]>([
  [
    'ends early',
    { list: (all, start, count) => ({ ...honest(start >= failingRow ? [] : all, start, count), total: all.length }) },
    { code: 'TARGET_FAILED', message: expect.stringMatching(/ended after \d+ users, but says that it has 1200/) },
  ],
  [
    'names a total that is too large',
    { list: (all, start, count) => ({ ...honest(all, start, count), total: 5000 }) },
    { code: 'TARGET_FAILED', message: expect.stringContaining('ended after 1200 users, but says that it has 5000') },
  ],
  [
    'names a smaller total on later pages',
    { list: (all, start, count) => ({ ...honest(all, start, count), total: start === 0 ? all.length : failingRow }) },
    { code: 'TARGET_FAILED' },
  ],
  [
    'sorts each page differently',
    { list: (all, start, count) => honest(start === 0 ? all : all.toReversed(), start, count) },
    { code: 'TARGET_FAILED' },
  ],
  [
    'returns the first page for every page',
    { list: (all, _, count) => honest(all, 0, count) },
    { code: 'TARGET_FAILED' },
  ],
  [
    'fails at one row',
    { list: (all, start, count) => (start >= failingRow ? 400 : honest(all, start, count)) },
    { code: expect.stringMatching(/^TARGET_|BAD_REQUEST/) },
  ],
])('nothing is said of anyone if the source %s', async (_, habit, error) => {
  const { end, lines } = await compareWith(habit)
  await expect(end).rejects.toMatchObject(error)
  expect(lines).toEqual([])
})

test('nothing is said of anyone if the source ends early and cannot filter', async () => {
  const { end, lines } = await compareWith(
    { list: (all, start, count) => ({ ...honest(start >= failingRow ? [] : all, start, count), total: all.length }) },
    '{ target: people, filter: "(!(title=guest))" }',
  )
  await expect(end).rejects.toMatchObject({
    code: 'TARGET_FAILED',
    message: expect.stringMatching(/of 1200 resources/),
  })
  expect(lines).toEqual([])
})

test('a person who moved to a page that was read already keeps the account', async () => {
  let isDone = false
  const { end, lines, agreed } = await compareWith({
    list: (all, start, count) => {
      // The first user is deleted after the first page, so that all others move by one.
      if (start > 0 && !isDone) all.shift()
      isDone ||= start > 0
      return honest(all, start, count)
    },
  })
  await end
  expect(lines).toEqual(['extra – → extra: delete'])
  expect(agreed()).toBe(people)
})

test('a person who is created while pages are read is no reason to stop', async () => {
  let isDone = false
  const { end, lines } = await compareWith({
    list: (all, start, count) => {
      if (start > 0 && !isDone) all.unshift('user9999')
      isDone ||= start > 0
      return honest(all, start, count)
    },
  })
  await end
  expect(lines).toEqual(['extra – → extra: delete'])
})

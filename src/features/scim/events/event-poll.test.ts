import { expect, test } from 'vitest'
import { expectDescribedBy } from '#testing/gateway/api-contract.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import eventPoll from './event-poll.ts'
import type { EventPoll } from './event-stream.ts'

async function poll(
  body: unknown,
  options: { method?: string; type?: string; more?: boolean; pathInfo?: string } = {},
) {
  const { method = 'POST', type = 'application/json; charset=utf-8', more = false, pathInfo = '' } = options
  const polls: (Omit<EventPoll, 'signal'> & { stream: string })[] = []
  const prepared = eventPoll.prepare(fakeParams({ stream: 'people' }), noIssues(), fakeParseContext())
  const filter = await prepared.create(
    fakeModuleHost({
      pollEvents: async (stream, { signal: _, ...asked }) => {
        polls.push({ stream, ...asked })
        return { tokens: new Map([['id-1', 'token-1']]), more }
      },
    }),
  )
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await filter.handle(
    {
      request: fakeRequest({ method, headers: { 'content-type': type }, body: text }),
      application: 'events',
      mount: '/events',
      pathInfo,
      subject: subject('uid=receiver,o=test'),
    },
    async () => {
      throw new Error('there is nothing behind this filter')
    },
  )
  expectDescribedBy(prepared, method, pathInfo, response)
  return { status: response.status, body: JSON.parse(String(response.body)), poll: polls[0] }
}

test('RFC 8936 2.4: tokens are returned by id', async () => {
  const { body, poll: asked } = await poll({})
  expect(body).toEqual({ sets: { 'id-1': 'token-1' } })
  expect(asked).toEqual({ stream: 'people', max: 100, acknowledged: [], refused: new Map(), waitMillis: 30_000 })
  expect((await poll({}, { more: true })).body).toMatchObject({ moreAvailable: true })
})

test('RFC 8936 2.2: acknowledgements and errors are passed to the stream; unknown members are ignored', async () => {
  const { poll: asked } = await poll({
    ack: ['id-0'],
    setErrs: { 'id-9': { err: 'invalid_key', description: 'no' }, 'id-8': { err: 'x' } },
    maxEvents: 0,
    returnImmediately: true,
    unknown: 1,
  })
  expect(asked).toEqual({
    stream: 'people',
    max: 0,
    acknowledged: ['id-0'],
    refused: new Map([
      ['id-9', { error: 'invalid_key', description: 'no' }],
      ['id-8', { error: 'x', description: '' }],
    ]),
    waitMillis: 0,
  })
  expect((await poll({ maxEvents: 1_000_000 })).poll?.max).toBe(200)
})

test.each([
  [],
  'text',
  { maxEvents: -1 },
  { maxEvents: 1.5 },
  { maxEvents: '1' },
  { returnImmediately: 'yes' },
  { ack: 'id' },
  { ack: [1] },
  { ack: [''] },
  { ack: ['x'.repeat(257)] },
  { ack: Array.from({ length: 1001 }, () => 'x') },
  { setErrs: ['x'] },
  { setErrs: { x: 'y' } },
  { setErrs: { x: {} } },
  { setErrs: Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`${i}`, { err: 'x' }])) },
])('a poll such as %j is rejected', async (body) => {
  await expect(poll(JSON.stringify(body))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})

test('other methods, types, paths and texts are rejected', async () => {
  await expect(poll({}, { method: 'GET' })).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
  await expect(poll({}, { type: 'text/plain' })).rejects.toMatchObject({ code: 'UNSUPPORTED_MEDIA_TYPE' })
  await expect(poll('{')).rejects.toMatchObject({ code: 'INVALID_JSON' })
  await expect(poll({}, { pathInfo: '/other' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('a stream is required', () => {
  const issues = noIssues()
  eventPoll.prepare(fakeParams({}), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([expect.stringContaining('"stream" is required')])
})

import { describe, expect, test } from 'vitest'
import type { StatisticsQuery } from '#features/portal/statistics/statistics.ts'
import type { Statistics } from '#features/portal/statistics/statistics-query.ts'
import { openMain, someone } from '#testing/modules/main-fixture.ts'

const now = Date.UTC(2030, 5, 15, 12, 30)
const admin = someone('root', ['people', 'admins'])
const runs = {
  ready: 0,
  running: 0,
  waiting: 0,
  incident: 0,
  completed: 3,
  denied: 0,
  expired: 0,
  failed: 0,
  cancelled: 0,
}
const counted: Statistics = {
  parts: [
    {
      from: new Date(now),
      requests: runs,
      approvals: { opened: 1, escalated: 0, approved: 2, denied: 0, decisionMillis: 70 },
      tokens: { sts: { issued: 4, refused: 5 }, issuers: { issued: 6, refused: 7 } },
      calls: { answered: 8, refused: 9, failed: 10 },
    },
  ],
  decisionMillis: 90,
  workflows: [{ name: 'join', requests: runs }],
  callers: [{ journal: 'scim', caller: 'okta', calls: { answered: 8, refused: 9, failed: 10 } }],
}

async function open(params: Readonly<Record<string, string | readonly string[]>> = {}) {
  const asked: StatisticsQuery[] = []
  const { send } = await openMain({
    params: { administrators: 'filter;(groups=admins)', ...params },
    now: () => now,
    readStatistics: async (query) => {
      asked.push(query)
      return counted
    },
  })
  return { asked, send, get: (query: string) => send('GET', `/admin/statistics${query}`, undefined, admin) }
}

describe('statistics', () => {
  test('are for administrators alone, and read-only', async () => {
    const { send, asked } = await open()
    await expect(send('GET', '/admin/statistics')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    await expect(send('POST', '/admin/statistics', {}, admin)).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
    expect(asked).toEqual([])
    expect(await send('HEAD', '/admin/statistics', undefined, admin)).toMatchObject({ status: 200, text: '' })
  })

  test('follow the contract, and are not cached', async () => {
    const { get } = await open()
    const { body, headers } = await get('?by=hour&from=2h')
    expect(headers['cache-control']).toBe('no-store')
    expect(body).toEqual({
      from: '2030-06-15T10:30:00.000Z',
      to: '2030-06-15T12:30:00.000Z',
      by: 'hour',
      parts: [
        {
          from: '2030-06-15T12:30:00.000Z',
          requests: runs,
          approvals: { opened: 1, escalated: 0, approved: 2, denied: 0, decisionMillis: 70 },
          tokens: { sts: { issued: 4, refused: 5 }, issuers: { issued: 6, refused: 7 } },
          scim: { answered: 8, refused: 9, failed: 10 },
        },
      ],
      decisionMillis: 90,
      workflows: [{ name: 'join', requests: runs }],
      scimClients: [{ gateway: 'scim', client: 'okta', calls: { answered: 8, refused: 9, failed: 10 } }],
    })
  })

  test('cover the last 30 days or 24 hours by default', async () => {
    const { get, asked } = await open()
    const hour = 3_600_000
    await get('')
    await get('?by=hour')
    await get('?by=day&from=2030-01-01&to=2030-02-01T00:00:00Z')
    expect(asked).toEqual([
      { from: new Date(now - 720 * hour), to: new Date(now), partMillis: 24 * hour },
      { from: new Date(now - 24 * hour), to: new Date(now), partMillis: hour },
      { from: new Date('2030-01-01'), to: new Date('2030-02-01'), partMillis: 24 * hour },
    ])
  })

  test('count calls of the gateways that administrators see', async () => {
    const { get, asked } = await open({ scimJournals: ['people', 'devices'] })
    await get('')
    expect(asked[0]?.journals).toEqual(['people', 'devices'])
  })

  test('an invalid query is rejected', async () => {
    const { get, asked } = await open()
    const wrong = ['?by=week', '?by=constructor', '?by=', '?from=x', '?to=tomorrow', '?form=1d', '?by=day&by=hour']
    for (const query of wrong) await expect(get(query)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(asked).toEqual([])
  })
})

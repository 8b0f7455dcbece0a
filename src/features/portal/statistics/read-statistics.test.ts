import { describe, expect, test } from 'vitest'
import { createStatistics } from './read-statistics.ts'
import type { StatisticsQuery } from './statistics.ts'
import type { StatisticsCounts } from './statistics-store.ts'

const hour = 3_600_000
const begin = Date.UTC(2030, 0, 1)
const runs = {
  ready: 0,
  running: 0,
  waiting: 0,
  incident: 0,
  completed: 0,
  denied: 0,
  expired: 0,
  failed: 0,
  cancelled: 0,
}
const nothing: StatisticsCounts = {
  requests: [],
  workflows: [],
  opened: [],
  decided: [],
  decisionMillis: [],
  tokens: [],
  calls: [],
  callers: [],
}

function open(counts: Partial<StatisticsCounts> = {}) {
  const done: (string | StatisticsQuery)[] = []
  const read = createStatistics(
    {
      count: async (query) => {
        done.push(query)
        return { ...nothing, ...counts }
      },
    },
    { write: async () => void done.push('written') },
  )
  return { read, done }
}

const span = (hours: number) => ({ from: new Date(begin), to: new Date(begin + hours * hour), partMillis: hour })

describe('statistics', () => {
  test('returns every part with its counts', async () => {
    const { read } = open({
      requests: [{ ...runs, part: 2, completed: 4 }],
      opened: [{ part: 0, opened: 3, escalated: 1 }],
      decided: [{ part: 2, approved: 1, denied: 2 }],
      decisionMillis: [{ part: 2, median: 50 }],
      decisionMillisOfAll: 60,
      tokens: [{ part: 1, stsIssued: 5, stsRefused: 6, issuerIssued: 7, issuerRefused: 8 }],
      calls: [{ part: 0, answered: 9, refused: 10, failed: 11 }],
      workflows: [{ ...runs, name: 'join', waiting: 1 }],
      callers: [{ journal: 'scim', caller: 'okta', answered: 1, refused: 2, failed: 3 }],
    })
    const { parts, ...rest } = await read(span(2.5))
    const none = {
      requests: runs,
      approvals: { opened: 0, escalated: 0, approved: 0, denied: 0 },
      tokens: { sts: { issued: 0, refused: 0 }, issuers: { issued: 0, refused: 0 } },
      calls: { answered: 0, refused: 0, failed: 0 },
    }
    expect(parts).toEqual([
      {
        ...none,
        from: new Date(begin),
        approvals: { opened: 3, escalated: 1, approved: 0, denied: 0 },
        calls: { answered: 9, refused: 10, failed: 11 },
      },
      {
        ...none,
        from: new Date(begin + hour),
        tokens: { sts: { issued: 5, refused: 6 }, issuers: { issued: 7, refused: 8 } },
      },
      {
        ...none,
        from: new Date(begin + 2 * hour),
        requests: { ...runs, completed: 4 },
        approvals: { opened: 0, escalated: 0, approved: 1, denied: 2, decisionMillis: 50 },
      },
    ])
    expect(rest).toEqual({
      decisionMillis: 60,
      workflows: [{ name: 'join', requests: { ...runs, waiting: 1 } }],
      callers: [{ journal: 'scim', caller: 'okta', calls: { answered: 1, refused: 2, failed: 3 } }],
    })
  })

  test('writes pending journal entries before counting', async () => {
    const { read, done } = open()
    await read({ ...span(1), journals: ['a'] })
    expect(done).toEqual(['written', { ...span(1), journals: ['a'], most: 10 }])
  })

  test('rejects an invalid time span, or too many parts, before counting', async () => {
    const { read, done } = open()
    expect((await read(span(400))).parts).toHaveLength(400)
    done.length = 0
    for (const hours of [0, -1, 400.1, 1e9, Number.NaN]) {
      await expect(read(span(hours))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
    expect(done).toEqual([])
  })
})

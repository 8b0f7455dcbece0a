import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { Databases } from '#storage/client/databases.ts'
import type { SqlQuery } from '#storage/client/sql-client.ts'
import { countCallers, countCalls, statisticsStatements } from '#storage/statistics-store.ts'
import { onEachDatabase } from '#testing/databases.ts'

onEachDatabase('statistics', (freshUrl) => {
  test('scans no whole table', async () => {
    const { client, release } = new Databases(systemClock, silentLogger).use(await freshUrl())
    onTestFinished(release)
    const { dialect } = client
    const { requests, workflows, opened, decided, medians, tokens } = statisticsStatements
    const span = { from: 1_000, to: 2_000, width: 10, most: 5 }
    const journals = ['a', 'b']
    const statements: Readonly<Record<string, SqlQuery<unknown>>> = {
      runs_by_creation: requests.query(dialect, span),
      'runs_by_creation by name': workflows.query(dialect, span),
      approvals_by_opening: opened.query(dialect, span),
      approvals_by_decision: decided.query(dialect, span),
      'approvals_by_decision for the median': medians.query(dialect, span),
      audit_tokens: tokens.query(dialect, span),
      journal_by_time: countCalls(dialect, span, undefined),
      'journal_by_time by caller': countCallers(dialect, span, undefined),
      'journal_by_time of some': countCalls(dialect, span, journals),
      'journal_by_time of some by caller': countCallers(dialect, span, journals),
    }
    for (const [name, { sql, params }] of Object.entries(statements)) {
      const explain = dialect === 'sqlite' ? 'explain query plan' : 'explain'
      const plan = await client.transaction(async (tx) => {
        // Tables as small as these would be read as a whole, whatever indexes there are.
        if (dialect === 'postgres') await tx.run({ sql: 'set local enable_seqscan = off', params: [], name: undefined })
        return await tx.query({ sql: `${explain} ${sql}`, params, name: undefined })
      })
      const [index = ''] = name.split(' ')
      const text = JSON.stringify(plan)
      expect({ name, text }).toEqual({ name, text: expect.stringContaining(index) })
      expect({ name, text }).toEqual({
        name,
        text: expect.not.stringMatching(/SCAN (?:runs|approvals|audit|journal)|Seq Scan/),
      })
      if (dialect === 'sqlite' && !name.endsWith('by caller'))
        expect({ name, text }).toEqual({ name, text: expect.stringContaining('COVERING INDEX') })
    }
  })
})

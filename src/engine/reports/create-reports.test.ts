import { expect, test } from 'vitest'
import { createReports } from '#engine/reports/report-endpoint.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { fakeSecretBox } from '#testing/fake-login-services.ts'
import { MemoryReports } from '#testing/memory-reports.ts'

const spec = { name: 'Requests', sql: 'select nothing from report_requests' }
const reports = new Map([['requests', { name: 'requests', namespace: 'default', at: 'reports.yaml:3:1', spec }]])

function create(failure: GatewayError | undefined) {
  const warned: string[] = []
  const store = new MemoryReports()
  store.check = async () => {
    if (failure !== undefined) throw failure
  }
  const log = { ...silentLogger, warn: (message: string) => void warned.push(message) }
  const created = createReports(reports, { store, secrets: fakeSecretBox('report'), clock: () => new Date(), log })
  return { created, warned }
}

test('a statement that the database rejects is reported with its place', async () => {
  const { created } = create(new GatewayError('INTERNAL', 'no such column: nothing'))
  await expect(created).rejects.toThrow(
    'reports.yaml:3:1: spec.sql: the database does not understand it: no such column: nothing',
  )
})

test('a database that does not answer does not prevent the start', async () => {
  const { created, warned } = create(new GatewayError('TARGET_UNREACHABLE', 'gone'))
  await created
  expect(warned).toEqual(['the reports were not checked against the database'])
  const fine = create(undefined)
  await fine.created
  expect(fine.warned).toEqual([])
})

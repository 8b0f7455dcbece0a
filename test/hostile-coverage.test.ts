import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { directoryInserts } from '#catalog/catalog.ts'
import { targets } from '#catalog/targets.ts'
import { temporaryFolder } from '#testing/databases.ts'
import { holdNobody, insertCoverage, sameCode, targetCoverage } from '#testing/hostile-coverage.ts'
import { HostileMeter, reportVariable, type TrialReport } from '#testing/hostile-meter.ts'
import { offeredMethods, targetOperations } from '#testing/hostile-operations.ts'
import { places } from './hostile/rows.ts'

const rows = (table: Readonly<Record<string, { readonly className: string }>>): string[] =>
  Object.values(table).map(({ className }) => className)

test('every target and every insert has a row in the table of hostile values', () => {
  const known = new Set<string>([...rows(targetCoverage), ...holdNobody, ...Object.keys(sameCode)])
  expect([...known].sort()).toEqual(
    targets
      .all()
      .map(({ className }) => className)
      .sort(),
  )
  expect(rows(targetCoverage)).toEqual(expect.arrayContaining(Object.values(sameCode)))
  const inserts = directoryInserts.all().map(({ className }) => className)
  expect([...new Set(rows(insertCoverage))].sort()).toEqual(inserts.sort())
})

test('every row of the table is a row of `npm run hostile`, whose trial is where it says', () => {
  const all = [...Object.keys(targetCoverage), ...Object.keys(insertCoverage).map((row) => `directory: ${row}`)]
  expect(Object.keys(places).sort()).toEqual(all.sort())
  for (const { file, test: name } of Object.values(places)) {
    expect(readFileSync(file, 'utf8')).toContain(`'${name.replace(/^(SQLite|PostgreSQL) /, '')}`)
  }
})

test('the time that passes is shared by what is under way', async () => {
  const meter = new HostileMeter<'quick' | 'slow' | 'both'>('a row')
  const folder = temporaryFolder()
  vi.stubEnv(reportVariable, join(folder, 'reports'))
  onTestFinished(() => void vi.unstubAllEnvs())
  await Promise.all([meter.did('quick', () => delay(1)), meter.did(['slow', 'both'], () => delay(200), 3)])
  await expect(meter.did('quick', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  meter.tellProgress(1)
  meter.tellEnd(2)
  expect(meter.tally()).toEqual({ quick: 2, slow: 3, both: 3 })
  const [progress, end] = readFileSync(join(folder, 'reports'), 'utf8').trimEnd().split('\n')
  expect(JSON.parse(progress ?? '')).toEqual({ row: 'a row', values: 1 })
  const { operations } = JSON.parse(end ?? '') as Required<TrialReport>
  const [[, , quick] = [], [, , slow = 0] = [], [, , both] = []] = operations
  expect(slow).toBeGreaterThan(0.05)
  expect(quick).toBeLessThan(slow)
  expect(both).toBeCloseTo(slow, 6)
})

test('what the table has no operation for is noticed, in whatever way a target offers it', () => {
  class Base {
    findUser() {}
    close() {}
  }
  class Generous extends Base {
    grant() {}
  }
  expect([...offeredMethods(new Base(), targetOperations)]).toEqual(['findUser'])
  expect(() => offeredMethods(new Generous(), targetOperations)).toThrow(/through grant:/)
  expect(() => offeredMethods({ findUser() {}, revoke: () => {} }, targetOperations)).toThrow(/through revoke:/)
})

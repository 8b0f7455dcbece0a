import { expect, test } from 'vitest'
import { directoryInserts, targets } from '#catalog/catalog.ts'
import { insertCoverage, sameCode, targetCoverage, targetsWithoutUsers } from '#testing/hostile/hostile-coverage.ts'

const rows = (table: Readonly<Record<string, { readonly className: string }>>): string[] =>
  Object.values(table).map(({ className }) => className)

test('every target and every insert has a row in the table of hostile values', () => {
  const known = new Set<string>([...rows(targetCoverage), ...targetsWithoutUsers, ...Object.keys(sameCode)])
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

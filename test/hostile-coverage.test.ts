import { expect, test } from 'vitest'
import { directoryInserts } from '#catalog/directory-inserts.ts'
import { targets } from '#catalog/targets.ts'
import {
  holdNobody,
  insertCoverage,
  offeredMethods,
  sameCode,
  targetCoverage,
  targetOperations,
} from '#testing/hostile-coverage.ts'

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

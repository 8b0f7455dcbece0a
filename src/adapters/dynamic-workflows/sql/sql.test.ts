import { expect, test } from 'vitest'
import type { QueryRow, QueryTarget } from '#sdk/target/query-target.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import sql from './sql.ts'

async function open(readRows?: QueryTarget['readRows']) {
  const issues = noIssues()
  const context = fakeParseContext()
  const given = fakeParams({ target: 'crm', sql: 'select name from groups where owner = :uid' })
  const prepared = sql.prepare(given, issues, context)
  expect(issueTexts(issues.list)).toEqual([])
  expect(context.references).toMatchObject([{ kind: 'target', name: 'crm' }])
  const target = Object.assign(new MemoryTarget(), readRows === undefined ? {} : { readRows })
  return prepared.create(fakeModuleHost({ targets: { crm: target } }))
}

test('each row is a set; the statement gets the caller as a value', async () => {
  const asked: unknown[] = []
  const source = await open(async (...args) => {
    asked.push(args)
    return [{ name: 'admins' }]
  })
  const hostile = { ...subject('o=x'), uid: "x' or '1'='1" }
  expect(await source.parameterSets(hostile)).toEqual([{ name: 'admins' }])
  expect(asked).toEqual([['select name from groups where owner = :uid', { uid: "x' or '1'='1" }, 1001]])
})

test('more rows than can be shown are a failure', async () => {
  const rows: QueryRow[] = Array.from({ length: 1001 }, (_, i) => ({ name: `g${i}` }))
  const source = await open(async () => rows)
  await expect(source.parameterSets(subject('o=x'))).rejects.toMatchObject({ code: 'TARGET_FAILED' })
})

test('a target without a database is rejected at start', async () => {
  await expect(open()).rejects.toThrow('"crm" is not a database')
})

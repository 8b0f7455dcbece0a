import { expect, test } from 'vitest'
import { namePlaces, type QueryRow, type QueryTarget } from '#sdk/target/query-target.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import database, { escapeLike } from './database.ts'

const anonymous = subject('uid=anonymous,o=Tremolo', {}, 0)

const settings = {
  targetName: 'crm',
  noParamSQL: 'select label, code from places',
  paramSQL: "select label, code from places where label like ? escape '\\'",
  exactSQL: 'select label, code from places where code = ?',
  nameField: 'Label',
  valueField: 'Code',
  maxEntrie: '2',
  errorMessage: 'no such place',
}

async function open(rows: readonly QueryRow[]) {
  const asked: [string, Readonly<Record<string, string>>, number][] = []
  const target: QueryTarget = Object.assign(new MemoryTarget(), {
    stopsReads: true,
    readRows: async (statement: string, values: Readonly<Record<string, string>>, limit: number) => {
      asked.push([statement, values, limit])
      return rows
    },
  })
  const issues = noIssues()
  const prepared = database.prepare(fakeParams(settings), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  return { asked, source: await prepared.create(fakeModuleHost({ targets: { crm: target } })) }
}

test('the whole list, a search and a value use their own statements, with bound values', async () => {
  const { asked, source } = await open([
    { label: 'Here', code: '1' },
    { label: '', code: '2' },
    { label: 'Nowhere', code: '' },
  ])
  expect(await source.list({ limit: 100, subject: anonymous })).toEqual([
    { name: 'Here', value: '1' },
    { name: '2', value: '2' },
  ])
  await source.list({ search: '50%_\\', limit: 100, subject: anonymous })
  expect(await source.check('1', anonymous)).toBeUndefined()
  expect(await source.check("1' or '1'='1", anonymous)).toBe('no such place')
  expect(asked).toEqual([
    ['select label, code from places', {}, 2],
    ["select label, code from places where label like :search escape '\\'", { search: '%50\\%\\_\\\\%' }, 2],
    ['select label, code from places where code = :search', { search: '1' }, 2],
    ['select label, code from places where code = :search', { search: "1' or '1'='1" }, 2],
  ])
})

test('a statement that returns another column is reported', async () => {
  const { source } = await open([{ other: 'x' }])
  await expect(source.list({ limit: 1, subject: anonymous })).rejects.toMatchObject({ code: 'TARGET_FAILED' })
})

test('a target that is not a database is reported at the start', async () => {
  const prepared = database.prepare(fakeParams(settings), noIssues(), fakeParseContext())
  const host = fakeModuleHost({ targets: { crm: new MemoryTarget() } })
  await expect(prepared.create(host)).rejects.toThrow('not a database')
})

test('question marks in quotes and comments are not placeholders', () => {
  expect(namePlaces(`select '?', "?", ? -- ?\n/* ? */ from x where a = ?`, 'v')).toBe(
    `select '?', "?", :v -- ?\n/* ? */ from x where a = :v`,
  )
  expect(escapeLike('a%b_c\\d')).toBe('a\\%b\\_c\\\\d')
})

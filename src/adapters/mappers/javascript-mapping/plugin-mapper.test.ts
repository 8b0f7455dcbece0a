import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import type { MappingSource } from '#identity/mapping/mapped-value.ts'
import type { Mapper } from '#sdk/target/mapper.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import pluginMapper from './plugin-mapper.ts'

const folder = mkdtempSync(join(tmpdir(), 'plugin-mapper-'))
const opened: Mapper[] = []
const source: MappingSource = { userID: 'ada', groups: ['a'], names: () => ['mail'], values: () => ['a@x.test'] }

afterEach(async () => {
  await Promise.all(opened.splice(0).map((mapper) => mapper.close?.()))
})

function prepare(parameters: readonly string[]) {
  const issues = noIssues()
  const context = { ...fakeParseContext(folder), readFile: (file: string) => readFileSync(file, 'utf8') }
  const instance = pluginMapper.prepare(parameters, ['source'], issues, context)
  return { instance, problems: issueTexts(issues.list) }
}

async function open(text: string, ...texts: string[]): Promise<Mapper> {
  writeFileSync(join(folder, 'mapper.ts'), text)
  const { instance, problems } = prepare(['mapper.ts', ...texts])
  expect(problems).toEqual([])
  const mapper = await instance?.create(fakeModuleHost())
  if (mapper === undefined) throw new Error('not prepared')
  opened.push(mapper)
  return mapper
}

test('a TypeScript file maps, and gets the texts of the expression', async () => {
  const mapper = await open(
    `let given: string[] = []
     export function init(texts: string[]): void { given = texts }
     export const doMapping = async (user: { userID: string; attributes: Record<string, string[]> }, name: string) =>
       [user.userID, ...(user.attributes.mail ?? []), name, ...given]`,
    'x',
    'y z',
  )
  expect(await mapper.map(source, 'target')).toEqual(['ada', 'a@x.test', 'target', 'x', 'y z'])
})

test('a failure fails the mapping rather than losing the value', async () => {
  const throwing = await open('export function doMapping() { throw new Error("no") }')
  await expect(throwing.map(source, 'x')).rejects.toMatchObject({ code: 'TARGET_FAILED' })
  const wrong = await open('export const doMapping = () => 42')
  await expect(wrong.map(source, 'x')).rejects.toThrow(/must be a list of texts/)
})

test('unusable code is rejected on creation', async () => {
  await expect(open('export const other = 1')).rejects.toThrow(/mapper "mapper.ts" has no function doMapping/)
  await expect(open('export function init() { throw new Error("not so") }')).rejects.toThrow(/not so/)
})

test.each([
  [[], /takes "module\[,texts\]"/],
  [[' '], /takes "module\[,texts\]"/],
  [['mapper.txt'], /must end in/],
  [['../mapper.ts'], /leads out of the configuration folder/],
  [['absent.ts'], /ENOENT/],
  [['broken.ts'], /line 2/],
])('the expression is checked: %j', (parameters, message) => {
  writeFileSync(join(folder, 'broken.ts'), 'export const a = 1\nexport function (')
  const { problems } = prepare(parameters)
  expect(problems).toEqual([expect.stringMatching(message)])
  expect(problems[0]).toMatch(/^error source: /)
})

import { expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { scimCommand } from '#server/commands/scim.ts'
import type { JournalRow } from '#storage/journal-store.ts'
import { openStorage } from '#storage/open.ts'
import { temporaryFolder } from '#testing/databases.ts'

const row = (path: string, more: Partial<JournalRow> = {}): JournalRow => ({
  time: new Date(),
  requestId: 'r',
  caller: 'idp',
  method: 'GET',
  path,
  status: 200,
  millis: 1,
  workflows: [],
  ...more,
})

async function dataFolder(): Promise<string> {
  const folder = temporaryFolder()
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger })
  const failed = row('/b', { status: 404, error: 'no', time: new Date(Date.now() - 7200_000) })
  await storage.journal.append([
    { journal: 'people', keep: 1000, rows: [row('/a'), failed, row('/c')] },
    { journal: 'crm', keep: 1000, rows: [row('/d', { status: 500, error: 'no' })] },
    { journal: 'many', keep: 1000, rows: Array.from({ length: 700 }, (_, i) => row(`/many/${i}`)) },
  ])
  await storage.close()
  return folder
}

async function run(...args: string[]) {
  const output: string[] = []
  const errors: string[] = []
  const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
  const code = await scimCommand(args, io)
  return { code, output, errors, paths: () => output.map((line) => String(JSON.parse(line).path)) }
}

test('the latest calls are told, oldest first, as far as they are asked for', async () => {
  const data = await dataFolder()
  const told = async (...args: string[]) => (await run('log', '--data', data, '--json', ...args)).paths()
  expect(await told('--gateway', 'people')).toEqual(['/b', '/a', '/c'])
  expect(await told('--gateway', 'people', '--gateway', 'crm', '--failed')).toEqual(['/b', '/d'])
  expect(await told('--status', '404')).toEqual(['/b'])
  expect(await told('--gateway', 'people', '--since', '1h')).toEqual(['/a', '/c'])
  expect(await told('--gateway', 'people', '--limit', '1')).toEqual(['/c'])
  expect(await told()).toHaveLength(50)
  const many = await told('--gateway', 'many', '--limit', '650')
  expect([many.length, many[0], many.at(-1)]).toEqual([650, '/many/50', '/many/699'])
})

test('for people, a line starts with time and status', async () => {
  const { code, output } = await run('log', '--data', await dataFolder(), '--gateway', 'crm')
  expect(code).toBe(0)
  expect(output[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z 500 GET {4}\/d \(1 ms\)$/)
})

test('without a database nothing is made, and it is said', async () => {
  const folder = temporaryFolder()
  const { code, errors } = await run('log', '--data', folder)
  expect([code, errors]).toEqual([1, [expect.stringContaining('there is no database')]])
})

test.each([
  [['tail'], /unknown action "tail"/],
  [['log', '--status', '20'], /--status/],
  [['log', '--since', 'yesterday'], /--since/],
  [['log', '--limit', '0'], /--limit/],
  [['log', '--limit', '100001'], /--limit/],
  [[], /1 more argument needed/],
])('%j is wrong usage', async (args, problem) => {
  const { code, errors } = await run(...args)
  expect(code).toBe(2)
  expect(errors[0]).toMatch(problem)
})

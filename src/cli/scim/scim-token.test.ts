import { expect, test } from 'vitest'
import { scimCommand } from '#cli/commands/scim.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'

async function withStorage<T>(folder: string, work: (storage: Storage) => Promise<T>): Promise<T> {
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger })
  try {
    await storage.ready()
    return await work(storage)
  } finally {
    await storage.close()
  }
}

async function run(folder: string, ...args: string[]) {
  const output: string[] = []
  const errors: string[] = []
  const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
  const code = await scimCommand(['token', ...args, '--data', folder], io)
  return { code, output: output.join('\n'), errors: errors.join('\n') }
}

test('tokens are created, listed, rotated and revoked, and only printed once', async () => {
  const folder = temporaryFolder()
  await withStorage(folder, async () => {})
  const created = await run(folder, 'create', '--client', 'okta', '--expires', '10d', '--by', 'Grace')
  expect([created.code, created.output]).toEqual([0, expect.stringMatching(/^ghs_[\w-]{43}$/)])
  expect(created.errors).toMatch(/^The token "default" of "okta" expires \d{4}-.*Z\. It is not shown again\.$/)
  expect(await run(folder, 'create', '--client', 'okta')).toMatchObject({
    code: 1,
    errors: expect.stringContaining('"okta" has a token "default". Rotate or revoke it'),
  })
  const found = await withStorage(folder, ({ clientTokens }) => clientTokens.find(created.output))
  expect(found?.client).toBe('okta')
  const listed = await run(folder, 'list')
  expect(listed.output).toMatch(/^okta default expiring, never used, expires .*, created /)
  const rotated = await run(
    folder,
    'rotate',
    '--client',
    'okta',
    '--overlap',
    '1h',
    '--expires',
    'never',
    '--output',
    'json',
  )
  const { token } = JSON.parse(rotated.output)
  const both = await withStorage(folder, ({ clientTokens }) =>
    Promise.all([created.output, token].map((text) => clientTokens.find(text))),
  )
  expect(both.map((one) => one?.expires !== undefined)).toEqual([true, false])
  const all = JSON.parse((await run(folder, 'list', '--client', 'okta', '--output', 'json')).output)
  expect(all.map(({ state }: { state: string }) => state).sort()).toEqual(['expiring', 'valid'])
  expect(JSON.stringify(all)).not.toContain(token)
  expect((await run(folder, 'revoke', '--client', 'okta')).output).toBe('Revoked 2 tokens "default" of "okta"')
  expect(await run(folder, 'revoke', '--client', 'okta')).toMatchObject({
    code: 1,
    errors: expect.stringContaining('"okta" has no token "default" that can be used'),
  })
  const { rows } = await withStorage(folder, ({ audit }) => audit.list({ limit: 10 }))
  expect(rows.map(({ action, subject }) => [action, subject])).toEqual(
    ['delete', 'replace', 'add'].map((action) => [action, 'okta']),
  )
  expect(rows.at(-1)?.requestor).toBe('Grace')
  for (const text of [created.output, token]) expect(JSON.stringify(rows)).not.toContain(text)
})

test.each([
  [['create'], '--client is required'],
  [['create', '--client', 'okta', '--expires', 'soon'], '--expires must be a time span'],
  [['create', '--client', 'okta', '--expires', '0d'], '--expires must be a time span'],
  [['rotate', '--client', 'okta', '--overlap', 'x'], '--overlap must be a time span'],
])('%j is refused before the database is opened', async (args, text) => {
  expect(await run('/nonexistent', ...args)).toMatchObject({ code: 2, errors: expect.stringContaining(text) })
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { UserDirectoryOptions } from '#identity/user-directory.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { openStorage } from '#server/composition/stores.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import database from './database.ts'

function setUp(params: ParamValues) {
  const folder = mkdtempSync(join(tmpdir(), 'database-target-'))
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger })
  onTestFinished(async () => {
    await storage.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const issues = noIssues()
  const prepared = database.prepare(fakeParams(params), issues, fakeParseContext(folder))
  const opened: UserDirectoryOptions[] = []
  const create = () =>
    prepared.create({
      ...fakeModuleHost(),
      name: 'people',
      openUserDirectory: async (options) => {
        opened.push(options)
        return storage.userDirectory(options)
      },
    })
  return { folder, issues: issueTexts(issues.list), create, opened }
}

test('a URL of another kind is an error that does not repeat it', () => {
  for (const url of ['mysql://root:hunter2@db/x', 'postgres:hunter2', 'sqlite:']) {
    const { issues } = setUp({ url })
    expect(issues).toEqual(['error params.url: "url": must start with postgres:// or sqlite:'])
  }
  expect(setUp({ url: 'postgres://root:hunter2@one,two:x/db' }).issues).toEqual([
    expect.stringMatching(/^error params\.url: "url": host 2 of the address (?!.*hunter2)/),
  ])
})

test('a missing seed file, or one elsewhere, is an error before anything starts', () => {
  expect(setUp({ seed: 'seed/people.json' }).issues).toEqual([
    'error params.seed: "seed": no such file in the configuration folder: seed/people.json',
  ])
  expect(setUp({ seed: '../people.json' }).issues).toEqual([
    'error params.seed: must be a file in the configuration folder',
  ])
})

test('the target or the parameter names the directory, and files are relative to the configuration folder', async () => {
  const { folder, issues, create, opened } = setUp({ url: 'sqlite:other.db' })
  expect(issues).toEqual([])
  await (await create()).close?.()
  const url = `sqlite:${join(folder, 'other.db')}`
  expect(opened).toEqual([
    { name: 'people', url },
    { name: 'people/passwords', url },
  ])
  const named = setUp({ directory: 'crew', url: 'sqlite:///tmp/x.db' })
  await (await named.create()).close?.()
  expect(named.opened.map(({ name }) => name)).toEqual(['crew', 'crew/passwords'])
  expect(named.opened[0]?.url).toBe('sqlite:/tmp/x.db')
})

test('a target whose database is down is created, and each call reports it with a Retry-After', async () => {
  const { folder, create } = setUp({ url: 'postgres://u:p@127.0.0.1:1/none', seed: 'seed.json' })
  writeFileSync(join(folder, 'seed.json'), '{"users":[{"userID":"ada","attributes":{}}]}')
  const target = await create()
  const { request, changes } = targetFixture(target, { attributes: ['a', 'b', 'c'], groups: ['a', 'b', 'c'] })
  for (const call of [() => target.findUser('ada', [], request), () => target.createUser(userOf('bob'), [], request)]) {
    await expect(call()).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE', retryAfter: 5 })
  }
  expect(changes).toEqual([])
  await target.close?.()
})

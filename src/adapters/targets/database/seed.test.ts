import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { sync, syncUser } from '#testing/databases/directory-writes.ts'
import { loadSeed } from './database.ts'

async function setUp(seed: string) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-seed-'))
  const file = join(folder, 'seed.json')
  writeFileSync(file, seed)
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger })
  await storage.ready()
  const users = storage.userDirectory({ name: 'people' })
  onTestFinished(async () => {
    await users.close()
    await storage.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return { users, load: () => loadSeed(file, users, silentLogger) }
}

describe('loadSeed', () => {
  test('fills an empty directory, once', async () => {
    const { users, load } = await setUp(
      JSON.stringify({
        groups: [{ name: 'crew' }],
        users: [{ userID: 'ada', attributes: { mail: ['a@x.org'] }, groups: ['crew'] }],
      }),
    )
    await load()
    expect((await users.lookupUserByLogin('ada'))?.groups).toEqual(['crew'])
    await syncUser(users, sync('ada', { mail: ['b@x.org'] }))
    await load()
    expect((await users.lookupUserByLogin('ada'))?.attributes.values('mail')).toEqual(['b@x.org'])
  })

  test.each(['{', '[]', '{"users": [{"userID": 1}]}', '{"people": []}'])(
    'rejects %s, naming the file',
    async (seed) => {
      const { load } = await setUp(seed)
      await expect(load()).rejects.toThrow(/^seed .*seed\.json: /)
    },
  )
})

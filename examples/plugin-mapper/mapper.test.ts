import assert from 'node:assert/strict'
import { after, test } from 'node:test'

// What runs the plug-in; `gatehouse plugin test` sets it.
const trial = process.env['GATEHOUSE_TRIAL'] ?? new URL('../../src/cli/trial/plugin-trial.ts', import.meta.url).href
const { tryMapper } = await import(trial)

const module = new URL('./mapper.ts', import.meta.url)
const mapper = await tryMapper({ module })
after(() => mapper.close())

test('plugin-mapper: the first letters of the names', async () => {
  const user = { userID: 'ada', attributes: { givenName: ['Ada'], sn: ['lovelace'] } }
  assert.deepEqual(await mapper.map(user, 'initials'), ['AL'])
})

test('plugin-mapper: nothing of nothing', async () => {
  assert.deepEqual(await mapper.map({ userID: 'ada' }, 'initials'), [])
})

test('plugin-mapper: of other attributes', async () => {
  const other = await tryMapper({ module, texts: ['nickName'] })
  try {
    assert.deepEqual(await other.map({ userID: 'ada', attributes: { nickName: ['éclair'] } }, 'initials'), ['É'])
  } finally {
    await other.close()
  }
})

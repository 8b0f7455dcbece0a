import assert from 'node:assert/strict'
import { after, test } from 'node:test'

// Where Gatehouse is; `gatehouse plugin test` says so itself.
const gatehouse = process.env['GATEHOUSE'] ?? new URL('../../', import.meta.url).href
const { tryMapper } = await import(new URL('src/server/plugin-trial.ts', gatehouse).href)

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

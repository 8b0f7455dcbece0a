import assert from 'node:assert/strict'
import { after, test } from 'node:test'

// What runs the plug-in; `gatehouse plugin test` sets it.
const trial = process.env['GATEHOUSE_TRIAL'] ?? new URL('../../src/cli/trial/plugin-trial.ts', import.meta.url).href
const { tryFilter } = await import(trial)

const module = new URL('./filter.ts', import.meta.url)
const filter = await tryFilter({ module, parameters: { greeting: ['Welcome'] } })
after(() => filter.close())

test('plugin-filter: greets the caller', async () => {
  const { status, body } = await filter.handle({ url: '/' }, { userID: 'ada' })
  assert.equal(status, 200)
  assert.deepEqual(JSON.parse(body), { message: 'Welcome, ada!' })
})

test('plugin-filter: greets whom it is told to', async () => {
  const { body } = await filter.handle({ url: '/?name=Grace' })
  assert.deepEqual(JSON.parse(body), { message: 'Welcome, Grace!' })
})

test('plugin-filter: serves GET only', async () => {
  const { status, headers } = await filter.handle({ method: 'POST', body: '{}' })
  assert.equal(status, 405)
  assert.equal(headers.allow, 'GET')
})

test('plugin-filter: passes on what it does not know', async () => {
  const { passedOn } = await filter.handle({ url: '/other' })
  assert.equal(passedOn, true)
})

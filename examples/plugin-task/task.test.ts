import assert from 'node:assert/strict'
import { after, test } from 'node:test'

// What runs the plug-in; `gatehouse plugin test` sets it.
const trial = process.env['GATEHOUSE_TRIAL'] ?? new URL('../../src/cli/trial/plugin-trial.ts', import.meta.url).href
const { tryTask } = await import(trial)

const module = new URL('./task.ts', import.meta.url)
const task = await tryTask({ module, parameters: { domain: ['example.com'] } })
after(() => task.close())

test('plugin-task: a person without a mail address is given one', async () => {
  const { goesOn, user } = await task.run({ userID: 'Ada' })
  assert.equal(goesOn, true)
  assert.deepEqual(user.attributes, { mail: ['ada@example.com'] })
})

test('plugin-task: an address that is there stays', async () => {
  const { user } = await task.run({ userID: 'Ada', attributes: { mail: ['ada@other.test'] } })
  assert.deepEqual(user.attributes, { mail: ['ada@other.test'] })
})

test('plugin-task: the workflow of somebody who is blocked stops', async () => {
  const { goesOn } = await task.run({ userID: 'Ada' }, { status: 'blocked' })
  assert.equal(goesOn, false)
})

test('plugin-task: without its parameter it is refused', async () => {
  await assert.rejects(tryTask({ module }), /"domain" is required/)
})

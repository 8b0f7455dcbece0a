import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, test } from 'node:test'

// What runs the plug-in; `gatehouse plugin test` sets it.
const trial = process.env['GATEHOUSE_TRIAL'] ?? new URL('../../src/cli/trial/plugin-trial.ts', import.meta.url).href
const { tryMechanism } = await import(trial)

const module = new URL('./mechanism.ts', import.meta.url)
const digest = createHash('sha256').update('a key for tests').digest('hex')
const mechanism = await tryMechanism({ module, parameters: { client: [`reports:${digest}`] } })
after(() => mechanism.close())

test('plugin-mechanism: the owner of a key is the caller', async () => {
  const { subject } = await mechanism.authenticate({ headers: { 'x-api-key': 'a key for tests' } })
  assert.equal(subject.uid, 'reports')
  assert.deepEqual(subject.attributes.role, ['api-client'])
})

test('plugin-mechanism: another key is refused', async () => {
  const { refused, status } = await mechanism.authenticate({ headers: { 'x-api-key': 'another key' } })
  assert.equal(refused, 'the key is unknown')
  assert.equal(status, 401)
})

test('plugin-mechanism: nobody is let in without a key', async () => {
  const { refused, headers } = await mechanism.authenticate({})
  assert.equal(refused, 'no key was sent')
  assert.equal(headers['www-authenticate'], 'ApiKey')
})

test('plugin-mechanism: a client that cannot be read refuses the configuration', async () => {
  await assert.rejects(tryMechanism({ module, parameters: { client: ['reports'] } }), /SHA-256/)
})

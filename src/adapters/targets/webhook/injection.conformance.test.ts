import { afterAll, beforeAll, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import { type GroupTarget, hasGroups, hasLookups, type LookupTarget, type TargetRequest } from '#sdk/target/target.ts'
import { callMillis, trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { hostileTrial } from '#testing/hostile/hostile-trial.ts'
import { asSteps } from '#testing/targets/as-steps.ts'
import { type CrmApplication, crmParams, openWebhook, startCrmApplication } from '#testing/targets/crm-application.ts'

const attributes = ['mail', 'displayName', 'phone']
const request = { idempotencyKey: 'step', audit() {} } as unknown as TargetRequest

let application: CrmApplication
let target: LookupTarget & GroupTarget
beforeAll(async () => {
  application = await startCrmApplication(':memory:', ['--password-cost', '2'])
  const opened = asSteps(await openWebhook(crmParams({ url: application.url, timeoutMillis: String(callMillis) })))
  if (!hasLookups(opened) || !hasGroups(opened)) throw new Error('the example has no look-ups or groups')
  target = opened
})
afterAll(async () => {
  await target?.close?.()
  await application?.stop()
})

test('each hostile value passes through every lookup and write unchanged, and touches no other user', {
  timeout: trialMillis,
}, async () => {
  await hostileTrial('webhook on the example', target, { attributes: ['mail', 'displayName'], width: 16 })
})

test('64 KiB come back; more, and a value that no URL can contain, is rejected by name', async () => {
  const long = '\u0000é😀"\\'.repeat(7000).slice(0, 16_000)
  const user: User = { userID: 'long', attributes: Attributes.from({ displayName: [long] }), groups: [] }
  await target.createUser(user, attributes, request)
  expect((await target.findUser('long', attributes, request))?.attributes.first('displayName')).toBe(long)
  const tooLong = userOf('longer', { displayName: ['x'.repeat(65 * 1024)] })
  await expect(target.createUser(tooLong, attributes, request)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  expect(await target.findUser('longer', attributes, request)).toBeUndefined()
  const login = target.createUser(userOf('x'.repeat(10_000)), attributes, request)
  await expect(login).rejects.toMatchObject({ code: 'BAD_REQUEST', publicText: expect.stringContaining('userID') })
  await expect(target.lookupUserById('..')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  const two = userOf('two', { displayName: ['a', 'b'] })
  await expect(target.createUser(two, attributes, request)).rejects.toMatchObject({
    code: 'BAD_REQUEST',
    publicText: expect.stringContaining('displayName'),
  })
  await target.deleteUser(user, request)
})

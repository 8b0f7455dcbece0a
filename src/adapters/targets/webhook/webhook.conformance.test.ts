import { afterAll, beforeAll, test } from 'vitest'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import { hasGroups, hasLookups, type TargetRequest } from '#sdk/target/target.ts'
import { asSteps } from '#testing/targets/as-steps.ts'
import { type CrmApplication, crmParams, openWebhook, startCrmApplication } from '#testing/targets/crm-application.ts'

let application: CrmApplication
beforeAll(async () => {
  application = await startCrmApplication()
})
afterAll(() => application?.stop())

const request = {
  workflow: { id: 'w', name: 'w' },
  idempotencyKey: 'step',
  requestor: 'r',
  params: {},
  audit() {},
} as unknown as TargetRequest

/** An application that is empty except for the three teams. */
async function open() {
  const target = asSteps(await openWebhook(crmParams({ url: application.url })))
  if (!hasLookups(target) || !hasGroups(target)) throw new Error('the example has no look-ups or groups')
  const { items: users } = await target.searchUsers({ offset: 0, limit: 1000 })
  for (const user of users) await target.deleteUser(user, request)
  const { items: groups } = await target.searchGroups({ offset: 0, limit: 1000 })
  for (const { name } of groups) await target.deleteGroup(name, request)
  for (const name of ['group1', 'group2', 'group3']) await target.createGroup(name, {}, request)
  return { target, close: async () => target.close?.() }
}

targetConformance('webhook', open, {
  test: (name, run) => test(name, run),
  attributes: ['mail', 'displayName', 'phone'],
})

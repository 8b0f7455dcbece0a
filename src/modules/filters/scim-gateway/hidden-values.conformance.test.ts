import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import type { JsonObject } from '#kernel/json.ts'
import { silentLogger } from '#kernel/logger.ts'
import { DatabaseTarget } from '#modules/targets/database/database-target.ts'
import plugin from '#modules/targets/plugin/plugin.ts'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import { Passwords } from '#sdk/passwords.ts'
import type { Target } from '#sdk/target.ts'
import { openStorage } from '#storage/open.ts'
import { asSteps } from '#testing/as-steps.ts'
import { type CrmApplication, crmParams, openWebhook, startCrmApplication } from '#testing/crm-application.ts'
import { onEachDatabase } from '#testing/databases.ts'
import { fakeModuleHost } from '#testing/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues, type ParamValues } from '#testing/fake-parse.ts'
import { newBranch, openLdap, quietRequest } from '#testing/ldap-target.ts'
import { type ScimBehind, startScimBehind } from '#testing/scim-behind.ts'
import { openGateway } from '#testing/scim-gateway-fixture.ts'
import { freshBehind, openTargetOn } from '#testing/scim-target-fixture.ts'
import { type Slapd, startSlapd } from '#testing/slapd.ts'
import { applicationParams, makeApplication, openTarget } from '#testing/sql-schema.ts'
import { startWorkflows } from '#testing/workflow-fixture.ts'
import scimGateway from './scim-gateway.ts'

/** A gateway whose lines show one of the values that the attribute holds. */
const params = (attribute: string, login: string): ParamValues => ({
  lookupTarget: 'people',
  uidAttributeName: login,
  workflowName: 'sync-user',
  scim2tremolo: [login, attribute],
  [`scim2tremolo.${login}.source`]: 'userName',
  [`scim2tremolo.${attribute}.source`]: 'list|emails,value',
  [`scim2tremolo.${attribute}.sourceType`]: 'custom',
  tremolo2scim: ['userName', 'emails'],
  'tremolo2scim.userName.source': login,
  'tremolo2scim.emails.source': `[{"value":"\${${attribute}}"}]`,
  'tremolo2scim.emails.sourceType': 'composite',
})

let next = 1

/** Hidden values are still in the target after each kind of change through the gateway. */
async function keepsHiddenValues(target: Target, attribute = 'mail', login = 'uid'): Promise<void> {
  const people = asSteps(target)
  const userID = `ada${next++}`
  const mails = ['one@example.com', 'two@example.com', 'three@example.com']
  await people.createUser(userOf(userID, { [attribute]: mails }), [attribute], quietRequest)
  const { workflows } = await startWorkflows({
    workflows: { 'sync-user': [{ taskType: 'provision', target: 'people', sync: true, attributes: [attribute] }] },
    targets: { people },
  })
  onTestFinished(() => void workflows.close?.())
  const { targets } = fakeModuleHost({ targets: { people } })
  const { send } = await openGateway(scimGateway, { params: params(attribute, login), host: { targets, workflows } })
  const list = await send('GET', `/Users?filter=${encodeURIComponent(`userName eq "${userID}"`)}`)
  const [resource] = list.body['Resources'] as { id: string; emails: { value: string }[] }[]
  expect(resource?.emails).toHaveLength(1)
  const visible = resource?.emails[0]?.value ?? ''
  const hidden = mails.filter((mail) => mail !== visible)
  const change = async (operation: JsonObject): Promise<void> => {
    const { status, body } = await send('PATCH', `/Users/${encodeURIComponent(resource?.id ?? '')}`, {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
      Operations: [operation],
    })
    expect(status, JSON.stringify(body)).toBe(200)
  }
  const stored = async () => {
    const user = await people.findUser(userID, [attribute], quietRequest)
    return [...(user?.attributes.values(attribute) ?? [])].sort()
  }
  await change({ op: 'add', path: 'emails', value: [{ value: 'new@example.com' }] })
  expect(await stored()).toEqual([...mails, 'new@example.com'].sort())
  // The second value is hidden now like the others.
  const now = (
    (await send('GET', `/Users/${encodeURIComponent(resource?.id ?? '')}`)).body['emails'] as JsonObject[]
  )[0]
  const left = [...hidden, visible, 'new@example.com'].filter((mail) => mail !== now?.['value'])
  await change({ op: 'replace', path: 'emails', value: [{ value: 'other@example.com' }] })
  expect(await stored()).toEqual([...left, 'other@example.com'].sort())
  const shown = (
    (await send('GET', `/Users/${encodeURIComponent(resource?.id ?? '')}`)).body['emails'] as JsonObject[]
  )[0]
  await change({ op: 'remove', path: 'emails' })
  expect(await stored()).toEqual([...left, 'other@example.com'].filter((mail) => mail !== shown?.['value']).sort())
}

onEachDatabase('values that a gateway does not show', (freshUrl) => {
  test('stay in the database target', async () => {
    const storage = openStorage({ url: await freshUrl(), clock: systemClock, log: silentLogger })
    await storage.ready()
    const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }))
    const target = new DatabaseTarget(storage.userDirectory({ name: 'people' }), passwords)
    onTestFinished(async () => {
      await target.close()
      await storage.close()
    })
    await keepsHiddenValues(target)
  })

  test('stay in the tables of an application', async () => {
    const url = await freshUrl()
    await makeApplication(url)
    const target = await openTarget(url, applicationParams)
    onTestFinished(() => void target.close?.())
    await keepsHiddenValues(target)
  })
})

describe.skipIf(inject('slapd') === '')('values that a gateway does not show', () => {
  let slapd: Slapd
  beforeAll(async () => {
    slapd = await startSlapd()
  })
  afterAll(() => slapd?.stop())

  test('stay in OpenLDAP', async () => {
    const target = await openLdap(slapd, await newBranch(slapd))
    onTestFinished(() => void target.close?.())
    await keepsHiddenValues(target)
  })
})

describe('values that a gateway does not show', () => {
  let application: CrmApplication
  let behind: ScimBehind
  beforeAll(async () => {
    application = await startCrmApplication()
    behind = await startScimBehind()
  })
  afterAll(async () => {
    await application?.stop()
    await behind?.stop()
  })

  test('stay in an application behind webhooks', async () => {
    const target = await openWebhook(crmParams({ url: application.url }))
    onTestFinished(() => void target.close?.())
    await keepsHiddenValues(target)
  })

  test('stay behind a second gateway', async () => {
    await freshBehind(behind)
    const target = await openTargetOn(behind)
    onTestFinished(() => target.close())
    await keepsHiddenValues(target, 'emails.value', 'userName')
  })

  test('stay in a plug-in', async () => {
    const javaScript = readFileSync('examples/plugin-target/target.ts', 'utf8')
    const prepared = plugin.prepare(fakeParams({ javaScript }), noIssues(), fakeParseContext('/tmp'))
    const target = await prepared.create({ ...fakeModuleHost(), name: 'crm' })
    onTestFinished(() => void target.close?.())
    await keepsHiddenValues(target)
  })
})

import { expect, onTestFinished, test } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import { syncOptions, userOf } from '#sdk/conformance/target-fixture.ts'
import type { PreviewEntry } from '#sdk/contract/preview.ts'
import { hasGroups } from '#sdk/target/target.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { quietRequest } from '#testing/ldap/ldap-target.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { base, openGateway, type Send } from '#testing/scim/scim-gateway-fixture.ts'
import { type EachTarget, onEachTarget } from '#testing/targets/each-target.ts'
import { startWorkflows } from '#testing/workflows/workflow-fixture.ts'
import { previewRun } from '#workflows/runs/previews.ts'
import scimGateway from './scim-gateway.ts'

/** A gateway whose mapping lines show one value of one attribute, and `active` by the other. */
async function open({ target: people, several, single, login }: EachTarget, more: ParamValues = {}) {
  const attributes = [single, several]
  const { workflows } = await startWorkflows({
    workflows: {
      'sync-user': [{ taskType: 'provision', target: 'people', sync: true, attributes }],
      'delete-user': [
        { taskType: 'addAttribute', name: single, value: '', remove: true },
        { taskType: 'addAttribute', name: single, value: 'false' },
        { taskType: 'provision', target: 'people', sync: true, attributes: [single] },
      ],
    },
    targets: { people },
  })
  onTestFinished(async () => workflows.close?.())
  const params = {
    lookupTarget: 'people',
    uidAttributeName: login,
    workflowName: 'sync-user',
    deleteUserWorkflowName: 'delete-user',
    scim2tremolo: [login, several, single],
    [`scim2tremolo.${login}.source`]: 'userName',
    [`scim2tremolo.${several}.source`]: 'list|emails,value',
    [`scim2tremolo.${several}.sourceType`]: 'custom',
    [`scim2tremolo.${single}.source`]: 'active',
    tremolo2scim: ['userName', 'emails', 'active'],
    'tremolo2scim.userName.source': login,
    'tremolo2scim.emails.source': `[{"value":"\${${several}}"}]`,
    'tremolo2scim.emails.sourceType': 'composite',
    'tremolo2scim.active.source': single,
    ...more,
  }
  const { targets } = fakeModuleHost({ targets: { people } })
  const preview = (call: WorkflowCall) => previewRun(workflows.begin(call), workflows)
  return openGateway(scimGateway, { params, host: { targets, workflows }, preview })
}

let next = 1
const fresh = (): string => `ada${next++}`
const addressOf = ({ id }: JsonObject): string => `/Users/${encodeURIComponent(String(id))}`

onEachTarget('values that a gateway does not show', (openTarget) => {
  test('stay after add, replace and remove', async () => {
    const opened = await openTarget()
    const { target, several } = opened
    const userID = fresh()
    const mails = ['one@example.com', 'two@example.com', 'three@example.com']
    await target.createUser(userOf(userID, { [several]: mails }), [several], quietRequest)
    const { send } = await open(opened)
    const list = await send('GET', `/Users?filter=${encodeURIComponent(`userName eq "${userID}"`)}`)
    const address = addressOf((list.body['Resources'] as JsonObject[])[0] ?? {})
    const change = async (operation: JsonObject): Promise<void> => {
      const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
      const { status, body } = await send('PATCH', address, { schemas, Operations: [operation] })
      expect(status, JSON.stringify(body)).toBe(200)
    }
    const stored = async (): Promise<string[]> => {
      const user = await target.findUser(userID, [several], quietRequest)
      return [...(user?.attributes.values(several) ?? [])].sort()
    }
    const hidden = async (): Promise<string[]> => {
      const shown = (await send('GET', address)).body['emails'] as JsonObject[]
      expect(shown).toHaveLength(1)
      return (await stored()).filter((mail) => mail !== shown[0]?.['value'])
    }
    await change({ op: 'add', path: 'emails', value: [{ value: 'new@example.com' }] })
    expect(await stored()).toEqual([...mails, 'new@example.com'].sort())
    const beforeReplace = await hidden()
    await change({ op: 'replace', path: 'emails', value: [{ value: 'other@example.com' }] })
    expect(await stored()).toEqual([...beforeReplace, 'other@example.com'].sort())
    const beforeRemove = await hidden()
    await change({ op: 'remove', path: 'emails' })
    expect(await stored()).toEqual(beforeRemove)
  })
})

/** The target, and the names of its methods that write, as they are called. */
function watchWrites(target: EachTarget['target']) {
  const writes: string[] = []
  const get = (of: EachTarget['target'], name: string | symbol): unknown => {
    const member: unknown = Reflect.get(of, name, of)
    if (typeof member !== 'function') return member
    return (...args: unknown[]): unknown => {
      if (/^(?:create|sync|update|delete|change|set)/.test(String(name))) writes.push(String(name))
      return member.apply(of, args)
    }
  }
  return { writes, target: new Proxy(target, { get }) }
}

onEachTarget('dry runs', (openTarget) => {
  test('write nothing, and show what is then written', async () => {
    const opened = await openTarget()
    const { writes, target } = watchWrites(opened.target)
    const { send } = await open({ ...opened, target })
    const userID = fresh()
    const change = async (method: string, path: string, body?: JsonObject) => {
      const before = writes.length
      const shown = await send(method, path, body, { 'dry-run': 'true' })
      const title = `${method} ${JSON.stringify(shown.body)}`
      expect([shown.status, shown.body['complete'], writes.length], title).toEqual([200, true, before])
      const [run] = shown.body['runs'] as unknown as { readonly steps: readonly PreviewEntry[] }[]
      const done = await send(method, path, body)
      expect(done.status, JSON.stringify(done.body)).toBeLessThan(300)
      expect(writes.length).toBeGreaterThan(before)
      const [step] = run?.steps ?? []
      expect(step?.name.toLowerCase(), title).toBe(userID)
      for (const { name, after } of step?.attributes ?? []) {
        const user = await opened.target.findUser(userID, [name], quietRequest)
        expect([...(user?.attributes.values(name) ?? [])].sort(), `${title} ${name}`).toEqual([...after].sort())
      }
      return { action: step?.action, body: done.body }
    }
    const emails = [{ value: `${userID}@example.com` }]
    const created = await change('POST', '/Users', { userName: userID, active: true, emails })
    expect(created.action).toBe('create')
    const address = addressOf(created.body)
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
    const other = { op: 'replace', path: 'emails', value: [{ value: 'other@example.com' }] }
    expect((await change('PATCH', address, { schemas, Operations: [other] })).action).toBe('change')
    expect((await change('PUT', address, { userName: userID, active: true, emails })).action).toBe('change')
    expect((await change('DELETE', address)).action).toBe('change')
  })
})

onEachTarget('a delete workflow that deactivates', (openTarget) => {
  test('hides the user from reads, lists and filters, and POST brings it back', async () => {
    const opened = await openTarget()
    const { target, single } = opened
    const { send } = await open(opened)
    const create = (userName: string) =>
      send('POST', '/Users', { userName, active: true, emails: [{ value: `${userName}@example.com` }] })
    const [gone, staying, inactive] = [fresh(), fresh(), fresh()]
    const created = await create(gone)
    expect(created.status, JSON.stringify(created.body)).toBe(201)
    await create(staying)
    const off = await create(inactive)
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
    const deactivate = { schemas, Operations: [{ op: 'replace', path: 'active', value: false }] }
    expect((await send('PATCH', addressOf(off.body), deactivate)).status).toBe(200)
    expect((await send('DELETE', addressOf(created.body))).status).toBe(204)
    const left = await target.findUser(gone, [single], quietRequest)
    expect(left?.attributes.values(single)).toEqual(['false'])
    expect((await send('GET', addressOf(created.body))).status).toBe(404)
    const names = async (query: string): Promise<unknown[]> => {
      const { status, body } = await send('GET', `/Users${query}`)
      expect(status, JSON.stringify(body)).toBe(200)
      const users = body['Resources'] as JsonObject[]
      expect(body['totalResults']).toBe(users.length)
      return users.map(({ userName }) => userName)
    }
    expect((await names('')).filter((name) => [gone, staying, inactive].includes(String(name)))).toEqual(
      expect.arrayContaining([staying, inactive]),
    )
    expect(await names('')).not.toContain(gone)
    for (const filter of [`userName eq "${gone}"`, `emails.value eq "${gone}@example.com"`]) {
      expect(await names(`?filter=${encodeURIComponent(filter)}`), filter).toEqual([])
    }
    expect(await names(`?filter=${encodeURIComponent('active eq false')}`)).not.toContain(gone)
    expect(await names(`?filter=${encodeURIComponent('active eq false')}`)).toContain(inactive)
    const back = await create(gone)
    expect([back.status, back.body['id'], back.body['active']]).toEqual([201, created.body['id'], true])
    expect(await names('')).toContain(gone)
  })
})

/** Lists or filters, which must succeed. */
async function list(send: Send, path: string, filter?: string): Promise<JsonObject[]> {
  const { status, body } = await send(
    'GET',
    filter === undefined ? path : `${path}?filter=${encodeURIComponent(filter)}`,
  )
  expect(status, JSON.stringify(body)).toBe(200)
  return body['Resources'] as JsonObject[]
}

const groupLines = (login: string): ParamValues => ({
  tremolo2scim: ['userName', 'groups', 'emails', 'active'],
  'tremolo2scim.userName.source': login,
  'tremolo2scim.groups.source': `groups|false,${base},people`,
  'tremolo2scim.groups.sourceType': 'custom',
})

onEachTarget('the groups of a user', (openTarget) => {
  test.each([
    ['by a line of GenerateGroups', groupLines],
    ['by the built-in mapping', (): ParamValues => ({ mapping: 'scim' })],
    ['by a line, with groupIdName', (login: string, groupIdName: string) => ({ ...groupLines(login), groupIdName })],
  ])('%s, have the ids and addresses of the groups, which no user has', async (_, params) => {
    const opened = await openTarget()
    const { target, several, login, ofGroups } = opened
    const names = [`red-${fresh()}`, `blue-${fresh()}`]
    const storable = (await target.storable?.())?.groups ?? 'any'
    const attributes =
      storable === 'any' || storable.has(ofGroups.toLowerCase()) ? { [ofGroups]: [names[0] ?? ''] } : {}
    // Logins that are the names of groups.
    for (const userID of names) {
      await target.createUser(userOf(userID, { [several]: [`${userID}@example.com`] }), [several], quietRequest)
    }
    if (hasGroups(target)) {
      for (const name of names) await target.createGroup(name, name === names[0] ? {} : attributes, quietRequest)
    }
    const [userID = ''] = names
    await target.syncUser(userOf(userID, {}, names), syncOptions([]), quietRequest)
    const { send } = await open(opened, params(login, ofGroups))
    const groups = await list(send, '/Groups')
    const users = await list(send, '/Users')
    const ids = [...groups, ...users].map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const own = groups.filter(({ displayName }) => names.includes(String(displayName)))
    expect(own).toHaveLength(2)
    const user = users.find(({ userName }) => userName === userID) ?? {}
    const read = (await send('GET', addressOf(user))).body
    for (const shown of [user, read]) {
      const held = (shown['groups'] as JsonObject[]).map(({ value, $ref, display }) => ({ value, $ref, display }))
      const expected = own.map(({ id, meta, displayName }) => ({
        value: id,
        $ref: (meta as JsonObject)['location'],
        display: displayName,
      }))
      expect(held).toHaveLength(2)
      expect(held).toEqual(expect.arrayContaining(expected))
    }
    for (const { id, displayName, meta } of own) {
      const group = (await send('GET', `/Groups/${encodeURIComponent(String(id))}`)).body
      expect(group).toMatchObject({ id, displayName, members: [{ value: user['id'] }] })
      for (const filter of [
        `groups.value eq "${id}"`,
        `groups eq "${id}"`,
        `groups.$ref eq "${(meta as JsonObject)['location']}"`,
      ]) {
        expect([filter, (await list(send, '/Users', filter)).map((found) => found['id'])]).toEqual([
          filter,
          [user['id']],
        ])
      }
      expect((await list(send, '/Groups', `id eq "${id}"`)).map((found) => found['id'])).toEqual([id])
    }
    if (Object.hasOwn(attributes, ofGroups) && params(login, ofGroups)['groupIdName'] === ofGroups) {
      expect(own.map(({ id }) => id)).toContain(`group:${names[0]}`)
    }
  })
})

onEachTarget('a lookupAttributeName other than uidAttributeName', (openTarget) => {
  test('holds the ids: created users are found, and every shown id is accepted', async () => {
    const opened = await openTarget()
    const { send } = await open(opened, { lookupAttributeName: opened.several })
    const [ann, bob] = [fresh(), fresh()]
    const create = (userName: string, emails: JsonObject[]) =>
      send('POST', '/Users', { userName, active: true, emails })
    const made = await create(ann, [{ value: `${ann}@example.com` }])
    expect(made, JSON.stringify(made.body)).toMatchObject({
      status: 201,
      body: { id: `${ann}@example.com`, userName: ann },
    })
    const twin = await create(bob, [{ value: `${ann}@example.com` }])
    expect(twin).toMatchObject({ status: 409, body: { scimType: 'uniqueness' } })
    expect((await create(bob, [])).body).toMatchObject({ id: bob, userName: bob })
    const users = await list(send, '/Users')
    expect(users.map(({ id }) => id)).toEqual(expect.arrayContaining([`${ann}@example.com`, bob]))
    for (const user of users) {
      expect((await send('GET', addressOf(user))).body).toMatchObject({ id: user['id'], userName: user['userName'] })
      for (const filter of [`id eq "${user['id']}"`, `userName eq "${user['userName']}"`, `id sw "${user['id']}"`]) {
        expect([filter, (await list(send, '/Users', filter)).map(({ id }) => id)]).toEqual([filter, [user['id']]])
      }
    }
    expect((await send('GET', `/Users/${ann}`)).status).toBe(404)
    // The delete workflow deactivates.
    expect((await send('DELETE', `/Users/${bob}`)).status).toBe(204)
    expect((await send('GET', `/Users/${bob}`)).status).toBe(404)
    expect((await list(send, '/Users')).map(({ userName }) => userName)).not.toContain(bob)
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
    const change = (operation: JsonObject) => send('PATCH', addressOf(made.body), { schemas, Operations: [operation] })
    expect((await change({ op: 'replace', path: 'active', value: false })).body).toMatchObject({
      id: `${ann}@example.com`,
      active: false,
    })
    expect(await change({ op: 'replace', path: 'emails', value: [{ value: 'other@example.com' }] })).toMatchObject({
      status: 400,
      body: { scimType: 'mutability' },
    })
  })
})

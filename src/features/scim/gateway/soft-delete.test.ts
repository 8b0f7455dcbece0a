import { afterEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import { createGroup, sync, syncUser } from '#testing/databases/directory-writes.ts'
import { memoryUserDirectory } from '#testing/databases/memory-database.ts'
import { openGateway, People } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams, openStack as openScimStack } from '#testing/scim/scim-stack.ts'
import scimGateway from './scim-gateway.ts'
import { storedMarks } from './visible-lookups.ts'

type Stack = Awaited<ReturnType<typeof openScimStack>>

const deactivate = (...attributes: string[]) => [
  { taskType: 'addAttribute', name: 'active', value: 'true', remove: true },
  { taskType: 'addAttribute', name: 'active', value: 'false', remove: false },
  { taskType: 'provision', target: 'people', sync: true, attributes: ['active', ...attributes] },
]
const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User']
const patchOp = (...operations: JsonObject[]) => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})
const inactive = patchOp({ op: 'replace', path: 'active', value: false })

let stack: Stack
const opened: Stack[] = []
const openStack = async (...args: Parameters<typeof openScimStack>): Promise<Stack> => {
  const made = await openScimStack(...args)
  opened.push(made)
  return made
}
afterEach(async () => {
  for (const made of opened.splice(0)) await made.close()
})

const variants = [
  { name: "marks in Gatehouse's own database", params: builtInParams, attributes: [] },
  {
    name: 'marks in an attribute of the target',
    params: { ...builtInParams, deletedAttributeName: 'goneSince' },
    attributes: ['goneSince'],
  },
]

describe.each(variants)('a delete workflow that deactivates: $name', ({ params, attributes }) => {
  const open = async (more = {}) => {
    stack = await openStack(scimGateway, {
      params: { ...params, ...more },
      workflows: { 'delete-user': deactivate(...attributes) },
    })
    return stack.send
  }
  const create = async (userName: string, more: JsonObject = {}): Promise<string> => {
    const { status, body } = await stack.send('POST', '/Users', { schemas, userName, active: true, ...more })
    expect(status, JSON.stringify(body)).toBe(201)
    return String(body['id'])
  }
  const names = async (query = '') =>
    ((await stack.send('GET', `/Users${query}`)).body['Resources'] as JsonObject[]).map(({ userName }) => userName)

  test('the user is gone for every call and every gateway on the target', async () => {
    const send = await open()
    const id = await create('ann', { title: 'Dr' })
    await create('ben')
    expect((await send('DELETE', `/Users/${id}`)).status).toBe(204)
    expect((await stack.directory.lookupUserByLogin('ann'))?.attributes.first('active')).toBe('false')
    const other = await stack.gateway(params)
    for (const { send: ask } of [stack, other]) {
      expect((await ask('GET', `/Users/${id}`)).status).toBe(404)
      expect((await ask('PATCH', `/Users/${id}`, inactive)).status).toBe(404)
      expect((await ask('PUT', `/Users/${id}`, { userName: 'ann' })).status).toBe(404)
      expect((await ask('DELETE', `/Users/${id}`)).status).toBe(404)
    }
    expect(await names()).toEqual(['ben'])
    for (const filter of ['userName eq "ann"', `id eq "${id}"`, 'title eq "Dr"', 'active eq false', 'title sw "D"']) {
      expect(await names(`?filter=${encodeURIComponent(filter)}`), filter).toEqual([])
    }
    const first = await send('GET', '/Users?startIndex=1&count=1&sortBy=userName')
    expect(first.body).toMatchObject({ totalResults: 1, Resources: [{ userName: 'ben' }] })
  })

  test('a user that is only deactivated stays', async () => {
    const send = await open()
    const id = await create('ann')
    expect((await send('PATCH', `/Users/${id}`, inactive)).status).toBe(200)
    expect((await send('GET', `/Users/${id}`)).body).toMatchObject({ active: false })
    expect(await names()).toEqual(['ann'])
  })

  test.each(['tolerant', 'entra', 'sailpoint', 'strict'])(
    '%s: POST of the same userName reactivates',
    async (client) => {
      const send = await open({ client })
      const id = await create('ann', { title: 'Dr' })
      await send('DELETE', `/Users/${id}`)
      const again = await send('POST', '/Users', {
        schemas,
        userName: 'ANN',
        nickName: 'annie',
      })
      expect(again.status, JSON.stringify(again.body)).toBe(201)
      expect(again.body).toMatchObject({ id, active: true, nickName: 'annie' })
      expect(again.body).not.toHaveProperty('title')
      expect(await names()).toHaveLength(1)
      expect((await send('POST', '/Users', { schemas, userName: 'ann' })).status).toBe(409)
      // The mark was removed: a later deactivation does not count as a delete.
      expect((await send('PATCH', `/Users/${id}`, inactive)).status).toBe(200)
      expect((await send('GET', `/Users/${id}`)).body).toMatchObject({ active: false })
      expect((await stack.directory.lookupUserByLogin('ann'))?.attributes.has('goneSince')).toBe(false)
    },
  )

  test('POST with active false brings the user back inactive', async () => {
    const send = await open()
    const id = await create('ann')
    await send('DELETE', `/Users/${id}`)
    expect((await send('POST', '/Users', { userName: 'ann', active: false })).body).toMatchObject({ id, active: false })
    expect((await send('GET', `/Users/${id}`)).body).toMatchObject({ active: false })
  })

  test('a deleted user that another program activates is visible again, also after a deactivation', async () => {
    const send = await open()
    const id = await create('ann')
    await send('DELETE', `/Users/${id}`)
    await syncUser(stack.directory, sync('ann', { active: ['true'] }))
    expect((await send('GET', `/Users/${id}`)).body).toMatchObject({ active: true })
    expect(await names()).toEqual(['ann'])
    expect((await send('PATCH', `/Users/${id}`, inactive)).status).toBe(200)
    expect((await send('GET', `/Users/${id}`)).body).toMatchObject({ active: false })
    expect((await send('DELETE', `/Users/${id}`)).status).toBe(204)
    expect((await send('GET', `/Users/${id}`)).status).toBe(404)
  })
})

test('of a DELETE and a POST at the same time, the POST brings the user back or finds the userName taken', async () => {
  stack = await openStack(scimGateway, {
    params: builtInParams,
    workflows: { 'delete-user': deactivate() },
  })
  for (let i = 0; i < 20; i++) {
    const user = { schemas, userName: `race${i}`, active: true }
    const id = String((await stack.send('POST', '/Users', user)).body['id'])
    const removed = stack.send('DELETE', `/Users/${id}`)
    for (let turn = 0; turn < i; turn++) await new Promise((resolve) => setImmediate(resolve))
    const [deleted, posted] = await Promise.all([removed, stack.send('POST', '/Users', user)])
    expect(deleted.status).toBe(204)
    expect([201, 409]).toContain(posted.status)
    expect((await stack.send('GET', `/Users/${id}`)).status).toBe(posted.status === 201 ? 200 : 404)
  }
})

test('a deleted user is not a member of a group', async () => {
  stack = await openStack(scimGateway, { workflows: { 'delete-user': deactivate() } })
  const { body } = await stack.send('POST', '/Users', { userName: 'ann', active: true })
  const group = await createGroup(stack.directory, 'crew')
  const member = patchOp({ op: 'add', path: 'members', value: [{ value: body['id'] ?? '' }] })
  await stack.send('PATCH', `/Groups/${group.id}`, member)
  expect((await stack.send('GET', `/Groups/${group.id}`)).body['members']).toHaveLength(1)
  await stack.send('DELETE', `/Users/${body['id']}`)
  expect((await stack.send('GET', `/Groups/${group.id}`)).body).not.toHaveProperty('members')
  expect((await stack.send('PATCH', `/Groups/${group.id}`, member)).status).toBe(400)
})

test('a delete workflow that does nothing is an error, and the user stays', async () => {
  stack = await openStack(scimGateway, {
    workflows: { 'delete-user': [{ taskType: 'addAttribute', name: 'note', value: 'x', remove: false }] },
  })
  for (const [userName, more, text] of [
    ['ann', { active: true }, 'still there and active'],
    ['ben', {}, 'not shown as inactive'],
  ] as const) {
    const { body } = await stack.send('POST', '/Users', { userName, ...more })
    const answer = await stack.send('DELETE', `/Users/${body['id']}`)
    expect(answer.status).toBe(500)
    expect(answer.body['detail']).toContain(text)
    expect((await stack.send('GET', `/Users/${body['id']}`)).status).toBe(200)
  }
})

test('a workflow that does not write the attribute of deletedAttributeName is an error', async () => {
  stack = await openStack(scimGateway, {
    params: { ...builtInParams, deletedAttributeName: 'goneSince' },
    workflows: { 'delete-user': deactivate() },
  })
  const { body } = await stack.send('POST', '/Users', { userName: 'ann', active: true })
  const answer = await stack.send('DELETE', `/Users/${body['id']}`)
  expect(answer.status).toBe(500)
  expect(answer.body['detail']).toContain('deletedAttributeName')
})

test('more marked users than a filter can name are left out of lists by the gateway', async () => {
  stack = await openStack(scimGateway)
  const marks = storedMarks(await stack.marks(), () => new Date())
  const { body } = await stack.send('POST', '/Users', { userName: 'ann', active: false })
  for (const userName of ['ben', 'cid', 'dan'])
    await stack.send('POST', '/Users', { userName, active: userName !== 'dan' })
  await marks.set({ id: String(body['id']), user: userOf('ann') })
  const page = async (query = '') => {
    const { status, body: list } = await stack.send('GET', `/Users${query}`)
    expect(status, JSON.stringify(list)).toBe(200)
    return [list['totalResults'], (list['Resources'] as JsonObject[]).map(({ userName }) => userName)]
  }
  // Within what one filter may name, and beyond; a mark set twice is one.
  for (const until of [99, 130]) {
    for (let n = 0; n < until; n++) await marks.set({ id: `other-${n}`, user: userOf(`other${n}`) })
    expect(typeof (await marks.filter('id'))).toBe(until < 100 ? 'object' : 'string')
    expect(await page()).toEqual([3, ['ben', 'cid', 'dan']])
    expect(await page('?startIndex=2&count=1&sortBy=userName&sortOrder=descending')).toEqual([3, ['cid']])
    expect(await page(`?filter=${encodeURIComponent('active eq false')}`)).toEqual([1, ['dan']])
    expect(await page(`?filter=${encodeURIComponent('active eq false or userName sw "b"')}`)).toEqual([
      2,
      ['ben', 'dan'],
    ])
  }
  await marks.remove(String(body['id']))
  expect(await page()).toEqual([4, ['ann', 'ben', 'cid', 'dan']])
}, 60_000)

test('users that are deleted while a client reads by cursor neither end the list nor hide others', async () => {
  stack = await openStack(scimGateway, { params: builtInParams, workflows: { 'delete-user': deactivate() } })
  const marks = storedMarks(await stack.marks(), () => new Date())
  const ids: string[] = []
  for (let n = 0; n < 12; n++) {
    const { body } = await stack.send('POST', '/Users', { userName: `user${n}`, active: true })
    ids.push(String(body['id']))
  }
  const read = async (query: string, between: (page: number) => Promise<unknown>) => {
    const seen: unknown[] = []
    const totals: unknown[] = []
    let cursor: unknown = ''
    for (let page = 0; cursor !== undefined; page++) {
      const { status, body } = await stack.send('GET', `/Users?count=3&cursor=${String(cursor)}${query}`)
      expect(status, JSON.stringify(body)).toBe(200)
      seen.push(...(body['Resources'] as JsonObject[]).map(({ id }) => id))
      totals.push(body['totalResults'])
      cursor = body['nextCursor']
      if (cursor !== undefined) await between(page)
    }
    return { seen, totals }
  }
  // One already shown, one on a later page.
  const gone = [ids[0], ids[11]]
  const plain = await read('', async (page) => {
    if (page < gone.length) expect((await stack.send('DELETE', `/Users/${gone[page]}`)).status).toBe(204)
  })
  expect(plain.seen).toEqual(ids.slice(0, 11))
  expect(plain.totals.at(-1)).toBe(10)
  // More of them than a filter can name, and an order in which a change moves a user to the end.
  for (let n = 0; n < 130; n++) await marks.set({ id: `other-${n}`, user: userOf(`other${n}`) })
  const change = patchOp({ op: 'replace', path: 'displayName', value: 'changed' })
  const sorted = await read('&sortBy=meta.lastModified', (page) =>
    page === 0 ? stack.send('PATCH', `/Users/${ids[1]}`, change) : Promise.resolve(),
  )
  expect(new Set(sorted.seen)).toEqual(new Set(ids.slice(1, 11)))
  expect(sorted.totals).toEqual(sorted.totals.map(() => 10))
}, 60_000)

test('lists that neither the target nor the gateway can serve are refused with the remedy', async () => {
  const people = new People({ ownIds: true })
  for (let n = 0; n < 10_001; n++) people.add(`user${n}`, { active: ['false'] })
  const directory = memoryUserDirectory()
  const marks = storedMarks(directory, () => new Date())
  for (let n = 0; n < 101; n++) await marks.set({ id: `other-${n}`, user: userOf(`other${n}`) })
  const host = { openUserDirectory: async () => directory }
  const { send } = await openGateway(scimGateway, { people, params: builtInParams, host })
  const { status, body } = await send('GET', '/Users')
  expect([status, body['scimType']]).toEqual([400, 'tooMany'])
  expect(body['detail']).toContain('deletedAttributeName')
})

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { createGroup, createUser } from '#testing/databases/directory-writes.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { builtInParams, openStack } from '#testing/scim/scim-stack.ts'
import scimGateway from './scim-gateway.ts'

type Stack = Awaited<ReturnType<typeof openStack>>

const patchOp = (...operations: JsonValue[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})

const lines: ParamValues = {
  lookupTarget: 'people',
  uidAttributeName: 'uid',
  workflowName: 'sync-user',
  scim2tremolo: ['uid', 'mail', 'nick', 'call', 'kind', 'phone'],
  'scim2tremolo.uid.source': 'userName',
  'scim2tremolo.mail.source': 'list|emails,value',
  'scim2tremolo.mail.sourceType': 'custom',
  'scim2tremolo.nick.source': 'nickName',
  'scim2tremolo.call.source': '${displayName}',
  'scim2tremolo.call.sourceType': 'composite',
  'scim2tremolo.kind.source': 'employee',
  'scim2tremolo.kind.sourceType': 'static',
  'scim2tremolo.phone.source': 'list|phoneNumbers,value',
  'scim2tremolo.phone.sourceType': 'custom',
  tremolo2scim: ['userName', 'emails', 'nickName', 'displayName', 'phoneNumbers', 'userType'],
  'tremolo2scim.userName.source': 'uid',
  'tremolo2scim.emails.source': '[{"type":"work","value":"${mail}"}]',
  'tremolo2scim.emails.sourceType': 'composite',
  'tremolo2scim.nickName.source': 'nick',
  'tremolo2scim.displayName.source': 'call',
  'tremolo2scim.phoneNumbers.source': 'phone',
  'tremolo2scim.userType.source': 'kind',
}

let next = 1
/** Distinct without regard to letter case, as directories compare. */
const values = fc.uniqueArray(fc.stringMatching(/^[a-z0-9]{1,8}$/), { minLength: 1, maxLength: 5 })

async function withUser(stack: Stack, attributes: Record<string, readonly string[]>) {
  const userID = `user${next++}`
  await createUser(stack.directory, {
    userID,
    attributes: Attributes.from({ uid: [userID], ...attributes }),
    groups: [],
  })
  const found = await stack.directory.lookupUserByLogin(userID)
  const path = `/Users/${found?.id}`
  const stored = async (name: string) =>
    (await stack.directory.lookupUserByLogin(userID))?.attributes.values(name) ?? []
  const patch = async (...operations: JsonValue[]): Promise<JsonObject> => {
    const { status, body } = await stack.send('PATCH', path, patchOp(...operations))
    expect(status, JSON.stringify(body)).toBe(200)
    return body
  }
  return { userID, path, stored, patch }
}

describe('values that mapping lines do not show stay', () => {
  let stack: Stack
  beforeAll(async () => {
    stack = await openStack(scimGateway, { params: lines })
  })
  afterAll(() => stack.close())

  /** What a line stores, the SCIM attribute that shows it, and what a client sends for one value. */
  const kinds = [
    { kind: 'composite and custom', internal: 'mail', scim: 'emails', sent: (value: string) => [{ value }] },
    { kind: 'user', internal: 'nick', scim: 'nickName', sent: (value: string) => value },
    { kind: 'composite', internal: 'call', scim: 'displayName', sent: (value: string) => value },
  ]

  test.each(kinds)('$kind: replace and remove touch the first value only', ({ internal, scim, sent }) =>
    fc.assert(
      fc.asyncProperty(values, fc.constantFrom('replaced', 'x9z'), async (held, wanted) => {
        fc.pre(!held.includes(wanted))
        const [, ...hidden] = held
        const { stored, patch } = await withUser(stack, { [internal]: held })
        await patch({ op: 'replace', path: scim, value: sent(wanted) })
        expect(await stored(internal)).toEqual([wanted, ...hidden])
        await patch({ op: 'remove', path: scim })
        expect(await stored(internal)).toEqual(hidden)
      }),
      { numRuns: 15 },
    ),
  )

  test('adding an e-mail keeps the ones that are not shown', () =>
    fc.assert(
      fc.asyncProperty(values, async (held) => {
        const [first, ...hidden] = held
        const { stored, patch } = await withUser(stack, { mail: held })
        await patch({ op: 'add', path: 'emails', value: [{ type: 'home', value: 'Added@example.com' }] })
        expect(await stored('mail')).toEqual([first, 'Added@example.com', ...hidden])
      }),
      { numRuns: 15 },
    ))

  test('PUT of the resource from GET with another e-mail keeps the hidden ones', async () => {
    const { stored, path } = await withUser(stack, { mail: ['a@x.org', 'b@x.org', 'c@x.org'] })
    const { body } = await stack.send('GET', path)
    const put = await stack.send('PUT', path, { ...body, emails: [{ value: 'new@x.org' }] })
    expect(put.status).toBe(200)
    expect(await stored('mail')).toEqual(['new@x.org', 'b@x.org', 'c@x.org'])
  })

  test('a value that was hidden and is added is not stored twice, in any letter case', async () => {
    const { stored, patch } = await withUser(stack, { mail: ['a@x.org', 'b@x.org'] })
    await patch({ op: 'add', path: 'emails', value: [{ type: 'home', value: 'B@x.org' }] })
    expect(await stored('mail')).toEqual(['a@x.org', 'B@x.org'])
  })

  test('static: stored values beside the fixed one stay when something else changes', async () => {
    const { stored, patch } = await withUser(stack, { kind: ['employee', 'contractor'], nick: ['ann'] })
    await patch({ op: 'replace', path: 'nickName', value: 'annie' })
    expect(await stored('kind')).toEqual(['employee', 'contractor'])
  })

  test('an element that does not fit its attribute neither hides the others nor is lost', async () => {
    const { stored, patch, path } = await withUser(stack, { phone: ['123', '{"primary":"perhaps"}'] })
    expect((await stack.send('GET', path)).body['phoneNumbers']).toEqual([{ value: '123' }])
    await patch({ op: 'add', path: 'phoneNumbers', value: [{ value: '456' }] })
    expect(await stored('phone')).toEqual(['123', '456', '{"primary":"perhaps"}'])
    await patch({ op: 'remove', path: 'phoneNumbers[value eq "123"]' })
    expect(await stored('phone')).toEqual(['456', '{"primary":"perhaps"}'])
  })
})

describe('elements that do not fit the built-in mapping stay', () => {
  let stack: Stack
  const badge = {
    id: 'urn:example:Badge',
    name: 'Badge',
    attributes: [{ name: 'codes', type: 'integer', multiValued: true }],
  }
  const groupNote = { id: 'urn:example:Team', name: 'Team', attributes: badge.attributes }
  beforeAll(async () => {
    const params = {
      ...builtInParams,
      groupUpdateWorkflow: 'update-group',
      userSchema: [JSON.stringify(badge)],
      groupSchema: [JSON.stringify(groupNote)],
    }
    const updateGroup = [{ taskType: 'customTask', className: 'tasks.UpdateGroup', params: { target: 'people' } }]
    stack = await openStack(scimGateway, { params, workflows: { 'update-group': updateGroup } })
  })
  afterAll(() => stack.close())

  const fitting = fc.stringMatching(/^[a-z]{1,6}$/).map((value) => `{"value":"${value}@x.org"}`)
  const plain = fc.stringMatching(/^[a-z]{1,6}$/).map((value) => `${value}@plain.org`)
  const unfit = fc.stringMatching(/^[a-z]{1,6}$/).map((value) => `{"primary":"${value}"}`)
  const valueIn = (text: string) => (text.startsWith('{') ? JSON.parse(text).value : text)

  test('lists of complex values', () =>
    fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.oneof(fitting, plain, unfit), { minLength: 1, maxLength: 6 }),
        fc.constantFrom('add', 'replace', 'remove'),
        async (held, op) => {
          const hidden = held.filter((text) => text.includes('primary'))
          const visible = held.filter((text) => !text.includes('primary')).map(valueIn)
          const { stored, patch, path } = await withUser(stack, { emails: held })
          const shown = async () =>
            ((await stack.send('GET', path)).body['emails'] as JsonObject[] | undefined)?.map(({ value }) => value) ??
            []
          expect(await shown()).toEqual(visible)
          await patch({ op, path: 'emails', ...(op === 'remove' ? {} : { value: [{ value: 'new@x.org' }] }) })
          const wanted = { add: [...visible, 'new@x.org'], replace: ['new@x.org'], remove: [] }[op] ?? []
          expect(await shown()).toEqual(wanted)
          const changed = op !== 'remove' || visible.length > 0
          expect(await stored('emails')).toEqual(
            changed ? [...wanted.map((value) => JSON.stringify({ value })), ...hidden] : held,
          )
        },
      ),
      { numRuns: 60 },
    ))

  test('lists of numbers, of users and of groups', async () => {
    const name = 'urn:example:Badge:codes'
    const { stored, patch } = await withUser(stack, { [name]: ['1', 'one', '2'] })
    const body = await patch({ op: 'add', path: name, value: [3] })
    expect(body['urn:example:Badge']).toEqual({ codes: [1, 2, 3] })
    expect(await stored(name)).toEqual(['1', '2', '3', 'one'])

    const codes = 'urn:example:Team:codes'
    const group = await createGroup(stack.directory, 'crew', { [codes]: ['1', 'one', '2'] })
    const held = async () => (await stack.directory.lookupGroupByName('crew'))?.attributes?.values(codes)
    for (const [operation, after] of [
      [{ op: 'add', path: codes, value: [3] }, ['1', '2', '3', 'one']],
      [{ op: 'replace', path: codes, value: [7] }, ['7', 'one']],
      [{ op: 'remove', path: codes }, ['one']],
    ] as const) {
      const { status, body } = await stack.send('PATCH', `/Groups/${group.id}`, patchOp(operation))
      expect(status, JSON.stringify(body)).toBeLessThan(300)
      expect(await held()).toEqual(after)
    }
  })

  test('values after the one that a single attribute shows', async () => {
    const { stored, patch } = await withUser(stack, { title: ['Boss', 'Queen'], nickName: ['a', 'b'] })
    await patch({ op: 'replace', path: 'title', value: 'Chief' })
    expect(await stored('title')).toEqual(['Chief', 'Queen'])
    expect(await stored('nickName')).toEqual(['a', 'b'])
    await patch({ op: 'remove', path: 'title' })
    expect(await stored('title')).toEqual(['Queen'])
  })
})

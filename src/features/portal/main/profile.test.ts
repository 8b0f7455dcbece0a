import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Target } from '#sdk/target/target.ts'
import { subject } from '#testing/login/subjects.ts'
import { ann, openMain, outsider, person, someone } from '#testing/modules/main-fixture.ts'

const group = (cn: string, ...members: string[]): InsertEntry => ({
  dn: Dn.of(['cn', cn], ['o', 'x']),
  attributes: Attributes.from({ objectClass: ['groupOfNames'], cn: [cn], member: members }),
})

const shownOf = (body: { attributes: { name: string; values: string[] }[] }, wanted: string) =>
  body.attributes.find(({ name }) => name === wanted)?.values

describe('GET user', () => {
  test('is the directory entry, in the configured order, with its groups', async () => {
    const { send } = await openMain({
      entries: [
        person('ann', { mail: ['ann@example.com'], userPassword: ['x'] }),
        group('staff', 'uid=ann,ou=people,o=x'),
        group('others', 'uid=bob,ou=people,o=x'),
      ],
    })
    const { body } = await send('GET', '/user')
    expect(body).toEqual({
      uid: 'ann',
      dn: 'uid=ann,ou=people,o=x',
      attributes: [
        { name: 'uid', values: ['ann'], dataType: 'string' },
        { name: 'displayName', values: ['ann Doe'], dataType: 'string' },
        { name: 'mail', values: ['ann@example.com'], dataType: 'string' },
        { name: 'team', values: [], dataType: 'string' },
      ],
      groups: ['staff'],
    })
  })

  test('shows the attributes of the login to a user who is not in the directory', async () => {
    const { send } = await openMain()
    const guest = subject('uid=guest,o=shadow', { uid: ['guest'], mail: ['g@example.com'] })
    const { body } = await send('GET', '/user', undefined, guest)
    expect(shownOf(body, 'mail')).toEqual(['g@example.com'])
    expect(body.groups).toEqual([])
  })

  test('a caller without an entry does not see the entry, or its groups, that the name of the mock entry matches', async () => {
    const entries = [person('bob', { mail: ['bob@example.com'] }), group('staff', 'uid=bob,ou=people,o=x')]
    const { send } = await openMain({ entries })
    const who = { ...outsider('bob'), dn: Dn.parse('uid=bob,ou=people,o=x').claimed() }
    const { body } = await send('GET', '/user', undefined, who)
    expect([shownOf(body, 'mail'), shownOf(body, 'uid'), body.groups]).toEqual([[], ['bob'], []])
  })

  test('roles come from the configured attribute', async () => {
    const { send } = await openMain({
      params: { roleAttribute: 'roles' },
      entries: [person('ann', { roles: ['a', 'b'] })],
    })
    const { body } = await send('GET', '/user')
    expect(body.groups).toEqual(['a', 'b'])
    expect(shownOf(body, 'roles')).toEqual(['a', 'b'])
  })
})

describe('groups as a table', () => {
  const cluster = { objects: {}, label: 'Production' } as unknown as Target
  const options = {
    targets: { k8s: cluster },
    params: { loadPortalGroupsClassName: 'com.tremolosecurity.scalejs.LoadClusterGroups', groupsAreJson: 'true' },
    entries: [
      person('ann'),
      group('k8s-cluster-k8s-administrators-external', 'uid=ann,ou=people,o=x'),
      group('staff', 'uid=ann,ou=people,o=x'),
    ],
  }

  test('LoadClusterGroups shows what the names of groups mean, with its own columns', async () => {
    const { send } = await openMain(options)
    const { body } = await send('GET', '/user')
    expect(body.groups.map((text: string) => JSON.parse(text))).toEqual([
      [
        { Cluster: 'N/A', Namespace: 'N/A', Name: 'staff' },
        { Cluster: 'Production', Namespace: 'N/A', Name: 'Administrators' },
      ],
    ])
    const { body: config } = await send('GET', '/config')
    expect([config.groupsAreJson, config.groupsFields]).toEqual([true, ['Cluster', 'Namespace', 'Name']])
  })

  test('a user without groups has no table, and without groupsAreJson the names are shown', async () => {
    const { send } = await openMain({ ...options, entries: [person('ann')] })
    expect((await send('GET', '/user')).body.groups).toEqual([])
    const plain = await openMain({ ...options, params: { ...options.params, groupsAreJson: 'false' } })
    const { body } = await plain.send('GET', '/user')
    expect(body.groups).toEqual(['k8s-cluster-k8s-administrators-external', 'staff'])
  })
})

describe('PUT user', () => {
  const saved = (value: string) => ({ mail: { name: 'mail', value } })

  test('runs the workflow for the caller, with the whole changed profile', async () => {
    const { send, calls } = await openMain()
    const change = { mail: { value: 'a2@example.com' }, team: { value: 'red' }, uid: { value: 'ann' } }
    expect((await send('PUT', '/user', change)).status).toBe(200)
    expect(calls).toHaveLength(1)
    expect(calls[0]).toMatchObject({
      head: { workflow: 'save', requester: 'ann' },
      keepGroups: true,
      cleared: [],
      params: {},
      user: { userID: 'ann', groups: [] },
    })
    expect(calls[0]?.user.attributes.toObject()).toEqual({
      uid: ['ann'],
      displayName: ['ann Doe'],
      mail: ['a2@example.com'],
      team: ['red'],
    })
  })

  test('answers with the values after the run', async () => {
    const entries = [person('ann', { mail: ['old@example.com'] })]
    const { send } = await openMain({
      entries,
      run: async ({ user }) => {
        entries[0] = person('ann', { mail: user.attributes.values('mail') })
        return { id: 'r', status: 'completed', changes: 1 }
      },
    })
    expect(shownOf((await send('PUT', '/user', saved('new@example.com'))).body, 'mail')).toEqual(['new@example.com'])
  })

  test('a caller without an entry does not save the profile of the user who has the same login', async () => {
    const { send, calls, runs } = await openMain()
    const moved = { ...someone('BOB'), identity: ann.identity, dn: ann.dn }
    for (const who of [outsider('bob'), moved]) {
      await expect(send('PUT', '/user', saved('b2@example.com'), who)).rejects.toMatchObject({
        code: 'ACCESS_DENIED',
        publicText: expect.stringContaining('belongs to another user'),
      })
    }
    expect(calls).toEqual([])
    const refused = [{ kind: 'entry', attribute: 'subject', value: 'bob' }]
    expect(runs.refused[0]).toMatchObject({ name: 'save', caller: 'bob', subject: 'bob', refused })
    const change = { ...saved('g@example.com'), displayName: { value: 'Guest' } }
    expect((await send('PUT', '/user', change, outsider('guest'))).status).toBe(200)
    expect(calls).toMatchObject([{ user: { userID: 'guest' } }])
  })

  test('a change that needs approval is accepted', async () => {
    const { send } = await openMain({ run: async () => ({ id: 'r', status: 'waiting', changes: 0 }) })
    const { status, body } = await send('PUT', '/user', saved('new@example.com'))
    expect(status).toBe(202)
    expect(shownOf(body, 'mail')).toEqual(['ann@example.com'])
  })

  test('an empty value clears the field; an unchanged profile starts nothing', async () => {
    const { send, calls } = await openMain()
    await send('PUT', '/user', saved('ann@example.com'))
    expect(calls).toEqual([])
    await send('PUT', '/user', saved(''))
    expect(calls[0]?.cleared).toEqual(['mail'])
    expect(calls[0]?.user.attributes.has('mail')).toBe(false)
  })

  test('a form that sends every field keeps the further values of unchanged fields', async () => {
    const mail = ['ann@example.com', 'ann2@example.com']
    const { send, calls } = await openMain({ entries: [person('ann', { mail })] })
    const whole = { displayName: { value: 'ann Doe' }, mail: { value: 'ann@example.com' }, team: { value: 'red' } }
    expect((await send('PUT', '/user', whole)).status).toBe(200)
    expect(calls[0]?.user.attributes.toObject()).toMatchObject({ mail, team: ['red'] })
    expect(calls[0]?.cleared).toEqual([])
  })

  test('a cleared value stays cleared, even if the login has one, and can be set again', async () => {
    const entries = [person('ann', { mail: ['ann@example.com'] })]
    const { send, calls } = await openMain({
      entries,
      run: async ({ user }) => {
        entries[0] = person('ann', { mail: user.attributes.values('mail') })
        return { id: 'r', status: 'completed', changes: 1 }
      },
    })
    const session = subject('uid=ann,ou=people,o=x', { uid: ['ann'], mail: ['ann@example.com'] })
    expect(shownOf((await send('PUT', '/user', saved(''), session)).body, 'mail')).toEqual([])
    const again = await send('PUT', '/user', saved('ann@example.com'), session)
    expect(shownOf(again.body, 'mail')).toEqual(['ann@example.com'])
    expect(calls).toHaveLength(2)
  })

  test('D6: the server enforces canEditUser', async () => {
    const { send, calls } = await openMain({ params: { canEditUser: 'false' } })
    expect((await send('GET', '/config')).body.canEditUser).toBe(false)
    await expect(send('PUT', '/user', saved('x@example.com'))).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    expect(calls).toEqual([])
  })

  test('D6: the UI helper limits attributes and editing, with approvals or without', async () => {
    const { send, calls } = await openMain({
      params: {
        enableApprovals: 'false',
        uiHelperClassName: 'com.tremolosecurity.scalejs.helpers.FilterHelper',
        'uihelper.params': [
          'allowedFilters=(groups=editors)',
          'filterMap=(groups=hr)=displayName,mail',
          'filterMap=(groups=people)=mail',
        ],
      },
    })
    const editor = someone('ann', ['people', 'editors'])
    expect((await send('GET', '/config')).body).toMatchObject({ canEditUser: false, attributeNameList: ['mail'] })
    expect((await send('GET', '/config', undefined, editor)).body.canEditUser).toBe(true)
    expect((await send('GET', '/user', undefined, editor)).body.attributes).toMatchObject([{ name: 'mail' }])
    await expect(send('PUT', '/user', saved('x@example.com'))).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    const { status, body } = await send('PUT', '/user', { displayName: { value: 'Ann' } }, editor)
    expect({ status, body }).toEqual({ status: 500, body: { errors: ['Invalid attribute displayName'] } })
    const nobody = someone('eve', ['editors'])
    expect((await send('GET', '/config', undefined, nobody)).body.attributes).toEqual({})
    expect(calls).toEqual([])
    expect((await send('PUT', '/user', saved('x@example.com'), editor)).status).toBe(200)
  })

  test.each<[string, object, readonly string[]]>([
    ['a value that is not in the list', { team: { value: 'green' } }, ['Team has a value that is not in the list']],
    ['a value that does not match', { mail: { value: 'x@evil.test' } }, ['Mail must be one of ours']],
    ['a required value that is taken away', { displayName: { value: '' } }, ['Name is required']],
    ['another login', { uid: { value: 'bob' } }, ['Login cannot be changed']],
    ['an unknown attribute', { isAdmin: { value: 'true' } }, ['Invalid attribute isAdmin']],
    ['another name inside', { mail: { name: 'isAdmin', value: 'a@example.com' } }, ['Invalid attribute mail']],
    [
      'all at once',
      { team: { value: 'x' }, mail: { value: 'y' }, more: { value: 'z' } },
      ['Invalid attribute more', 'Mail must be one of ours', 'Team has a value that is not in the list'],
    ],
  ])('D5: %s is rejected with all messages, and starts nothing', async (_, change, errors) => {
    const { send, calls } = await openMain()
    expect(await send('PUT', '/user', change)).toMatchObject({ status: 500, body: { errors } })
    expect(calls).toEqual([])
  })

  test('D5: an optional value that is absent is not validated', async () => {
    const { send, calls } = await openMain({ entries: [person('ann')] })
    expect((await send('PUT', '/user', { mail: { value: '' }, team: { value: 'red' } })).status).toBe(200)
    expect(calls).toHaveLength(1)
  })

  test('D5: a required value that was never set is required', async () => {
    const entries = [{ ...person('ann'), attributes: Attributes.from({ objectClass: ['person'], uid: ['ann'] }) }]
    const { send } = await openMain({ entries })
    expect((await send('PUT', '/user', { team: { value: 'red' } })).body).toEqual({ errors: ['Name is required'] })
  })

  test.each([
    [{ mail: 'x' }],
    [{ mail: { value: null } }],
    [{ mail: { value: ['a', 'b'] } }],
    [{ mail: { values: ['a'] } }],
    [{ mail: { value: 'x'.repeat(10_001) } }],
    [[]],
    ['"text"'],
    ['{"__proto__":{"value":"x"}}'],
    [Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`a${i}`, { value: '' }]))],
  ])('an invalid body is rejected: %j', async (body) => {
    const { send, calls } = await openMain()
    await expect(send('PUT', '/user', body)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(calls).toEqual([])
  })

  test('only JSON is accepted', async () => {
    const { send } = await openMain()
    await expect(send('PUT', '/user', '{}', ann, 'text/plain')).rejects.toMatchObject({
      code: 'UNSUPPORTED_MEDIA_TYPE',
    })
    await expect(send('PUT', '/user', '{')).rejects.toMatchObject({ code: 'INVALID_JSON' })
  })
})

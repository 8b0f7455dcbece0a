import { describe, expect, test, vi } from 'vitest'
import type { PortalWorkflow } from '#features/portal/access/portal.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Grant } from '#sdk/workflow/grant.ts'
import {
  ann,
  type MainOptions,
  openMain,
  org,
  outsider,
  person,
  someone,
  workflow,
} from '#testing/modules/main-fixture.ts'
import { byLogin, someApproval } from '#testing/workflows/some-approval.ts'
import type { ApprovalDesk } from '#workflows/approvals/approval-desk.ts'
import type { ApprovalVote } from '#workflows/approvals/desk-requests.ts'

const line = (more: object = {}) => ({ uuid: 'u1', name: 'join', reason: 'because', ...more })

describe('lists', () => {
  const workflows = [
    workflow('join'),
    workflow('anywhere', { org: undefined }),
    workflow('internal', { inList: false }),
    workflow('elsewhere', { org: 'open' }),
  ]
  const portal = { workflows, orgs: [org('root'), org('open', { parent: 'root' }), org('hidden', { rules: [] })] }

  test('have the listed workflows of the org, each with its own uuid', async () => {
    const { send } = await openMain({ portal })
    const { body } = await send('GET', '/workflows/org/root')
    expect(body.map(({ name }: { name: string }) => name)).toEqual(['anywhere', 'join'])
    expect(body[0]).toEqual({
      uuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'anywhere',
      label: 'Workflow anywhere',
      description: '',
      filterAnnotations: {},
    })
    expect((await send('GET', '/workflows/org/root')).body[0].uuid).not.toBe(body[0].uuid)
    for (const id of ['hidden', 'absent']) {
      await expect(send('GET', `/workflows/org/${id}`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  })

  test('show the rights of the caller', async () => {
    const { send } = await openMain({ portal, params: { canPreApprove: 'YES' } })
    const rights = async (query: string, who = ann) =>
      (await send('GET', `/workflows/candelegate${query}`, undefined, who)).body
    const all = { canDelegate: true, canPreApprove: true, commentRequired: false }
    expect(await rights('?workflowName=join&uuid=7')).toEqual({ ...all, uuid: '7' })
    const none = { canDelegate: false, canPreApprove: false, commentRequired: false }
    expect(await rights('?workflowName=internal')).toEqual(none)
    expect(await rights('?workflowName=absent')).toEqual(none)
    expect(await rights('?workflowName=join', someone('guest', []))).toEqual(none)
    await expect(rights('')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })
})

describe('submitting', () => {
  test('starts a run for the caller, who is the requester', async () => {
    const { send, runs, memory } = await openMain()
    expect((await send('PUT', '/workflows', [line()])).body).toEqual({ u1: 'success' })
    expect(runs.calls).toHaveLength(1)
    expect(runs.calls[0]).toMatchObject({
      head: { workflow: 'join', requester: 'ann', reason: 'because' },
      asynchronous: true,
      keepGroups: true,
      params: {},
      user: { userID: 'ann', groups: [] },
    })
    expect(await memory.recent({ identity: ann.identity, login: 'ann' })).toMatchObject([
      { kind: 'workflow', name: 'join' },
    ])
  })

  test('remembers the language of a caller who chose none for their mails', async () => {
    const user = { identity: ann.identity, login: 'ann' }
    const chosen = async (language: string, before?: string) => {
      const { send, memory } = await openMain({ language })
      if (before !== undefined) await memory.chooseNotifications(user, { choices: {}, language: before })
      await send('PUT', '/workflows', [line()])
      return (await memory.notificationSettings(user))?.language
    }
    expect(await chosen('*')).toBeUndefined()
    expect(await chosen('en-GB')).toBe('en')
    expect(await chosen('de-CH,de;q=0.9,en;q=0.8')).toBe('de')
    expect(await chosen('fr', 'de')).toBe('de')
  })

  test('a caller without an entry requests nothing for the user who has the same login', async () => {
    const { send, runs } = await openMain()
    const lines = [line(), line({ uuid: 'u2', subjects: ['BOB'] })]
    const { body } = await send('PUT', '/workflows', lines, outsider('bob'))
    const refusal = expect.stringContaining('belongs to another user')
    expect(body).toEqual({ u1: refusal, u2: refusal })
    expect(runs.calls).toEqual([])
    expect(runs.refused).toMatchObject([
      { name: 'join', caller: 'bob', subject: 'bob', refused: [{ kind: 'entry', attribute: 'subject', value: 'bob' }] },
      { name: 'join' },
    ])
    expect((await send('PUT', '/workflows', [line()], outsider('guest'))).body).toEqual({ u1: 'success' })
    expect(runs.calls).toMatchObject([{ user: { userID: 'guest' } }])
  })

  test('a caller without an entry who may request for others requests for the user as for another', async () => {
    const { send, runs } = await openMain({ params: { canDelegate: 'YES' } })
    const who = outsider('bob')
    expect((await send('PUT', '/workflows', [line({ subjects: ['bob'] })], who)).body).toEqual({ u1: 'success' })
    const bob = someone('bob').identity
    expect(runs.calls).toMatchObject([
      { user: { userID: 'bob' }, head: { who: { requester: who.identity, subject: bob } } },
    ])
  })

  test('D3: no caller chooses the requester, groups or parameters of the engine', async () => {
    const { send, runs } = await openMain()
    const hostile = [
      { requestor: 'boss' },
      { requestParams: { APPROVAL_IMMEDIATE_ACTION: 'true' } },
      { user: { groups: ['admins'] } },
      { params: { APPROVAL_REASON: 'x' } },
    ]
    for (const more of hostile) {
      await expect(send('PUT', '/workflows', [line(more)])).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
    expect(runs.calls).toEqual([])
  })

  test('each line has its own result', async () => {
    const { send, runs } = await openMain({
      portal: {
        workflows: [workflow('join'), workflow('far', { org: 'hidden' })],
        orgs: [org('root'), org('hidden', { rules: [] })],
      },
    })
    const { status, body } = await send('PUT', '/workflows', [
      line({ uuid: 'a' }),
      line({ uuid: 'b', name: 'absent' }),
      line({ uuid: 'c', reason: ' ' }),
      line({ uuid: 'd', name: 'far' }),
      line({ uuid: 'e', subjects: ['bob'] }),
      line({ uuid: 'f', doPreApproval: 'true', approved: 'true', approvalReason: 'x' }),
    ])
    expect(status).toBe(200)
    expect(body).toEqual({
      a: 'success',
      b: 'Not Found',
      c: 'Reason is required',
      d: 'Unauthorized',
      e: 'Unauthorized',
      f: 'Unauthorized',
    })
    expect(runs.calls).toHaveLength(1)
  })

  test('D7: an unlisted workflow cannot be requested, whatever its org', async () => {
    const { send, runs } = await openMain({ portal: { workflows: [workflow('internal', { inList: false })] } })
    expect((await send('PUT', '/workflows', [line({ name: 'internal' })])).body).toEqual({ u1: 'Not Found' })
    expect(runs.calls).toEqual([])
  })

  test('D5: the list of reasons is enforced, and an optional reason is stored', async () => {
    const { send, runs } = await openMain({
      params: { reasonIsList: 'true', reasons: ['project', 'support'], requireReason: 'false' },
    })
    const { body } = await send('PUT', '/workflows', [
      line({ uuid: 'a', reason: 'because' }),
      line({ uuid: 'b', reason: 'support' }),
    ])
    expect(body).toEqual({ a: 'Reason is not in the list', b: 'success' })
    const free = await send('PUT', '/workflows', [line({ uuid: 'c', reason: null })], someone('bob'))
    expect(free.body).toEqual({ c: 'success' })
    expect(runs.calls.map(({ head: { reason } }) => reason)).toEqual(['support', undefined])
  })

  test('a failure is reported without its cause, and the other lines continue', async () => {
    const { send, runs } = await openMain({ portal: { workflows: [workflow('join'), workflow('broken')] } })
    runs.execute = async ({ head: { workflow: name } }) => {
      if (name === 'broken') throw new GatewayError('TARGET_UNREACHABLE', 'connect 10.0.0.7')
      return 'accepted'
    }
    const { body } = await send('PUT', '/workflows', [line({ uuid: 'a', name: 'broken' }), line({ uuid: 'b' })])
    expect(body).toEqual({ a: 'Unable to submit', b: 'success' })
  })

  test.each([
    [[]],
    [{}],
    [[line({ uuid: undefined })]],
    [[line({ uuid: '' })]],
    [[line({ uuid: 'a b' })]],
    [[line(), line()]],
    [[line({ name: '' })]],
    [[line({ name: 5 })]],
    [[line({ reason: 'x'.repeat(2001) })]],
    [[line({ reason: 'a\0' })]],
    [[line({ subjects: 'bob' })]],
    [[line({ subjects: Array.from({ length: 501 }, (_, i) => `u${i}`) })]],
    [[line({ approved: 'yes' })]],
    [Array.from({ length: 101 }, (_, i) => line({ uuid: `u${i}` }))],
  ])('an invalid cart is rejected as a whole: %j', async (cart) => {
    const { send, runs } = await openMain()
    await expect(send('PUT', '/workflows', cart)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(runs.calls).toEqual([])
  })
})

describe('the expiry date', () => {
  const day = 86_400_000
  const portal = {
    workflows: [
      workflow('join'),
      workflow('free', { accessEnds: { required: false } }),
      workflow('ends', { accessEnds: { required: true, longest: { months: 0, millis: 90 * day } } }),
    ],
  }
  const open = () => openMain({ portal, now: () => Date.parse('2030-01-02T00:00:00Z') })

  test('is offered in the list', async () => {
    const { send } = await open()
    const { body } = await send('GET', '/workflows/org/root')
    expect(body.map(({ name, accessEnds }: Record<string, unknown>) => [name, accessEnds])).toEqual([
      ['ends', { required: true, longestSeconds: 90 * 86_400 }],
      ['free', { required: false }],
      ['join', undefined],
    ])
  })

  test('reaches the run as a time, or is absent', async () => {
    const { send, runs } = await open()
    const { body } = await send('PUT', '/workflows', [
      line({ uuid: 'a', name: 'ends', expires: '2030-02-01' }),
      line({ uuid: 'b', name: 'free', expires: '2099-12-31T12:00:00+01:00' }),
      line({ uuid: 'c', name: 'free', expires: '' }),
    ])
    expect(body).toEqual({ a: 'success', b: 'success', c: 'success' })
    expect(runs.calls.map(({ params }) => params)).toEqual([
      { accessEnds: '2030-02-01T23:59:59.000Z' },
      { accessEnds: '2099-12-31T11:00:00.000Z' },
      {},
    ])
  })

  test('rejects its line if it is outside the offer, and nothing starts', async () => {
    const { send, runs } = await open()
    const { body } = await send('PUT', '/workflows', [
      line({ uuid: 'a', name: 'ends' }),
      line({ uuid: 'b', name: 'ends', expires: '2030-04-03' }),
      line({ uuid: 'c', name: 'ends', expires: '2030-01-01' }),
      line({ uuid: 'd', name: 'free', expires: '$until$' }),
      line({ uuid: 'e', name: 'join', expires: '2030-02-01' }),
    ])
    expect(body).toEqual({
      a: 'End date is required',
      b: 'End date is later than allowed',
      c: 'End date is not in the future',
      d: 'End date is not a date or time',
      e: 'End date cannot be chosen here',
    })
    expect(runs.calls).toEqual([])
    await expect(send('PUT', '/workflows', [line({ expires: 'x'.repeat(65) })])).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
  })

  describe('of access that the user has', () => {
    const held = new Date('2030-02-01T00:00:00Z')
    const grant = (run: string, expires = held): Grant => ({
      id: `of ${run}`,
      target: 'store',
      subject: 'ann',
      kind: 'group',
      name: run,
      granted: new Date('2030-01-01T00:00:00Z'),
      expires,
      run,
      state: 'active',
    })
    /** What the workflow "ends" gave to users of these logins, each by a run about the user. */
    async function openWith(...subjects: readonly string[]) {
      const given: Grant[] = []
      const through = async (workflow: string) => (workflow === 'ends' ? given : [])
      const params = { canDelegate: 'YES' }
      const now = () => Date.parse('2030-01-02T00:00:00Z')
      const opened = await openMain({ portal, params, now, grants: { through } })
      for (const subject of subjects) {
        const run = opened.runs.add({ head: { workflow: 'ends', subject }, state: 'completed' })
        given.push(grant(run.head.id))
      }
      const submit = async (more: object) =>
        Object.values((await opened.send('PUT', '/workflows', [line({ name: 'ends', ...more })])).body)[0]
      return { ...opened, given, submit }
    }

    test('must be later than its end, which the refusal names', async () => {
      const { submit, runs, given } = await openWith('ann')
      const refusal = 'You have this until 2030-02-01T00:00:00.000Z; choose a later time'
      for (const expires of ['2030-01-20', held.toISOString()]) expect(await submit({ expires })).toBe(refusal)
      expect(runs.calls).toEqual([])
      expect(await submit({ expires: '2030-02-01T00:00:01Z' })).toBe('success')
      given.push(grant(given[0]?.run ?? '', new Date('2030-01-10T00:00:00Z')))
      expect(await submit({ uuid: 'other', expires: '2030-01-20' })).toBe('success')
      expect(runs.calls).toHaveLength(2)
    })

    test('is compared with few reads, however much it is', async () => {
      const { submit, runs } = await openWith(...Array.from({ length: 100 }, () => 'ann'))
      const reads = (['get', 'several', 'parametersOf'] as const).map((name) => vi.spyOn(runs, name))
      expect(await submit({ expires: '2030-01-20' })).toMatch(/^You have this until/)
      expect(reads.reduce((sum, { mock }) => sum + mock.calls.length, 0)).toBeLessThan(5)
    })

    test('is not compared with access of another user of the same login at a target', async () => {
      const { submit } = await openWith('bob')
      expect(await submit({ expires: '2030-01-20' })).toBe('success')
    })

    test('of others is refused without its end, and no part of the line starts', async () => {
      const { submit, runs } = await openWith('bob')
      const subjects = ['ann', 'bob']
      expect(await submit({ subjects, expires: '2030-01-20' })).toBe(
        'bob has this for longer already; choose a later time',
      )
      expect(runs.calls).toEqual([])
    })

    test('a line that is sent again is not refused for what it did', async () => {
      const { submit, runs, given } = await openWith()
      expect(await submit({ expires: held.toISOString() })).toBe('success')
      const run = runs.add({ head: { workflow: 'ends', subject: 'ann' }, state: 'completed' })
      given.push(grant(run.head.id))
      expect(await submit({ expires: held.toISOString() })).toBe('success')
      expect(runs.calls).toHaveLength(1)
    })
  })

  test('is part of the request: another expiry date is another request', async () => {
    const { send, runs } = await open()
    const asked = line({ name: 'ends', expires: '2030-02-01' })
    await send('PUT', '/workflows', [asked])
    expect((await send('PUT', '/workflows', [asked])).body.u1).toBe('success')
    expect((await send('PUT', '/workflows', [{ ...asked, expires: '2030-02-02' }])).body.u1).toMatch(/other content/)
    expect(runs.calls).toHaveLength(1)
  })

  test('is chosen by the requester, also where a source has a parameter of that name', async () => {
    const sets = [{ accessEnds: '2030-12-31T00:00:00.000Z', group: 'x' }]
    const dynamic = { annotations: [], parameterSets: async () => sets }
    const { send, runs } = await openMain({
      portal: { workflows: [workflow('join', { accessEnds: { required: true }, dynamic })] },
      now: () => Date.parse('2030-01-02T00:00:00Z'),
    })
    const [{ encryptedParams, accessEnds }] = (await send('GET', '/workflows/org/root')).body
    expect(accessEnds).toEqual({ required: true })
    await send('PUT', '/workflows', [line({ encryptedParams, expires: '2030-02-01T00:00:00Z' })])
    expect(runs.calls[0]?.params).toEqual({ accessEnds: '2030-02-01T00:00:00.000Z', group: 'x' })
  })
})

describe('repeated', () => {
  test('a line starts nothing again, and gets the earlier answer', async () => {
    const { send, runs } = await openMain()
    const first = await send('PUT', '/workflows', [line()])
    expect((await send('PUT', '/workflows', [line()])).body).toEqual(first.body)
    expect(runs.calls).toHaveLength(1)
    expect((await send('PUT', '/workflows', [line()], someone('bob'))).body).toEqual({ u1: 'success' })
    expect(runs.calls.map(({ head: { requester: requestor } }) => requestor)).toEqual(['ann', 'bob'])
  })

  test('with other content it is rejected', async () => {
    const { send, runs } = await openMain({ portal: { workflows: [workflow('join'), workflow('other')] } })
    await send('PUT', '/workflows', [line()])
    const { body } = await send('PUT', '/workflows', [line({ name: 'other' })])
    expect(body.u1).toMatch(/submitted before/)
    expect(runs.calls).toHaveLength(1)
  })
})

describe('the work of a cart', () => {
  const params = { canDelegate: 'YES' }
  const workflows = [workflow('join'), workflow('other'), workflow('ends', { accessEnds: { required: false } })]

  test('a request that is equal to an open one is that one, even with another uuid or reason', async () => {
    const { send, runs } = await openMain({ params, portal: { workflows } })
    const cart = Array.from({ length: 100 }, (_, i) => line({ uuid: `u${i}`, subjects: ['ann', 'bob'] }))
    const { body } = await send('PUT', '/workflows?outcomes=true', cart)
    expect(body.u0).toEqual({ result: 'success' })
    expect(body.u99).toEqual({ result: 'success', alreadyOpen: true })
    expect(runs.calls).toHaveLength(2)
    const again = await send('PUT', '/workflows?outcomes=true', [line({ uuid: 'x', reason: 'another' })])
    expect(again.body).toEqual({ x: { result: 'success', alreadyOpen: true } })
    // Another workflow, end or requester is another request, and so is one after the end of the first.
    await send('PUT', '/workflows', [line({ uuid: 'o', name: 'other' })])
    await send('PUT', '/workflows', [line({ uuid: 'e1', name: 'ends', expires: '2030-05-01' })])
    await send('PUT', '/workflows', [line({ uuid: 'e2', name: 'ends', expires: '2030-05-02' })])
    await send('PUT', '/workflows', [line({ uuid: 'b', subjects: ['ann'] })], someone('bob'))
    expect(runs.calls).toHaveLength(6)
    for (const run of runs.runs.values()) runs.runs.set(run.head.id, { ...run, state: 'completed' })
    await send('PUT', '/workflows', [line({ uuid: 'late' })])
    expect(runs.calls).toHaveLength(7)
  })

  test('open requests of a user are limited; the rest is refused, all of it with 429', async () => {
    const { send, runs } = await openMain({ params: { ...params, maxOpenRequests: '2' }, portal: { workflows } })
    const most =
      'You have 2 open requests, which is the limit. Try again when some of them are decided, or cancel some.'
    const cart = [line(), line({ uuid: 'u2', name: 'other' }), line({ uuid: 'u3', name: 'ends' })]
    expect((await send('PUT', '/workflows', cart)).body).toEqual({ u1: 'success', u2: 'success', u3: most })
    await expect(send('PUT', '/workflows', [line({ uuid: 'u4', name: 'ends' })])).rejects.toMatchObject({
      status: 429,
      publicText: most,
    })
    expect((await send('PUT', '/workflows', [line({ uuid: 'again' })])).body).toEqual({ again: 'success' })
    expect((await send('PUT', '/workflows', cart, someone('bob'))).body).toMatchObject({ u1: 'success' })
    expect(runs.calls).toHaveLength(4)
  })

  test('subjects are limited in all lines together', async () => {
    const { send, host } = await openMain({ params })
    const many = Array.from({ length: 6 }, (_, i) =>
      line({ uuid: `u${i}`, subjects: Array.from({ length: 100 }, (_, n) => `user${i}-${n}`) }),
    )
    await expect(send('PUT', '/workflows', many)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('has more than 500 subjects in all lines together'),
    })
    expect(host.searches).toEqual([])
  })

  test('each login is looked up once, and few unknown ones', async () => {
    const { send, host } = await openMain({ params, portal: { workflows } })
    const names = ['join', 'other', 'ends']
    await send(
      'PUT',
      '/workflows',
      names.map((name, i) => line({ uuid: `u${i}`, name, subjects: ['BOB', 'bob '] })),
    )
    expect(host.searches).toHaveLength(1)
    const subjects = Array.from({ length: 500 }, (_, i) => `nobody${i}`)
    const { body } = await send('PUT', '/workflows', [line({ subjects })])
    expect(body.u1).toContain('Error, user nobody9 does not exist;')
    expect(host.searches.length).toBeLessThan(20)
  })

  test('other users are served between two lookups, and a client that has gone ends it', async () => {
    const gone = new AbortController()
    const subjects = Array.from({ length: 400 }, (_, i) => `person${i}`)
    const entries = subjects.map((uid) => person(uid))
    const { send, host, runs } = await openMain({ params, entries })
    const submitted = send('PUT', '/workflows', [line({ subjects })], ann, 'application/json', gone.signal)
    setImmediate(() => setImmediate(() => gone.abort()))
    await expect(submitted).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' })
    expect(host.searches.length).toBeLessThan(100)
    expect(runs.calls).toEqual([])
  })
})

describe('for others', () => {
  const params = { canDelegate: 'YES' }

  test('each subject gets a run; blank lines and repetitions are ignored', async () => {
    const { send, runs } = await openMain({ params })
    const subjects = ['BOB', '', ' bob ', 'Ann', '  ']
    expect((await send('PUT', '/workflows', [line({ subjects })])).body).toEqual({ u1: 'success' })
    expect(runs.calls.map(({ user, head: { requester: requestor } }) => [user.userID, requestor])).toEqual([
      ['ann', 'ann'],
      ['bob', 'ann'],
    ])
  })

  test('an unknown user stops the line before anything starts', async () => {
    const { send, runs } = await openMain({ params })
    const { body } = await send('PUT', '/workflows', [line({ subjects: ['bob', 'nobody', '*'] })])
    expect(body).toEqual({ u1: 'Error, user nobody does not exist;Error, user * does not exist;' })
    expect(runs.calls).toEqual([])
  })

  test('an ambiguous user stops it too', async () => {
    const twice = { ...person('bob'), dn: person('bob2').dn }
    const { send, runs } = await openMain({ params, entries: [person('ann'), person('bob'), twice] })
    expect((await send('PUT', '/workflows', [line({ subjects: ['bob'] })])).body.u1).toMatch(/several users bob/)
    expect(runs.calls).toEqual([])
  })

  test('the workflow for new users creates them first', async () => {
    const { send, runs, calls } = await openMain({ params: { ...params, jitWorkflow: 'make' } })
    await send('PUT', '/workflows', [line({ subjects: ['new'] })])
    expect(calls).toMatchObject([{ head: { workflow: 'make', requester: 'ann' }, user: { userID: 'new' } }])
    expect(runs.calls).toMatchObject([{ head: { workflow: 'join' }, user: { userID: 'new' } }])
  })

  test.each(['ad\u200ba', '\uff41da', 'a\nb', 'Anonymous'])('no user is created with the login %j', async (login) => {
    const { send, runs, calls } = await openMain({ params: { ...params, jitWorkflow: 'make' } })
    const { body } = await send('PUT', '/workflows', [line({ subjects: [login] })])
    expect(body).toEqual({ u1: `Error, user ${login} does not exist;` })
    expect([...calls, ...runs.calls]).toEqual([])
  })

  test('CUSTOM uses the helper', async () => {
    const { send, runs } = await openMain({
      params: {
        canDelegate: 'CUSTOM',
        uiHelperClassName: 'FilterHelper',
        'uihelper.params': ['allowedFilters=(groups=desk)', 'applyToDelegration=true'],
      },
    })
    expect((await send('PUT', '/workflows', [line({ subjects: ['bob'] })])).body).toEqual({ u1: 'Unauthorized' })
    const desk = someone('ann', ['people', 'desk'])
    expect((await send('PUT', '/workflows', [line({ subjects: ['bob'] })], desk)).body).toEqual({ u1: 'success' })
    expect(runs.calls).toHaveLength(1)
  })
})

describe('D11: pre-approval', () => {
  const record = (id: string) => someApproval({ id, approvers: [byLogin('ann')] })
  const asked = line({
    subjects: ['bob'],
    doPreApproval: true,
    approved: 'true',
    approvalReason: 'agreed beforehand',
  })

  async function open(decide: ApprovalDesk['decide'], portal: MainOptions['portal'] = {}) {
    const votes: ApprovalVote[] = []
    const opened = await openMain({
      params: { canPreApprove: 'YES' },
      portal,
      approvals: {
        ofRun: async () => [record('first'), record('second')],
        decide: async (user, vote) => {
          votes.push(vote)
          return decide(user, vote)
        },
      },
    })
    opened.runs.execute = async () => 'waiting'
    return { ...opened, votes }
  }

  test("is one decision, in the requester's own name, about the first approval, and is not repeated", async () => {
    const { send, votes, runs } = await open(async () => ({ ...record('first'), data: {}, mayDecide: false }))
    await send('PUT', '/workflows', [asked])
    await send('PUT', '/workflows', [asked])
    expect(votes).toEqual([{ approval: 'first', approve: true, comment: 'agreed beforehand', requestId: 'request-1' }])
    expect(runs.calls[0]?.params).toEqual({})
  })

  test('a requester who may not decide leaves the approval open; the request is submitted all the same', async () => {
    const { send, votes } = await open(async () => {
      throw new GatewayError('ACCESS_DENIED', 'asked for it')
    })
    expect((await send('PUT', '/workflows', [asked])).body).toEqual({ u1: 'success' })
    expect(votes).toHaveLength(1)
  })

  describe('the result is reported if the client requests it', () => {
    const outcomes = '/workflows?outcomes=true'
    const taken: ApprovalDesk['decide'] = async () => ({ ...record('first'), data: {}, mayDecide: false })
    const refused: ApprovalDesk['decide'] = async () => {
      throw new GatewayError('ACCESS_DENIED', 'asked for it')
    }

    test('decided or left to others, and absent for lines without a decision or with an error', async () => {
      const plain = line({ uuid: 'plain' })
      const lines = [asked, plain, { ...asked, uuid: 'refused', approved: undefined }]
      const rest = { plain: { result: 'success' }, refused: { result: 'Approval decision is required' } }
      const willing = await open(taken)
      expect((await willing.send('PUT', outcomes, lines)).body).toEqual({
        u1: { result: 'success', decision: 'taken' },
        ...rest,
      })
      const strict = await open(refused)
      const left = { u1: { result: 'success', decision: 'left' }, ...rest }
      expect((await strict.send('PUT', outcomes, lines)).body).toEqual(left)
      // A repeated line reports the decision again, and decides nothing.
      expect((await strict.send('PUT', outcomes, lines)).body).toMatchObject(left)
      expect(strict.votes).toHaveLength(1)
    })

    test('one left to others among many is reported', async () => {
      let times = 0
      const { send } = await open(async (user, vote) => {
        times += 1
        return times === 2 ? refused(user, vote) : taken(user, vote)
      })
      const { body } = await send('PUT', outcomes, [{ ...asked, subjects: ['bob', 'ann'] }])
      expect(body).toEqual({ u1: { result: 'success', decision: 'left' } })
    })

    test('a workflow without an approval has nothing to decide', async () => {
      const { send } = await openMain({
        params: { canPreApprove: 'YES' },
        approvals: { ofRun: async () => [] },
      })
      expect((await send('PUT', outcomes, [asked])).body).toEqual({ u1: { result: 'success', decision: 'none' } })
    })

    test('an approval that is not open yet, since earlier runs come first, is left to others', async () => {
      const { send, runs } = await openMain({
        params: { canPreApprove: 'YES' },
        approvals: { ofRun: async () => [] },
      })
      runs.execute = async () => 'accepted'
      expect((await send('PUT', outcomes, [asked])).body).toEqual({ u1: { result: 'success', decision: 'left' } })
    })
  })

  test('needs a decision, and a reason only where the workflow requires one', async () => {
    const decide: ApprovalDesk['decide'] = async () => ({ ...record('first'), data: {}, mayDecide: false })
    const lines = [
      { ...asked, uuid: 'a', approved: undefined },
      { ...asked, uuid: 'b', approvalReason: ' ' },
    ]
    const { send, votes } = await open(decide)
    expect((await send('PUT', '/workflows', lines)).body).toEqual({ a: 'Approval decision is required', b: 'success' })
    expect(votes).toMatchObject([{ approval: 'first', approve: true, comment: '' }])
    const strict = await open(decide, { workflows: [workflow('join', { commentRequired: true })] })
    expect((await strict.send('PUT', '/workflows', lines)).body).toEqual({
      a: 'Approval decision is required',
      b: 'Approval reason is required',
    })
    expect(strict.runs.calls).toEqual([])
  })
})

describe('D13: dynamic workflows', () => {
  const groups = [{ group: 'admins' }, { group: '$reason$ <b>' }]
  const dynamic = (sets: () => readonly Record<string, string>[]): PortalWorkflow =>
    workflow('join', {
      label: 'Join $group$',
      dynamic: { annotations: [{ name: 'Group', parameter: 'group' }], parameterSets: async () => sets() },
    })

  async function open(sets: () => readonly Record<string, string>[] = () => groups) {
    const opened = await openMain({ portal: { workflows: [dynamic(sets), workflow('plain')] } })
    const { body } = await opened.send('GET', '/workflows/org/root')
    const rows: { label: string; encryptedParams?: string; filterAnnotations: object }[] = body
    const admins = rows.find(({ label }) => label === 'Join admins')
    return { ...opened, rows, reference: admins?.encryptedParams ?? '' }
  }

  test('have one row per set of parameters, whose values are never expanded again', async () => {
    const { rows } = await open()
    expect(rows.map(({ label, filterAnnotations }) => [label, filterAnnotations])).toEqual([
      ['Join $reason$ <b>', { Group: '$reason$ <b>' }],
      ['Join admins', { Group: 'admins' }],
      ['Workflow plain', {}],
    ])
    expect(rows.map(({ encryptedParams }) => encryptedParams === undefined)).toEqual([false, false, true])
    expect(JSON.stringify(rows[1]?.encryptedParams)).not.toContain('admins')
  })

  test('run with the offered parameters', async () => {
    const { send, runs, reference } = await open()
    await send('PUT', '/workflows', [line({ encryptedParams: reference })])
    expect(runs.calls).toMatchObject([{ params: { group: 'admins' } }])
  })

  test('a reference is valid for its owner and its workflow alone', async () => {
    const { send, runs, reference } = await open()
    const tries = [
      await send('PUT', '/workflows', [line({ encryptedParams: reference })], someone('bob')),
      await send('PUT', '/workflows', [line({ encryptedParams: reference, name: 'plain' })]),
      await send('PUT', '/workflows', [line({ encryptedParams: 'forged' })]),
      await send('PUT', '/workflows', [line({ encryptedParams: '' })]),
      await send('PUT', '/workflows', [line()]),
    ]
    expect(tries.map(({ body }) => body.u1)).toEqual(Array(5).fill('Not Found'))
    expect(runs.calls).toEqual([])
  })

  test('a set that is no longer offered is rejected on submit', async () => {
    let sets: readonly Record<string, string>[] = groups
    const { send, runs, reference } = await open(() => sets)
    sets = [{ group: 'guests' }]
    expect((await send('PUT', '/workflows', [line({ encryptedParams: reference })])).body).toEqual({
      u1: 'Unauthorized',
    })
    expect(runs.calls).toEqual([])
  })

  test('an engine parameter is rejected, even from a source', async () => {
    const set = { group: 'admins', APPROVAL_IMMEDIATE_ACTION: 'true' }
    const { send, runs, reference } = await open(() => [set])
    expect((await send('PUT', '/workflows', [line({ encryptedParams: reference })])).body).toEqual({
      u1: 'Unable to submit',
    })
    expect(runs.calls).toEqual([])
  })

  test('a source that fails hides only its own workflow', async () => {
    const { rows } = await open(() => {
      throw new GatewayError('TARGET_UNREACHABLE', 'no')
    })
    expect(rows).toMatchObject([{ label: 'Workflow plain' }])
  })
})

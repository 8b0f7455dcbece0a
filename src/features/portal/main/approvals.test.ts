import { describe, expect, test } from 'vitest'
import { entryIdentity, loginIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import { ann, openMain, person, someone, workflow } from '#testing/modules/main-fixture.ts'
import type { Public } from '#testing/workflows/call-store.ts'
import { byLogin, type GivenApproval, someApproval } from '#testing/workflows/some-approval.ts'
import type { ApprovalDesk } from '#workflows/approvals/approval-desk.ts'
import type { ApprovalView, ApprovalVote } from '#workflows/approvals/desk-requests.ts'
import type { ApprovalUser } from '#workflows/record/operator.ts'

const run = newId()
const id = newId()
const other = newId()

const view = ({ run: about, ...more }: GivenApproval<ApprovalView> = {}): ApprovalView => ({
  ...someApproval({
    id,
    run: { id: run, requester: 'carol', reason: 'on call', ...about },
    label: 'Join the admins',
    version: 3,
    approvers: [byLogin('ann')],
    data: {
      attributes: { uid: ['bob'], mail: ['bob@old.example.com'], sn: ['Doe'] },
      groups: ['old'],
      parameters: { group: 'admins', note: 'not configured' },
    },
  }),
  mayDecide: true,
  ...more,
})

async function open(
  given: Partial<Public<ApprovalDesk>> = {},
  entries = [person('bob', { mail: ['bob@example.com'] })],
  params = {},
) {
  const votes: (ApprovalVote & { readonly user: ApprovalUser })[] = []
  const mine = (user: ApprovalUser) => user.login === 'ann'
  const approvals: Partial<Public<ApprovalDesk>> = {
    list: async (user) => ({ approvals: mine(user) ? [view()] : [], next: 'more' }),
    messagesOf: async () => [],
    get: async (user, wanted) => (mine(user) && wanted === id ? view() : undefined),
    decide: async (user, vote) => {
      votes.push({ ...vote, user })
      if (!mine(user) || vote.approval !== id) throw new GatewayError('NOT_FOUND', 'no')
      return view({ state: 'approved' })
    },
    ...given,
  }
  return { ...(await openMain({ approvals, entries, params, portal: { workflows: [workflow('join')] } })), votes }
}

test('lists what the caller decided, with the outcome and the comment', async () => {
  const at = new Date('2030-01-03T00:00:00Z')
  const decision = { at, by: byLogin('ann'), comment: 'fine' }
  const pages: unknown[] = []
  const { send } = await open({
    decided: async (user, page) => {
      pages.push([user.login, page])
      return { approvals: [{ ...view({ state: 'approved' }), decision }], next: '1.a' }
    },
  })
  const { body } = await send('GET', '/decisions?limit=7&after=2.b')
  expect(pages).toEqual([['ann', { limit: 7, after: '2.b' }]])
  expect(body).toMatchObject({
    decisions: [
      { approval: id, displayName: 'bob Doe', status: 'approved', decision: { at: at.toISOString(), comment: 'fine' } },
    ],
    next: '1.a',
  })
  await expect(send('GET', '/decisions?state=open')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})

describe('reassigning', () => {
  test('passes the approval with the comment, in the name of the caller', async () => {
    const given: unknown[] = []
    const { send } = await open({ reassign: async (user, handover) => void given.push([user.login, handover]) })
    const { status } = await send('POST', `/approvals/${id}/reassign`, { to: ' bob ', reason: 'away', version: 3 })
    expect(status).toBe(204)
    expect(given).toMatchObject([['ann', { approval: id, to: 'bob', comment: 'away', version: 3 }]])
  })

  test.each([[{}], [{ to: '' }], [{ to: 'bob', by: 'eve' }], [{ to: ['bob'] }], [{ to: 'x'.repeat(300) }]])(
    '%j passes nothing',
    async (body) => {
      const { send } = await open()
      await expect(send('POST', `/approvals/${id}/reassign`, body)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    },
  )
})

test('asks the requester in the name of the caller', async () => {
  const given: unknown[] = []
  const { send } = await open({ ask: async (user, question) => void given.push([user.login, question]) })
  expect((await send('POST', `/approvals/${id}/questions`, { text: 'Which?' })).status).toBe(204)
  expect(given).toMatchObject([['ann', { approval: id, text: 'Which?' }]])
  for (const body of [{}, { text: '' }, { text: 'x'.repeat(2001) }, { text: 'x', to: 'bob' }]) {
    await expect(send('POST', `/approvals/${id}/questions`, body)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  }
})

test('a visitor who registered is asked nothing', async () => {
  const given: unknown[] = []
  const { send } = await open({
    get: async () => view({ run: { requester: 'Anonymous' } }),
    ask: async (_user, question) => void given.push(question),
  })
  const sent = send('POST', `/approvals/${id}/questions`, { text: 'Who are you?' })
  await expect(sent).rejects.toMatchObject({ code: 'CONFLICT', publicText: expect.stringContaining('cannot answer') })
  expect(given).toEqual([])
})

describe('lists', () => {
  test('have every field, and users by display name', async () => {
    const { send, host } = await open()
    const { body } = await send('GET', '/approvals')
    expect(body).toEqual({
      approvals: [
        {
          workflow: run,
          approval: id,
          label: 'Join the admins',
          user: 'bob',
          displayName: 'bob Doe',
          requestor: 'carol',
          wfStart: expect.any(Number),
          approvalStart: Date.parse('2030-01-02T00:00:00Z'),
          wfName: 'join',
          wfLabel: 'Workflow join',
          wfDescription: '',
          reason: 'on call',
          commentRequired: false,
        },
      ],
      next: 'more',
      names: { bob: 'bob Doe' },
    })
    expect(Math.abs(body.approvals[0].wfStart - Date.now())).toBeLessThan(60_000)
    expect(host.searches).toHaveLength(1)
  })

  test('D14: many approvals cost a few searches, not one each', async () => {
    const many = Array.from({ length: 250 }, (_, i) => view({ id: newId(), run: { subject: `user${i}` } }))
    const { send, host } = await open({ list: async () => ({ approvals: many }) })
    expect((await send('GET', '/approvals')).body.approvals).toHaveLength(250)
    expect(host.searches).toHaveLength(3)
  })

  test('are paged by the query, and reject other parameters', async () => {
    const pages: unknown[] = []
    const { send } = await open({
      list: async (_, page) => {
        pages.push(page)
        return { approvals: [] }
      },
    })
    await send('GET', '/approvals?after=x&limit=10')
    expect(pages).toEqual([{ after: 'x', limit: 10 }])
    for (const query of ['?limit=0', '?limit=501', '?limit=1&limit=2', '?all=1']) {
      await expect(send('GET', `/approvals${query}`)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })

  test('do not exist if approvals are off', async () => {
    const { send } = await openMain({ params: { enableApprovals: 'false' } })
    await expect(send('GET', '/approvals')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(send('PUT', `/approvals/${id}`, { approved: true, reason: 'x' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
  })
})

describe('details', () => {
  test('show a directory user by the configured attributes only', async () => {
    const { send } = await open()
    const { body } = await send('GET', `/approvals/${id}`)
    expect(body).toMatchObject({
      approval: id,
      displayName: 'bob Doe',
      userObj: {
        userID: 'bob',
        isNew: false,
        groups: [],
        requestReason: 'on call',
        attribs: { Mail: { name: 'mail', values: ['bob@example.com'], dataType: 'string' } },
      },
      requestAttributes: { Group: 'admins' },
      status: 'open',
      mayDecide: true,
      version: 3,
      approvers: ['ann'],
    })
    expect(Object.keys(body.userObj.attribs)).toEqual(['Mail'])
    expect(Object.keys(body.requestAttributes)).toEqual(['Group'])
  })

  test('show the expiry date, as lists do', async () => {
    const ending = view({ run: { accessEnds: new Date('2030-02-01T00:00:00Z') } })
    const { send } = await open({ get: async () => ending, list: async () => ({ approvals: [ending, view()] }) })
    const accessEnds = '2030-02-01T00:00:00.000Z'
    expect((await send('GET', `/approvals/${id}`)).body).toMatchObject({ accessEnds })
    const { approvals } = (await send('GET', '/approvals')).body
    expect(approvals).toMatchObject([{ accessEnds }, {}])
    expect(approvals[1]).not.toHaveProperty('accessEnds')
  })

  test("show the request's attributes of a new user", async () => {
    const { send } = await open({}, [])
    const { body } = await send('GET', `/approvals/${id}`)
    expect(body.userObj).toMatchObject({ isNew: true, groups: ['old'], attribs: { sn: { values: ['Doe'] } } })
  })

  test('show the user whom the request is about, never another one with the same login', async () => {
    const about = (entryId: string) => view({ run: { who: { subject: entryIdentity('test', entryId) } } })
    const bob = (entryId: string) => ({ ...person('bob', { mail: [`${entryId}@example.com`] }), id: entryId })
    const shown = async (entryId: string, entries: Parameters<typeof open>[1]) =>
      (await (await open({ get: async () => about(entryId) }, entries)).send('GET', `/approvals/${id}`)).body
    const one = await shown('first', [bob('second'), bob('first')])
    expect(one.userObj).toMatchObject({ isNew: false, attribs: { Mail: { values: ['first@example.com'] } } })
    const gone = await shown('first', [bob('second')])
    expect(gone).toMatchObject({ displayName: 'bob', userObj: { isNew: false, groups: ['old'] } })
    expect(JSON.stringify(gone)).not.toContain('second@example.com')
  })

  test('D4: passwords reach no approver, wherever they are in the request', async () => {
    const withSecrets = { ...view(), password: 'hunter2', userObj: { password: 'hunter2' }, secret: 'hunter2' }
    const entries = [person('bob', { userPassword: ['hunter2'], mail: ['b@example.com'] })]
    for (const people of [entries, []]) {
      const { send } = await open({ get: async () => withSecrets }, people)
      expect((await send('GET', `/approvals/${id}`)).text).not.toContain('hunter2')
    }
  })

  test('D22: parameters of a request are shown only if configured', async () => {
    const { send } = await open()
    expect((await send('GET', `/approvals/${id}`)).text).not.toContain('not configured')
  })

  test('preview the changes if requested and shown, for callers that may decide', async () => {
    const asked: [string, string][] = []
    const expires = new Date('2030-02-01T00:00:00Z')
    const steps: Preview['steps'] = [
      { kind: 'end', target: 'people', of: 'group', name: 'admins', expires },
      { kind: 'wait', until: expires },
      { kind: 'mail', recipient: 'bob@example.com', subject: 'Hello' },
    ]
    const given: Partial<Public<ApprovalDesk>> = {
      preview: async (user, wanted) => {
        asked.push([user.login, wanted])
        return { steps, whole: false }
      },
    }
    const { send } = await open(given)
    expect((await send('GET', `/approvals/${id}?changes=true`)).body.changes).toEqual({
      steps: [
        { kind: 'end', target: 'people', of: 'group', name: 'admins', expires: '2030-02-01T00:00:00.000Z' },
        { kind: 'wait', until: '2030-02-01T00:00:00.000Z' },
        { kind: 'mail', recipient: 'bob@example.com', subject: 'Hello' },
      ],
      whole: false,
    })
    expect(asked).toEqual([['ann', id]])
    expect((await send('GET', `/approvals/${id}`)).body.changes).toBeUndefined()
    const another = send('GET', `/approvals/${id}?changes=true`, undefined, someone('eve'))
    await expect(another).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const seen = await open({ ...given, get: async () => view({ mayDecide: false }) })
    expect((await seen.send('GET', `/approvals/${id}?changes=true`)).body.changes).toBeUndefined()
    const off = await open(given, [], { showChanges: 'false' })
    expect((await off.send('GET', `/approvals/${id}?changes=true`)).body.changes).toBeUndefined()
    const gone = await open({ preview: async () => undefined })
    expect((await gone.send('GET', `/approvals/${id}?changes=true`)).body).not.toHaveProperty('changes')
    const busy = await open({
      preview: async () => {
        throw new GatewayError('TOO_MANY_REQUESTS', 'others', { retryAfter: 3 })
      },
    })
    const refused = busy.send('GET', `/approvals/${id}?changes=true`)
    await expect(refused).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS', retryAfter: 3 })
    expect((await busy.send('GET', `/approvals/${id}`)).status).toBe(200)
    expect(asked).toHaveLength(1)
  })

  test("D14: another user's approval, an invalid id and a guessed number are all the same 404", async () => {
    const { send } = await open()
    for (const [path, who] of [
      [id, someone('eve')],
      [other, ann],
      ['1', ann],
      ['constructor', ann],
      [`${id}'--`, ann],
    ] as const) {
      await expect(send('GET', `/approvals/${encodeURIComponent(path)}`, undefined, who)).rejects.toMatchObject({
        code: 'NOT_FOUND',
        status: 404,
      })
    }
  })
})

describe('deciding', () => {
  test("uses the caller's own name, and is answered without a body", async () => {
    const { send, votes } = await open()
    const vote = { approved: false, reason: 'not now', version: 3 }
    expect(await send('PUT', `/approvals/${id}`, vote)).toMatchObject({ status: 200, text: '' })
    expect(votes).toMatchObject([
      { approval: id, approve: false, comment: 'not now', version: 3, requestId: 'request-1', user: { login: 'ann' } },
    ])
  })

  test('accepts the texts that forms send', async () => {
    const { send, votes } = await open()
    await send('PUT', `/approvals/${id}`, { approved: 'true', reason: 'x' })
    await send('PUT', `/approvals/${id}`, { approved: 'false', reason: 'x' })
    expect(votes.map(({ approve }) => approve)).toEqual([true, false])
  })

  test.each([
    ['CONFLICT', 409],
    ['ACCESS_DENIED', 403],
    ['NOT_FOUND', 404],
    ['VERSION_MISMATCH', 412],
  ] as const)("passes on the approval's error: %s", async (code, status) => {
    const { send } = await open({
      decide: async () => {
        throw new GatewayError(code, 'x')
      },
    })
    await expect(send('PUT', `/approvals/${id}`, { approved: true, reason: 'x' })).rejects.toMatchObject({ status })
  })

  test.each([
    [{}],
    [{ reason: 'x' }],
    [{ approved: 'yes', reason: 'x' }],
    [{ approved: 1, reason: 'x' }],
    [{ approved: true, reason: 'x'.repeat(2001) }],
    [{ approved: true, reason: 'x', by: 'boss' }],
    [{ approved: true, reason: 'x', version: '3' }],
  ])('%j decides nothing', async (vote) => {
    const { send, votes } = await open()
    await expect(send('PUT', `/approvals/${id}`, vote)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(votes).toEqual([])
  })

  test.each([[{}], [{ reason: null }], [{ reason: ' ' }]])('%j decides without a comment', async (more) => {
    const { send, votes } = await open()
    expect((await send('PUT', `/approvals/${id}`, { approved: true, ...more })).status).toBe(200)
    expect(votes).toMatchObject([{ approve: true, comment: '' }])
  })

  test('decides several, each separately', async () => {
    const { send } = await open()
    const { status, body } = await send('PUT', '/approvals', { approvals: [other, id], approved: true, reason: 'ok' })
    expect(status).toBe(200)
    expect(body.results).toEqual({
      [other]: { status: 404, text: 'Nothing was found at this address.', code: 'NOT_FOUND' },
      [id]: { status: 200, text: 'success' },
    })
  })

  test('decides none of several after the client has gone', async () => {
    const { send, votes } = await open()
    const vote = { approvals: [other, id], approved: true, reason: 'ok' }
    const sent = send('PUT', '/approvals', vote, undefined, 'application/json', AbortSignal.abort())
    await expect(sent).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' })
    expect(votes).toEqual([])
  })

  test('limits and validates several', async () => {
    const { send, votes } = await open()
    const wrong = [[], ['1'], [id, id], Array.from({ length: 101 }, () => newId())]
    for (const approvals of wrong) {
      const vote = send('PUT', '/approvals', { approvals, approved: true, reason: 'x' })
      await expect(vote).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
    expect(votes).toEqual([])
  })
})

describe('a registration', () => {
  const registration = view({ newAccount: true })
  const given = { get: async () => registration, list: async () => ({ approvals: [registration] }) }

  test('is shown as it was submitted, with a warning if a user has the login by now', async () => {
    const existing = { login: true, attributes: ['mail'] }
    const { send } = await open({ ...given, existing: async () => existing })
    const { body } = await send('GET', `/approvals/${id}`)
    expect(body).toMatchObject({
      displayName: 'bob',
      registration: true,
      existing: { checked: true, ...existing },
      userObj: { isNew: true, groups: ['old'], attribs: { mail: { values: ['bob@old.example.com'] } } },
    })
    expect((await send('GET', '/approvals')).body.approvals[0].displayName).toBe('bob')
  })

  test('has the labels of the form that started it, in the language of the approver', async () => {
    const items = [{ name: 'Tokyo', value: 'tyo' }]
    const data = { attributes: { uid: ['bob'], office: ['tyo', 'other'], sn: ['Doe'] } }
    const { send } = await openMain({
      language: 'de',
      texts: new Map([['de', new Map(Object.entries({ Office: 'Büro', Tokyo: 'Tokio' }))]]),
      forms: [
        { workflow: 'another', fields: [{ name: 'sn', label: 'Wrong', items: [] }] },
        {
          workflow: 'join',
          fields: [
            { name: 'uid', label: 'Login', items: [] },
            { name: 'office', label: 'Office', items },
          ],
        },
      ],
      approvals: {
        get: async () => view({ newAccount: true, run: { workflow: 'join' }, data }),
        messagesOf: async () => [],
      },
    })
    expect((await send('GET', `/approvals/${id}`)).body.userObj.attribs).toEqual({
      uid: { name: 'uid', values: ['bob'], dataType: 'string', label: 'Login', valueLabels: ['bob'] },
      office: {
        name: 'office',
        values: ['tyo', 'other'],
        dataType: 'string',
        label: 'Büro',
        valueLabels: ['Tokio', 'other'],
      },
      sn: { name: 'sn', values: ['Doe'], dataType: 'string' },
    })
  })

  test('reports when the account could not be checked, and checks nothing once it is closed', async () => {
    const failing = await open({
      ...given,
      existing: async () => {
        throw new GatewayError('TARGET_UNREACHABLE', 'down')
      },
    })
    const { body } = await failing.send('GET', `/approvals/${id}`)
    expect(body.existing).toEqual({ checked: false, login: false, attributes: [] })
    const closed = await open({ ...given, existing: async () => undefined })
    expect((await closed.send('GET', `/approvals/${id}`)).body).not.toHaveProperty('existing')
  })
})

describe('deputies', () => {
  const deputyIdentity = loginIdentity('bob')
  const period = { id: 'p1', login: 'ann', deputy: 'bob', deputyIdentity, starts: new Date(0), ends: new Date(1000) }

  test('are not shown with the name of another user who has the login by now', async () => {
    const left = { ...period, deputyIdentity: entryIdentity('test', 'left') }
    const represents = async () => [{ login: 'bob', identity: entryIdentity('test', 'left') }]
    const { send } = await open({ delegations: async () => [left], represents })
    const { body } = await send('GET', '/delegations')
    expect(body).toMatchObject({ delegations: [{ deputy: 'bob' }], represents: ['bob'], names: {} })
  })

  test('are named, listed and removed', async () => {
    const reported: unknown[] = []
    const { send } = await open({
      delegate: async (user, given) => {
        reported.push([user.login, given.deputy, given.starts.toISOString()])
        return period
      },
      delegations: async () => [period],
      represents: async () => [byLogin('carol')],
      endDelegation: async (_, which) => void reported.push(which),
    })
    const starts = '2030-01-02T00:00:00+01:00'
    const added = await send('POST', '/delegations', { deputy: 'bob', starts, ends: '2030-01-03T00:00:00Z' })
    expect(added).toMatchObject({ status: 201, body: { id: 'p1', deputy: 'bob' } })
    expect((await send('GET', '/delegations')).body).toEqual({
      delegations: [{ id: 'p1', deputy: 'bob', starts: new Date(0).toISOString(), ends: new Date(1000).toISOString() }],
      represents: ['carol'],
      names: { bob: 'bob Doe' },
    })
    expect((await send('DELETE', '/delegations/p1')).status).toBe(204)
    expect(reported).toEqual([['ann', 'bob', '2030-01-01T23:00:00.000Z'], 'p1'])
  })

  test.each([
    [{ deputy: '', starts: '2030-01-02T00:00:00Z', ends: '2030-01-03T00:00:00Z' }],
    [{ deputy: 'bob', starts: 'tomorrow', ends: '2030-01-03T00:00:00Z' }],
    [{ deputy: 'bob', starts: '2030-01-02T00:00:00Z' }],
    [{ deputy: 'bob', starts: 1, ends: 2 }],
    [{ deputy: 'bob', login: 'boss', starts: '2030-01-02T00:00:00Z', ends: '2030-01-03T00:00:00Z' }],
  ])('%j is rejected', async (body) => {
    const { send } = await open()
    await expect(send('POST', '/delegations', body)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })
})

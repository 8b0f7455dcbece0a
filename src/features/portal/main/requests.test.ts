import { describe, expect, test } from 'vitest'
import { issuerIdentity } from '#identity/identity.ts'
import { newId } from '#kernel/ids.ts'
import { ann, openMain, someone, workflow } from '#testing/modules/main-fixture.ts'
import { byLogin, someApproval } from '#testing/workflows/some-approval.ts'
import type { RunState } from '#workflows/record/run.ts'

const approvals = {
  messagesOf: async () => [],
  ofRun: async () => [
    someApproval({
      id: 'a1',
      label: 'Join',
      state: 'denied',
      opened: new Date(0),
      escalation: 1,
      version: 2,
      decision: { at: new Date(1000), by: byLogin('boss'), comment: 'no' },
    }),
  ],
}

async function open() {
  const opened = await openMain({ approvals })
  const mine = opened.runs.add({
    head: { workflow: 'join', requester: 'ann', subject: 'bob', reason: 'why' },
    state: 'waiting',
  })
  const theirs = opened.runs.add({ head: { workflow: 'join', requester: 'bob', subject: 'carol' } })
  const aboutMe = opened.runs.add({ head: { workflow: 'join', requester: 'boss', subject: 'ann' }, state: 'completed' })
  return { ...opened, mine, theirs, aboutMe }
}

test('requests of a dynamic workflow have the label of what was requested', async () => {
  const dynamic = { annotations: [], parameterSets: async () => [] }
  const join = workflow('join', { label: 'Join $group$ as $role$', dynamic })
  const decisionMillis = async () => undefined
  const { send, runs } = await openMain({ approvals: { ...approvals, decisionMillis }, portal: { workflows: [join] } })
  const mine = runs.add({ head: { workflow: 'join', requester: 'ann', subject: 'bob' }, state: 'waiting' })
  runs.parameters.set(mine.head.id, new Map([['group', 'Payroll']]))
  const label = 'Join Payroll as [role]'
  expect((await send('GET', '/requests')).body).toMatchObject({ requests: [{ id: mine.head.id, label }] })
  expect((await send('GET', `/requests/${mine.head.id}`)).body).toMatchObject({ label })
  expect((await send('GET', '/workflows/named/join')).body).toMatchObject({ label: 'Join [group] as [role]' })
})

describe('my requests', () => {
  test('are those I submitted, or those about me', async () => {
    const { send, mine, aboutMe } = await open()
    expect((await send('GET', '/requests')).body).toMatchObject({
      requests: [
        { id: mine.head.id, name: 'join', label: 'Workflow join', state: 'waiting', subject: 'bob', reason: 'why' },
      ],
    })
    expect((await send('GET', '/requests')).body.requests).toHaveLength(1)
    expect((await send('GET', '/requests?about=me')).body.requests).toMatchObject([{ id: aboutMe.head.id }])
    expect((await send('GET', '/requests?state=failed&state=cancelled')).body.requests).toEqual([])
    for (const query of ['?state=done', '?about=bob', '?requestor=bob', '?limit=0', '?about=me&about=mine']) {
      await expect(send('GET', `/requests${query}`)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })

  test('have a timeline and approvals, without internal errors', async () => {
    const { send, mine } = await open()
    const { body, text } = await send('GET', `/requests/${mine.head.id}`)
    expect(body).toMatchObject({
      id: mine.head.id,
      mayCancel: true,
      timeline: [
        { id: 1, taskType: 'provision', outcome: 'failed', attempt: 1 },
        { id: 2, outcome: 'next' },
      ],
      approvals: [{ id: 'a1', status: 'denied', approvers: ['boss'], decision: { by: 'boss', comment: 'no' } }],
    })
    expect(text).not.toContain('ECONNREFUSED')
  })

  test('that a user submitted in the name of another are shown to both, with both', async () => {
    const { send, runs } = await open()
    const { id } = runs.add({ head: { requester: 'ann', caller: 'svc', subject: 'carol' }, state: 'waiting' }).head
    for (const who of [ann, someone('svc')]) {
      const { body } = await send('GET', `/requests/${id}`, undefined, who)
      expect(body).toMatchObject({ requestor: 'ann', caller: 'svc', mayCancel: true })
    }
    expect((await send('GET', '/requests')).body.requests[0]).toMatchObject({ requestor: 'ann', caller: 'svc' })
    await expect(send('GET', `/requests/${id}`, undefined, someone('bob'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('that are queued say why: a failed attempt, or another request about the same user', async () => {
    const { send, runs } = await open()
    const shown = async (id: string) => (await send('GET', `/requests/${id}`)).body
    const due = new Date('2030-01-02T00:05:00Z')
    const retried = runs.add({ head: { requester: 'ann', subject: 'dora' }, attempt: 2, due })
    expect(await shown(retried.head.id)).toMatchObject({ retry: { attempt: 3, at: due.toISOString() } })
    expect(await shown(retried.head.id)).not.toHaveProperty('behind')
    const queued = runs.add({ head: { requester: 'ann', subject: 'dora' } })
    expect(await shown(queued.head.id)).toMatchObject({ behind: { id: retried.head.id, label: 'w' } })
    expect(await shown(queued.head.id)).not.toHaveProperty('retry')
    runs.add({ head: { requester: 'hr', subject: 'eve', workflow: 'leave' }, state: 'running' })
    const hidden = runs.add({ head: { requester: 'ann', subject: 'eve' } })
    expect((await shown(hidden.head.id)).behind).toEqual({})
    const denied = runs.add({ head: { requester: 'ann', subject: 'dora' }, state: 'denied' })
    expect(await shown(denied.head.id)).not.toHaveProperty('behind')
    expect((await send('GET', '/requests?state=denied')).body.requests).toMatchObject([{ id: denied.head.id }])
  })

  test('show the requested expiry date', async () => {
    const { send, runs, mine } = await open()
    const {
      head: { id },
    } = runs.add({ head: { requester: 'ann', accessEnds: new Date('2030-02-01T00:00:00Z') } })
    expect((await send('GET', `/requests/${id}`)).body.accessEnds).toBe('2030-02-01T00:00:00.000Z')
    expect((await send('GET', `/requests/${mine.head.id}`)).body).not.toHaveProperty('accessEnds')
    const { requests } = (await send('GET', '/requests')).body
    expect(requests.map(({ accessEnds }: Record<string, unknown>) => accessEnds)).toEqual([
      '2030-02-01T00:00:00.000Z',
      undefined,
    ])
  })

  test('show what the access is now, in lists too', async () => {
    const expires = new Date('2030-02-01T00:00:00Z')
    const asked: (readonly string[])[] = []
    const ofRuns = async (runs: readonly string[]) => {
      asked.push(runs)
      return new Map(runs.map((run) => [run, { state: 'ended', expires, ended: expires, givenBack: true }] as const))
    }
    const { send, runs } = await openMain({ approvals, grants: { ofRuns } })
    const ids = ['bob', 'carol'].map((subject) => runs.add({ head: { requester: 'ann', subject } }).head.id)
    const at = expires.toISOString()
    const access = { state: 'ended', expires: at, ended: at, givenBack: true }
    expect((await send('GET', `/requests/${ids[0]}`)).body).toMatchObject({ access })
    expect((await send('GET', '/requests')).body.requests).toMatchObject([{ access }, { access }])
    expect(asked.map((each) => each.toSorted())).toEqual([[ids[0]], ids.toSorted()])
  })

  test('a request that was stopped, or continues, has no error', async () => {
    const { send, runs } = await open()
    const incident = { task: 'w:0', code: 'TARGET_FAILED', message: 'm' }
    const failureIn = async (state: RunState) => {
      const { head } = runs.add({ head: { requester: 'ann' }, state, incident })
      return (await send('GET', `/requests/${head.id}`)).body.failure?.code
    }
    for (const state of ['incident', 'failed'] as const) expect(await failureIn(state)).toBe('TARGET_FAILED')
    for (const state of ['cancelled', 'ready', 'completed'] as const) expect(await failureIn(state)).toBeUndefined()
  })

  test('an incident shows only its code', async () => {
    const { send, runs } = await open()
    const stuck = runs.add({
      head: { requester: 'ann' },
      state: 'incident',
      incident: { task: 'w:0', code: 'TARGET_FAILED', message: 'password of svc-7 expired' },
    })
    const { body, text } = await send('GET', `/requests/${stuck.head.id}`)
    expect(body.failure).toEqual({ code: 'TARGET_FAILED', text: 'A downstream system refused the change.' })
    expect(text).not.toContain('svc-7')
  })

  test('from before identities are not those of a caller without an entry who has the same login', async () => {
    const { send, runs, mine, aboutMe } = await open()
    const external = { ...ann, identity: issuerIdentity('https://idp', 'ann') }
    for (const query of ['', '?about=me']) {
      expect((await send('GET', `/requests${query}`, undefined, external)).body.requests).toEqual([])
    }
    for (const {
      head: { id },
    } of [mine, aboutMe]) {
      await expect(send('GET', `/requests/${id}`, undefined, external)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(send('POST', `/requests/${id}/cancel`, {}, external)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
    expect(runs.interventions).toEqual([])
  })

  test('of another user do not exist', async () => {
    const { send, theirs } = await open()
    for (const id of [theirs.head.id, newId(), 'x', '__proto__']) {
      await expect(send('GET', `/requests/${id}`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(send('POST', `/requests/${id}/cancel`, {})).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  })
})

describe('cancelling', () => {
  test("ends a request that has changed nothing yet, in the caller's own name", async () => {
    const { send, runs, mine } = await open()
    expect((await send('POST', `/requests/${mine.head.id}/cancel`, { reason: 'mistake' })).body.state).toBe('cancelled')
    expect(runs.interventions).toEqual([
      { action: 'cancel', id: mine.head.id, fence: 1, by: 'ann', onlyUntouched: true, reason: 'mistake' },
    ])
  })

  test('is for the requester, not for the subject', async () => {
    const { send, runs, aboutMe, mine } = await open()
    expect((await send('GET', `/requests/${aboutMe.head.id}`)).body.mayCancel).toBe(false)
    await expect(send('POST', `/requests/${aboutMe.head.id}/cancel`, {})).rejects.toMatchObject({
      code: 'ACCESS_DENIED',
    })
    await expect(send('POST', `/requests/${mine.head.id}/cancel`, {}, someone('bob'))).rejects.toMatchObject({
      code: 'ACCESS_DENIED',
    })
    expect(runs.interventions).toEqual([])
  })

  test('is too late once a target was changed', async () => {
    const { send, runs } = await open()
    const { id } = runs.add({ head: { requester: 'ann' }, state: 'waiting', touched: true }).head
    expect((await send('GET', `/requests/${id}`)).body.mayCancel).toBe(false)
    await expect(send('POST', `/requests/${id}/cancel`, {})).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('accepts JSON and no unknown members', async () => {
    const { send, mine } = await open()
    await expect(send('POST', `/requests/${mine.head.id}/cancel`, { by: 'boss' })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
    await expect(send('POST', `/requests/${mine.head.id}/cancel`, '{}', ann, 'text/plain')).rejects.toMatchObject({
      code: 'UNSUPPORTED_MEDIA_TYPE',
    })
  })
})

describe('the question of an approver', () => {
  const question = { id: 'm', kind: 'question', by: byLogin('boss'), at: new Date(2000), text: 'Which?' } as const

  async function asked(state: RunState = 'waiting') {
    const answers: unknown[] = []
    const opened = await openMain({
      approvals: {
        ...approvals,
        messagesOf: async () => [question],
        answer: async (user, answer) => void answers.push([user.login, answer]),
      },
    })
    const mine = opened.runs.add({ head: { workflow: 'join', requester: 'ann', subject: 'bob' }, state })
    const aboutMe = opened.runs.add({ head: { workflow: 'join', requester: 'boss', subject: 'ann' }, state })
    return { ...opened, answers, mine, aboutMe }
  }

  test('is in the request, and the requester answers it', async () => {
    const { send, answers, mine } = await asked()
    expect((await send('GET', `/requests/${mine.head.id}`)).body).toMatchObject({
      mayAnswer: true,
      messages: [{ kind: 'question', by: 'boss', text: 'Which?', at: question.at.toISOString() }],
    })
    expect((await send('POST', `/requests/${mine.head.id}/answers`, { text: 'The first' })).status).toBe(204)
    expect(answers).toMatchObject([['ann', { run: mine.head.id, text: 'The first' }]])
  })

  test('is not answered by others, nor after the request has ended', async () => {
    const { send, answers, aboutMe } = await asked()
    expect((await send('GET', `/requests/${aboutMe.head.id}`)).body.mayAnswer).toBe(false)
    const path = `/requests/${aboutMe.head.id}/answers`
    await expect(send('POST', path, { text: 'x' })).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    await expect(send('POST', path, { text: 'x' }, someone('eve'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(send('POST', path, { text: '' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    const { send: later, mine } = await asked('denied')
    expect((await later('GET', `/requests/${mine.head.id}`)).body.mayAnswer).toBe(false)
    expect(answers).toEqual([])
  })
})

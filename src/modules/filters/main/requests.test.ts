import { describe, expect, test } from 'vitest'
import { issuerIdentity } from '#identity/identity.ts'
import { newId } from '#kernel/ids.ts'
import { ann, openMain, someone } from '#testing/main-fixture.ts'
import { noApprovals } from '#testing/no-approvals.ts'
import { byLogin, someApproval } from '#testing/some-approval.ts'

const approvals = {
  ...noApprovals,
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
  const mine = opened.runs.add({ name: 'join', requestor: 'ann', subject: 'bob', state: 'waiting', reason: 'why' })
  const theirs = opened.runs.add({ name: 'join', requestor: 'bob', subject: 'carol' })
  const aboutMe = opened.runs.add({ name: 'join', requestor: 'boss', subject: 'ann', state: 'completed' })
  return { ...opened, mine, theirs, aboutMe }
}

describe('my requests', () => {
  test('are those I submitted, or those about me', async () => {
    const { send, mine, aboutMe } = await open()
    expect((await send('GET', '/requests')).body).toMatchObject({
      requests: [
        { id: mine.id, name: 'join', label: 'Workflow join', state: 'waiting', subject: 'bob', reason: 'why' },
      ],
    })
    expect((await send('GET', '/requests')).body.requests).toHaveLength(1)
    expect((await send('GET', '/requests?about=me')).body.requests).toMatchObject([{ id: aboutMe.id }])
    expect((await send('GET', '/requests?state=failed&state=cancelled')).body.requests).toEqual([])
    for (const query of ['?state=done', '?about=bob', '?requestor=bob', '?limit=0', '?about=me&about=mine']) {
      await expect(send('GET', `/requests${query}`)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })

  test('have a timeline and approvals, without internal errors', async () => {
    const { send, mine } = await open()
    const { body, text } = await send('GET', `/requests/${mine.id}`)
    expect(body).toMatchObject({
      id: mine.id,
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
    const { id } = runs.add({ requestor: 'ann', caller: 'svc', subject: 'carol', state: 'waiting' })
    for (const who of [ann, someone('svc')]) {
      const { body } = await send('GET', `/requests/${id}`, undefined, who)
      expect(body).toMatchObject({ requestor: 'ann', caller: 'svc', mayCancel: true })
    }
    expect((await send('GET', '/requests')).body.requests[0]).toMatchObject({ requestor: 'ann', caller: 'svc' })
    await expect(send('GET', `/requests/${id}`, undefined, someone('bob'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('show the requested expiry date', async () => {
    const { send, runs, mine } = await open()
    const { id } = runs.add({ requestor: 'ann', accessEnds: new Date('2030-02-01T00:00:00Z') })
    expect((await send('GET', `/requests/${id}`)).body.accessEnds).toBe('2030-02-01T00:00:00.000Z')
    expect((await send('GET', `/requests/${mine.id}`)).body).not.toHaveProperty('accessEnds')
    const { requests } = (await send('GET', '/requests')).body
    expect(requests.map(({ accessEnds }: Record<string, unknown>) => accessEnds)).toEqual([
      '2030-02-01T00:00:00.000Z',
      undefined,
    ])
  })

  test('an incident shows only its code', async () => {
    const { send, runs } = await open()
    const stuck = runs.add({
      requestor: 'ann',
      state: 'incident',
      incident: { task: 'w:0', code: 'TARGET_FAILED', message: 'password of svc-7 expired' },
    })
    const { body, text } = await send('GET', `/requests/${stuck.id}`)
    expect(body.failure).toEqual({ code: 'TARGET_FAILED', text: 'A downstream system refused the change.' })
    expect(text).not.toContain('svc-7')
  })

  test('from before identities are not those of a caller without an entry who has the same login', async () => {
    const { send, runs, mine, aboutMe } = await open()
    const external = { ...ann, identity: issuerIdentity('https://idp', 'ann') }
    for (const query of ['', '?about=me']) {
      expect((await send('GET', `/requests${query}`, undefined, external)).body.requests).toEqual([])
    }
    for (const { id } of [mine, aboutMe]) {
      await expect(send('GET', `/requests/${id}`, undefined, external)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(send('POST', `/requests/${id}/cancel`, {}, external)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
    expect(runs.interventions).toEqual([])
  })

  test('of another user do not exist', async () => {
    const { send, theirs } = await open()
    for (const id of [theirs.id, newId(), 'x', '__proto__']) {
      await expect(send('GET', `/requests/${id}`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(send('POST', `/requests/${id}/cancel`, {})).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  })
})

describe('cancelling', () => {
  test("ends a request that has changed nothing yet, in the caller's own name", async () => {
    const { send, runs, mine } = await open()
    expect((await send('POST', `/requests/${mine.id}/cancel`, { reason: 'mistake' })).body.state).toBe('cancelled')
    expect(runs.interventions).toEqual([
      { action: 'cancel', id: mine.id, fence: 1, by: 'ann', onlyUntouched: true, reason: 'mistake' },
    ])
  })

  test('is for the requester, not for the subject', async () => {
    const { send, runs, aboutMe, mine } = await open()
    expect((await send('GET', `/requests/${aboutMe.id}`)).body.mayCancel).toBe(false)
    await expect(send('POST', `/requests/${aboutMe.id}/cancel`, {})).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    await expect(send('POST', `/requests/${mine.id}/cancel`, {}, someone('bob'))).rejects.toMatchObject({
      code: 'ACCESS_DENIED',
    })
    expect(runs.interventions).toEqual([])
  })

  test('is too late once a target was changed', async () => {
    const { send, runs } = await open()
    const { id } = runs.add({ requestor: 'ann', state: 'waiting', touched: true })
    expect((await send('GET', `/requests/${id}`)).body.mayCancel).toBe(false)
    await expect(send('POST', `/requests/${id}/cancel`, {})).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('accepts JSON and no unknown members', async () => {
    const { send, mine } = await open()
    await expect(send('POST', `/requests/${mine.id}/cancel`, { by: 'boss' })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
    await expect(send('POST', `/requests/${mine.id}/cancel`, '{}', ann, 'text/plain')).rejects.toMatchObject({
      code: 'UNSUPPORTED_MEDIA_TYPE',
    })
  })
})

import { describe, expect, test } from 'vitest'
import type { UserRef } from '#identity/identity.ts'
import { newId } from '#kernel/ids.ts'
import type { Grant } from '#sdk/workflow/grant.ts'
import { ann, type MainOptions, openMain, outsider, someone } from '#testing/modules/main-fixture.ts'
import { someApproval } from '#testing/workflows/some-approval.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import type { LatestMessage } from '#workflows/record/approval.ts'

const now = Date.parse('2030-01-10T00:00:00Z')
const day = 24 * 3600_000
const ago = (days: number) => new Date(now - days * day)
const ahead = (days: number) => new Date(now + days * day)

const grant = (id: string, granted: Date, expires: Date): Grant => ({
  id,
  target: 'people',
  subject: 'ann',
  kind: 'group',
  name: `group-${id}`,
  state: 'active',
  granted,
  expires,
})

async function open(options: Partial<MainOptions> = {}) {
  const approval = someApproval({ id: newId(), label: 'Access for bob', run: { subject: 'bob' }, opened: ago(2) })
  const approvals = {
    latestMessages: async () => new Map(),
    list: async ({ login }: { login: string }) => ({ approvals: login === 'ann' ? [approval] : [] }),
  }
  const grants = { ofSubject: async () => [grant('g1', ago(20), ahead(3)), grant('g2', ago(1), ahead(9))] }
  const opened = await openMain({ approvals, grants, now: () => now, ...options })
  const done = opened.runs.add({ head: { workflow: 'join', requester: 'ann' }, state: 'completed', ended: ago(1) })
  return { ...opened, approval, done }
}

const bob: UserRef = { identity: someone('bob').identity, login: 'bob' }

const idsOf = (notifications: readonly { readonly id: string }[]): string[] => notifications.map(({ id }) => id)

describe('notifications', () => {
  test('are open approvals, outcomes of requests and access that expires soon, latest first', async () => {
    const { send, approval, done } = await open()
    const { body } = await send('GET', '/notifications')
    expect(body).toEqual({
      notifications: [
        {
          kind: 'request',
          id: `request:${done.head.id}:completed:${done.fence}`,
          at: ago(1).toISOString(),
          read: false,
          request: done.head.id,
          label: 'Workflow join',
          state: 'completed',
        },
        {
          kind: 'approval',
          id: `approval:${approval.id}`,
          at: ago(2).toISOString(),
          read: false,
          approval: approval.id,
          label: 'Access for bob',
          displayName: 'bob Doe',
        },
        {
          kind: 'access',
          id: `access:g1:${ahead(3).getTime()}`,
          at: new Date(ahead(3).getTime() - (23 * day) / 4).toISOString(),
          read: false,
          target: 'people',
          name: 'group-g1',
          expires: ahead(3).toISOString(),
        },
      ],
      unread: 3,
    })
  })

  test('name every outcome as it is, and nothing that goes on', async () => {
    const { send, runs } = await open()
    const states = ['denied', 'expired', 'failed', 'cancelled'] as const
    for (const state of states) runs.add({ head: { requester: 'ann' }, state, ended: ago(3) })
    runs.add({ head: { requester: 'ann' }, state: 'incident', updated: ago(3) })
    for (const state of ['ready', 'running', 'waiting'] as const) runs.add({ head: { requester: 'ann' }, state })
    runs.add({ head: { requester: 'ann' }, state: 'completed', ended: ago(91) })
    runs.add({ head: { requester: 'bob', subject: 'ann' }, state: 'completed', ended: ago(1) })
    const { notifications } = (await send('GET', '/notifications')).body
    const shown = notifications.flatMap(({ state }: { state?: string }) => state ?? [])
    expect(shown.sort()).toEqual(['cancelled', 'completed', 'denied', 'expired', 'failed', 'incident'])
  })

  test('are only those of the caller', async () => {
    const { send } = await open()
    const { body } = await send('GET', '/notifications', undefined, outsider('ann'))
    expect(body).toEqual({ notifications: [expect.objectContaining({ kind: 'approval' })], unread: 1 })
    const others = await send('GET', '/notifications', undefined, someone('carol'))
    expect(others.body.notifications.filter(({ kind }: { kind: string }) => kind !== 'access')).toEqual([])
  })

  test('show the submitted login of a registration, not the name of a user who has it by now', async () => {
    const list = async () => ({ approvals: [someApproval({ id: newId(), run: { subject: 'bob' }, newAccount: true })] })
    const { send } = await open({ approvals: { list, latestMessages: async () => new Map() } })
    const { notifications } = (await send('GET', '/notifications')).body
    expect(notifications.find(({ kind }: { kind: string }) => kind === 'approval').displayName).toBe('bob')
  })

  test('are questions about requests of the caller, until they are answered', async () => {
    const message = { id: newId(), kind: 'question', by: bob, at: ago(0), askedBy: bob } as const
    const latest = new Map<string, LatestMessage>()
    const list = async () => ({ approvals: [] })
    const { send, runs } = await open({ approvals: { list, latestMessages: async () => latest } })
    const run = runs.add({ head: { workflow: 'join', requester: 'ann' }, state: 'waiting' })
    const kinds = async () =>
      (await send('GET', '/notifications')).body.notifications.map(({ kind }: { kind: string }) => kind)
    expect(await kinds()).toEqual(['request', 'access'])
    latest.set(run.head.id, message)
    const { notifications, unread } = (await send('GET', '/notifications')).body
    expect(notifications[0]).toEqual({
      kind: 'question',
      id: `question:${message.id}`,
      at: ago(0).toISOString(),
      read: false,
      request: run.head.id,
      label: 'Workflow join',
      displayName: 'bob Doe',
    })
    expect(unread).toBe(3)
    latest.set(run.head.id, { ...message, kind: 'answer', by: userRef('ann') })
    expect(await kinds()).toEqual(['request', 'access'])
  })

  test('are answers to questions of the caller about open approvals', async () => {
    const approval = someApproval({ id: newId(), label: 'Access for bob', run: { subject: 'bob' }, opened: ago(2) })
    const answer = { id: newId(), kind: 'answer', by: bob, at: ago(0) } as const
    const answers = async (askedBy: UserRef) => {
      const latest = new Map([[approval.run.id, { ...answer, askedBy }]])
      const list = async () => ({ approvals: [approval] })
      const { send } = await open({ approvals: { list, latestMessages: async () => latest } })
      const { notifications } = (await send('GET', '/notifications')).body
      return notifications.filter(({ kind }: { kind: string }) => kind === 'answer')
    }
    expect(await answers({ identity: ann.identity, login: 'ann' })).toMatchObject([
      { id: `answer:${answer.id}`, approval: approval.id, label: 'Access for bob', displayName: 'bob Doe' },
    ])
    expect(await answers(userRef('carol'))).toEqual([])
  })

  test('have no approvals where approvals are off', async () => {
    const { send } = await open({ approvals: {}, params: { enableApprovals: 'false' } })
    expect((await send('GET', '/notifications')).body.unread).toBe(2)
  })

  test('are counted without being listed, and without a search of the directory', async () => {
    const { send, host } = await open()
    const searches = host.searches.length
    expect((await send('GET', '/notifications?limit=0')).body).toEqual({ notifications: [], unread: 3 })
    const forNames = host.searches.slice(searches).filter(({ filter }) => filter.kind === 'or')
    expect(forNames).toEqual([])
    expect((await send('GET', '/notifications?limit=1')).body.notifications).toHaveLength(1)
    for (const query of ['?limit=201', '?limit=-1', '?limit=x', '?all=1']) {
      await expect(send('GET', `/notifications${query}`)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })

  test('are at most 200', async () => {
    const { send, runs } = await open()
    for (let i = 0; i < 250; i++) runs.add({ head: { requester: 'ann' }, state: 'completed', ended: ago(1) })
    const { notifications, unread } = (await send('GET', '/notifications')).body
    expect([notifications.length, unread]).toEqual([200, 200])
  })
})

describe('reading notifications', () => {
  test('marks those that are given and current, for the caller alone', async () => {
    const { send, approval } = await open()
    const ids = [`approval:${approval.id}`, 'approval:unknown']
    const { body } = await send('PUT', '/notifications/read', { ids })
    expect(body.unread).toBe(2)
    const read = body.notifications.filter((one: { read: boolean }) => one.read)
    expect(idsOf(read)).toEqual([`approval:${approval.id}`])
    expect((await send('GET', '/notifications?limit=0')).body.unread).toBe(2)
    expect((await send('GET', '/notifications?limit=0', undefined, outsider('ann'))).body.unread).toBe(1)
  })

  test('forgets what is no longer current, so that a repeated incident is new', async () => {
    const { send, runs, memory } = await open()
    const run = runs.add({ head: { requester: 'ann' }, state: 'incident', updated: ago(1) })
    const all = async () => idsOf((await send('GET', '/notifications')).body.notifications)
    await send('PUT', '/notifications/read', { ids: await all() })
    runs.add({ ...run, state: 'incident', fence: run.fence + 2, updated: ago(0) })
    const { notifications } = (await send('GET', '/notifications')).body
    expect(notifications[0]).toMatchObject({ request: run.head.id, state: 'incident', read: false })
    await send('PUT', '/notifications/read', { ids: await all() })
    expect((await memory.readNotifications({ ...ann, login: 'ann' })).size).toBe(4)
  })

  test('rejects an invalid body', async () => {
    const { send } = await open()
    for (const body of [
      {},
      { ids: [] },
      { ids: [''] },
      { ids: ['\0'] },
      { ids: Array(201).fill('x') },
      { all: true },
    ]) {
      await expect(send('PUT', '/notifications/read', body)).rejects.toMatchObject({ status: 400 })
    }
  })

  test('is not needed for a request that the caller cancelled', async () => {
    const { send, runs } = await open()
    const { unread } = (await send('GET', '/notifications?limit=0')).body
    const { id } = runs.add({ head: { requester: 'ann' }, state: 'waiting' }).head
    await send('POST', `/requests/${id}/cancel`, {})
    const { body } = await send('GET', '/notifications')
    expect(body.unread).toBe(unread)
    expect(body.notifications.find((one: { request?: string }) => one.request === id)).toMatchObject({
      state: 'cancelled',
      read: true,
    })
  })
})

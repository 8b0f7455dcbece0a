import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { ClusterObject } from '#protocols/kubernetes/cluster.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { Target } from '#sdk/target/target.ts'
import { noSessions } from '#testing/login/no-sessions.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import endSessions from './end-sessions.ts'

const object = (dn: unknown, creationTimestamp?: string): ClusterObject => ({
  metadata: {
    name: 'e1',
    uid: 'u1',
    resourceVersion: '1',
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
  },
  content: { spec: { dn } },
})

async function open() {
  const issues = noIssues()
  const params = fakeParams({ k8sTarget: 'k8s', namespace: 'openunison' })
  const prepared = endSessions.prepare(params, issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const state = { objects: [] as ClusterObject[], away: false, now: Date.parse('2026-05-01T10:00:00Z'), lists: 0 }
  const ended: string[] = []
  const list = async (resource: unknown) => {
    state.lists++
    if (state.away) throw new GatewayError('TARGET_UNREACHABLE', 'away')
    expect(resource).toMatchObject({ group: 'openunison.tremolo.io', plural: 'endsessions', namespace: 'openunison' })
    return state.objects
  }
  const host: FilterHost = {
    ...fakeModuleHost(),
    clock: () => new Date(state.now),
    targets: { get: () => ({ objects: { list } }) as unknown as Target },
    sessions: { ...noSessions, end: async (_user, id) => ended.push(id) > 0 },
  }
  const filter = await prepared.create(host)
  const ask = async (
    authenticated: string | undefined,
    accept = 'application/json',
    { path = '/scale/main', dn = 'uid=ada,ou=people,o=Tremolo' } = {},
  ) =>
    filter.handle(
      {
        request: fakeRequest({ url: `https://portal.test${path}?a=b`, headers: { accept } }),
        application: 'scale',
        mount: '/scale',
        pathInfo: '/main',
        subject: subject(dn),
        ...(authenticated === undefined
          ? {}
          : { session: { id: 's1', authenticated: new Date(authenticated) } as never }),
      },
      async () => ({ status: 200, headers: {}, body: 'next' }),
    )
  return { state, ended, ask }
}

const early = '2026-05-01T09:00:00Z'

test('a session from before the object ends, and a later one does not', async () => {
  const { state, ended, ask } = await open()
  expect(await ask(early)).toMatchObject({ body: 'next' })
  state.objects = [object('UID=Ada,ou=people,o=Tremolo', '2026-05-01T09:30:00Z'), object('uid=eve,o=Tremolo', early)]
  state.now += 6_000
  await expect(ask(early)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  expect(ended).toEqual(['s1'])
  expect(await ask(early, 'text/html')).toMatchObject({
    status: 303,
    headers: { location: 'https://portal.test/scale/main?a=b' },
  })
  expect(await ask('2026-05-01T09:30:00.400Z').catch((error: GatewayError) => error.code)).toBe('AUTH_REQUIRED')
  expect(await ask('2026-05-01T09:31:00Z')).toMatchObject({ body: 'next' })
})

test('a path of two slashes does not lead to another host', async () => {
  const { state, ask } = await open()
  state.objects = [object('uid=ada,ou=people,o=Tremolo', '2026-05-01T09:30:00Z')]
  const { headers } = await ask(early, 'text/html', { path: '//evil.test/' })
  expect(new URL(String(headers['location']), 'https://portal.test/scale/').host).toBe('portal.test')
})

test.each(['UID=ADA , OU=people,o=tremolo', 'uid=\\61da,ou=people,o=Tremolo', 'uid=#0403616461,ou=people,o=Tremolo'])(
  '%s names the same user',
  async (written) => {
    const { state, ask } = await open()
    state.objects = [object(written, '2026-05-01T09:30:00Z')]
    await expect(ask(early)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  },
)

test('the order and white space within a name do not matter', async () => {
  const { state, ask } = await open()
  state.objects = [object('cn=Ada  King+uid=ada,o=Tremolo', '2026-05-01T09:30:00Z')]
  const ada = { dn: 'uid=ada+cn=ada king,o=Tremolo' }
  await expect(ask(early, undefined, ada)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
})

test('objects are read at most every five seconds, and callers without a session are not concerned', async () => {
  const { state, ask } = await open()
  expect(await ask(undefined)).toMatchObject({ body: 'next' })
  expect(state.lists).toBe(0)
  await Promise.all([ask(early), ask(early), ask(early)])
  await ask(early)
  expect(state.lists).toBe(1)
  state.now += 6_000
  await ask(early)
  expect(state.lists).toBe(2)
})

test('no session passes while the objects were never read, or not for a minute', async () => {
  const { state, ask } = await open()
  state.away = true
  await expect(ask(early)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  state.away = false
  state.objects = [object('uid=eve,o=Tremolo', '2026-05-01T09:30:00Z')]
  expect(await ask(early)).toMatchObject({ body: 'next' })
  state.away = true
  state.now += 30_000
  expect(await ask(early)).toMatchObject({ body: 'next' })
  state.now += 31_000
  await expect(ask(early)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
})

test('an object that is not valid ends nothing and hides no other', async () => {
  const { state, ask } = await open()
  state.objects = [
    object(undefined, '2026-05-01T09:30:00Z'),
    object('not a name', '2026-05-01T09:30:00Z'),
    object('uid=ada,ou=people,o=Tremolo'),
  ]
  expect(await ask(early)).toMatchObject({ body: 'next' })
  state.objects = [...state.objects, object('uid=ada,ou=people,o=Tremolo', '2026-05-01T09:30:00Z')]
  state.now += 6_000
  await expect(ask(early)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
})

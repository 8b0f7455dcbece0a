import { describe, expect, test } from 'vitest'
import type { CookieConfig } from '#config/configuration/configuration.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { issuerIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { Sessions } from '#requests/sessions/sessions.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { fakeSecretBox } from '#testing/login/fake-login-services.ts'
import { memorySessionStore } from '#testing/login/memory-session-store.ts'
import { subject } from '#testing/login/subjects.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import executeWorkflow from './execute-workflow.ts'

const documented = { workflowName: 'jitdbwf', uidAttributeName: 'uid' }
const entry = { dn: Dn.parse('uid=ada,ou=people,o=Tremolo'), attributes: Attributes.from({ uid: ['ada'] }) }
const own: Subject = {
  ...subject('uid=ada,ou=people,o=Tremolo', { uid: ['ada'], mail: ['ada@corp.test'], userPassword: ['x'] }),
  identity: directoryEntry(entry).identity,
}

const cookies: CookieConfig = {
  name: 'session',
  domain: undefined,
  secure: true,
  httpOnly: true,
  sameSite: 'Lax',
  idleSeconds: 900,
  logoutUri: '/logout',
}
const portal = { name: 'portal', cookies }

async function open(params: Record<string, string> = documented) {
  const issues = noIssues()
  const context = fakeParseContext()
  const prepared = executeWorkflow.prepare(fakeParams(params), issues, context)
  expect(issueTexts(issues.list)).toEqual([])
  expect(context.references).toMatchObject([{ kind: 'workflow', name: 'jitdbwf' }])
  const calls: WorkflowCall[] = []
  const state: { failure?: GatewayError } = {}
  const host = {
    ...fakeModuleHost({ entries: [entry], loginAttributes: new Set(['uid']) }),
    workflows: {
      run: async (call: WorkflowCall) => {
        calls.push(call)
        if (state.failure !== undefined) throw state.failure
        return { id: 'r', status: 'completed', changes: 0 } as const
      },
    },
  }
  const filter = await prepared.create(host)
  const sessions = new Sessions(memorySessionStore(), systemClock, fakeSecretBox())
  const request = fakeRequest({ url: 'https://portal.test/' })
  const { handle: session } = (await sessions.start(portal, { request, subject: own, before: undefined })).session
  const send = (caller: Subject, withSession = true) =>
    filter.handle(
      {
        request: fakeRequest({}),
        application: 'a',
        mount: '',
        pathInfo: '',
        subject: caller,
        ...(withSession ? { session } : {}),
      },
      async () => ({ status: 204, headers: {} }),
    )
  return { calls, state, send }
}

describe('filters.ExecuteWorkflow', () => {
  test('runs the workflow for the caller once in a session, then the filters after it', async () => {
    const { send, calls } = await open()
    expect([(await send(own)).status, (await send(own)).status]).toEqual([204, 204])
    expect(calls).toMatchObject([
      {
        head: { workflow: 'jitdbwf', requester: 'ada', who: { requester: own.identity, subject: own.identity } },
        user: { userID: 'ada', groups: [] },
        bound: { attributes: ['uid'] },
        keepGroups: true,
      },
    ])
    expect(calls[0]?.user.attributes.toObject()).toEqual({ uid: ['ada'], mail: ['ada@corp.test'] })
    await send(own, false)
    await send(own, false)
    expect(calls).toHaveLength(3)
  })

  test('requests of a session at the same time wait for one run', async () => {
    const { send, calls } = await open()
    const answers = await Promise.all(Array.from({ length: 6 }, () => send(own)))
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 204))
    expect(calls).toHaveLength(1)
  })

  test('a run that fails ends the request, and the next one tries again', async () => {
    const { send, calls, state } = await open()
    state.failure = new GatewayError('WORKFLOW_FAILED', 'no')
    await expect(send(own)).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
    delete state.failure
    expect((await send(own)).status).toBe(204)
    expect(calls).toHaveLength(2)
  })

  const outside = { ...own, identity: issuerIdentity('https://out.test', '1') }
  test.each<[string, Subject, Record<string, string>]>([
    ['is not logged in', { ...own, level: 0 }, documented],
    ['has no login', subject('uid=x,o=Tremolo'), documented],
    ['has two', subject('uid=x,o=Tremolo', { uid: ['a', 'b'] }), documented],
    ['has the login of another user', outside, documented],
    [
      'has a mail address that is not verified',
      { ...outside, uid: 'new@corp.test', attributes: Attributes.from({ mail: ['new@corp.test'] }).claimed() },
      { ...documented, uidAttributeName: 'mail' },
    ],
  ])('a caller who %s gets 403, and nothing runs', async (_, caller, params) => {
    const { send, calls } = await open(params)
    await expect(send(caller)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    expect(calls).toEqual([])
  })

  test('a caller whom the directory does not know yet may be created under their own login', async () => {
    const { send, calls } = await open()
    await send({ ...subject('sub=new,ou=oidc,o=Tremolo', { uid: ['new'] }), identity: outside.identity, uid: 'new' })
    expect(calls.map(({ user }) => user.userID)).toEqual(['new'])
  })
})

import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { LoginGuard } from '#sdk/auth/login.ts'
import { fakeDirectory } from '#testing/login/fake-directory.ts'
import { openGuard } from '#testing/login/login-attempt.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import basicAuth from './basic-auth.ts'

const documented = { realmName: 'k8s-api', uidAttr: 'uid' }
const challenge = { 'www-authenticate': 'Basic realm="k8s-api", charset="UTF-8"' }
const encoded = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`

function prepare(params: ParamValues = documented) {
  const issues = noIssues()
  const prepared = basicAuth.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
  return { prepared, problems: issueTexts(issues.list) }
}

async function open(failure?: GatewayError) {
  const binds: string[] = []
  const now = { at: 0 }
  const people = ['ada', 'off'].map((uid) => ({
    dn: Dn.parse(`uid=${uid},ou=people,o=Tremolo`),
    attributes: Attributes.from({ uid: [uid], userPassword: ['x'], ...(uid === 'off' ? { active: ['false'] } : {}) }),
  }))
  const directory = fakeDirectory({
    search: async ({ filter, limit }) => {
      if (failure !== undefined) throw failure
      const found = people.filter(({ attributes }) => matches(filter, attributes))
      return found.slice(0, limit).map(directoryEntry)
    },
    isMember: async () => false,
  })
  const bind = async (dn: Dn, password: string) => {
    binds.push(dn.toString())
    return /^uid=(?:ada|off),/.test(dn.toString()) && password === 'right: horsé'
  }
  const host = fakeModuleHost({ directory: { ...directory, bind }, now: () => now.at })
  const mechanism = await prepare().prepared.create(host)
  const guard = openGuard()
  const send = (
    authorization: string | undefined,
    {
      url = 'https://api.test/',
      method = 'GET',
      headers = {},
      by = guard as LoginGuard | 'none',
      isLocal = false,
    } = {},
  ) => {
    const all = { ...headers, ...(authorization === undefined ? {} : { authorization }) }
    const request = { ...fakeRequest({ url, method, headers: all }), isLocal }
    const guarded = by === 'none' ? {} : { guard: by }
    return mechanism.begin({ request, subject: undefined, root: 'o=Tremolo', ...guarded })
  }
  return { send, binds, guard, now }
}

const right = encoded('ada:right: horsé')

describe('auth.BasicAuth', () => {
  test('accepts a user of the directory, without their password hash', async () => {
    const { send, guard } = await open()
    const outcome = await send(right)
    expect(outcome).toMatchObject({ kind: 'authenticated', subject: { uid: 'ada' } })
    if (outcome.kind !== 'authenticated') throw new Error(outcome.kind)
    expect(outcome.subject.attributes.has('userPassword')).toBe(false)
    expect(guard.tries).toHaveLength(1)
  })

  test('challenges a request without a credential, and counts no try', async () => {
    const { send, guard } = await open()
    const noCredential = { kind: 'rejected', headers: challenge, noCredential: true }
    for (const header of [undefined, 'Bearer abc', '']) expect(await send(header)).toMatchObject(noCredential)
    expect(await send(right, { by: 'none' })).toMatchObject(noCredential)
    expect(guard.tries).toEqual([])
  })

  test.each(['Basic', 'Basic !', 'Basic ////', encoded('ada'), encoded(':x'), encoded('ada\n:x'), encoded('\u0000:x')])(
    'rejects %j as malformed',
    async (header) => {
      const { send, binds } = await open()
      const outcome = await send(header)
      expect(outcome).toMatchObject({ kind: 'rejected', headers: challenge })
      expect([outcome.kind === 'rejected' && outcome.noCredential, binds]).toEqual([undefined, []])
    },
  )

  test('answers wrong passwords, unknown and deactivated users in the same way, after the same work', async () => {
    const outcomes = []
    for (const given of ['ada:wrong', 'nobody:wrong', 'off:right: horsé']) {
      const { send, binds } = await open()
      outcomes.push([await send(encoded(given)), binds.length])
    }
    expect(outcomes[0]).toEqual([{ kind: 'rejected', reason: 'wrong login or password', headers: challenge }, 1])
    expect([outcomes[1], outcomes[2]]).toEqual([outcomes[0], outcomes[0]])
  })

  test('a locked login gets 429, and its password is not checked', async () => {
    const { send, binds } = await open()
    const locked: LoginGuard = {
      begin: async () => ({ allowed: false, retryAfterSeconds: 9, concealed: false }),
    }
    await expect(send(right, { by: locked })).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS', retryAfter: 9 })
    expect(binds).toEqual([])
    const concealed: LoginGuard = {
      begin: async () => ({ allowed: false, retryAfterSeconds: 9, concealed: true }),
    }
    expect(await send(right, { by: concealed })).toMatchObject({ kind: 'rejected', headers: challenge })
    expect(binds).toEqual(['uid=nobody-of-this-name,ou=people,o=Tremolo'])
  })

  test('requests with the same credential at once, and within seconds, are one try', async () => {
    const { send, guard, binds, now } = await open()
    const outcomes = await Promise.all([send(right), send(right), send(right)])
    expect(outcomes.map(({ kind }) => kind)).toEqual(['authenticated', 'authenticated', 'authenticated'])
    await send(right)
    expect([guard.tries.length, binds.length]).toEqual([1, 1])
    now.at += 3_000
    await send(right)
    expect(binds).toHaveLength(2)
    await send(encoded('ada:wrong'))
    await send(encoded('ada:wrong'))
    expect(guard.tries).toHaveLength(4)
  })

  test('is for https, and for this machine', async () => {
    const { send, guard } = await open()
    expect(await send(right, { url: 'http://api.test/' })).toMatchObject({ kind: 'rejected', status: 403 })
    expect(guard.tries).toEqual([])
    expect(await send(right, { url: 'http://localhost/', isLocal: true })).toMatchObject({ kind: 'authenticated' })
  })

  test.each<[Record<string, string>, 'authenticated' | 'rejected']>([
    [{}, 'authenticated'],
    [{ origin: 'https://api.test' }, 'authenticated'],
    [{ 'sec-fetch-site': 'same-origin' }, 'authenticated'],
    [{ origin: 'https://evil.test' }, 'rejected'],
    [{ origin: 'null' }, 'rejected'],
    [{ 'sec-fetch-site': 'cross-site' }, 'rejected'],
    [{ 'sec-fetch-site': 'same-site', origin: 'https://api.test' }, 'rejected'],
  ])('a change with the headers %j of a browser is %s', async (headers, kind) => {
    const { send } = await open()
    expect(await send(right, { method: 'POST', headers })).toMatchObject({ kind })
    expect(await send(right, { headers })).toMatchObject({ kind: 'authenticated' })
  })

  test('reports a directory that does not answer', async () => {
    const { send } = await open(new GatewayError('TARGET_UNREACHABLE', 'no'))
    await expect(send(right)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  })

  test('reports invalid parameters', () => {
    expect(prepare().problems).toEqual([])
    expect(prepare({}).problems).toEqual([expect.stringContaining('"realmName" is required')])
    expect(prepare({ realmName: 'a"b' }).problems).toEqual([expect.stringContaining('printable ASCII')])
    expect(prepare({ ...documented, uidAttr: 'u=d' }).problems).toHaveLength(1)
    expect(prepare({ ...documented, uidIsFilter: 'true' }).problems).toEqual([
      expect.stringContaining('unknown parameter "uidIsFilter"'),
    ])
  })
})

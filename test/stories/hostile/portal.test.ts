import { rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { type DemoLogin, type PortalAnswer, PortalPerson, unlimitedQuickstart } from '#testing/stories/portal-story.ts'

/**
 * Missing, null, empty, too long, wrong type, unknown, twice and hostile: each value of each write of the portal's
 * APIs, alone and together. The answer is as specified, and nothing is started.
 */
interface Field {
  readonly at: readonly (string | number)[]
  /** It may be absent, null or empty. */
  readonly optional?: true
  /** It may be absent, but not null or empty. */
  readonly mayBeMissing?: true
  /** Any text is valid. */
  readonly free?: true
}

interface Write {
  readonly as: DemoLogin
  readonly method: 'PUT' | 'POST'
  readonly path: string
  readonly body: unknown
  readonly fields: readonly Field[]
  readonly statuses: readonly number[]
}

const inAYear = new Date(Date.now() + 365 * 86_400_000).toISOString()
const writes: Readonly<Record<string, Write>> = {
  register: {
    as: 'ada',
    method: 'POST',
    path: '/register/submit',
    body: {
      attributes: { userName: 'joan', mail: 'joan@example.com', givenName: 'Joan', sn: 'Clarke', team: 'payments' },
      reason: 'new here',
    },
    fields: [
      { at: ['attributes'] },
      { at: ['attributes', 'userName'] },
      { at: ['attributes', 'mail'], free: true },
      { at: ['attributes', 'givenName'], free: true },
      { at: ['attributes', 'team'], optional: true },
      { at: ['reason'], free: true },
    ],
    statuses: [400, 500],
  },
  requests: {
    as: 'ada',
    method: 'PUT',
    path: '/main/workflows',
    body: [{ uuid: 'hostile', name: 'vault-access', reason: 'on call', subjects: ['ada'], doPreApproval: false }],
    fields: [
      { at: [0] },
      { at: [0, 'uuid'], free: true },
      { at: [0, 'name'] },
      { at: [0, 'reason'], free: true },
      { at: [0, 'subjects', 0], optional: true },
      { at: [0, 'doPreApproval'], optional: true },
    ],
    statuses: [200, 400],
  },
  profile: {
    as: 'ada',
    method: 'PUT',
    path: '/main/user',
    body: { displayName: { name: 'displayName', value: 'Ada Lovelace' } },
    fields: [
      { at: ['displayName'], mayBeMissing: true },
      { at: ['displayName', 'value'], free: true },
    ],
    statuses: [400, 500],
  },
  decision: {
    as: 'grace',
    method: 'PUT',
    path: '/main/approvals/APPROVAL',
    body: { approved: true, reason: 'fine' },
    fields: [{ at: ['approved'] }, { at: ['reason'], optional: true, free: true }],
    statuses: [400],
  },
  decisions: {
    as: 'grace',
    method: 'PUT',
    path: '/main/approvals',
    body: { approvals: ['APPROVAL'], approved: true, reason: 'fine' },
    fields: [{ at: ['approvals'] }, { at: ['approved'] }, { at: ['reason'], optional: true, free: true }],
    statuses: [400],
  },
  deputies: {
    as: 'grace',
    method: 'POST',
    path: '/main/delegations',
    body: { deputy: 'alan', starts: new Date().toISOString(), ends: inAYear },
    fields: [{ at: ['deputy'] }, { at: ['starts'] }, { at: ['ends'] }],
    statuses: [400, 404, 422],
  },
  recent: {
    as: 'ada',
    method: 'POST',
    path: '/main/recent',
    body: { kind: 'url', name: 'wiki' },
    fields: [{ at: ['kind'] }, { at: ['name'] }],
    statuses: [400, 404],
  },
}

const hostileTexts = [
  '*',
  '*)(uid=*',
  "' or 1=1 --",
  '<script>alert(1)</script>',
  '../../../etc/passwd',
  'a\r\nSet-Cookie: portal=x',
  '${jndi:ldap://evil.test}',
  '$groupname$',
  '__proto__',
  'hasOwnProperty',
  '\u202eadmin',
  'ada\u0000',
]
/** Rejected even in free text. */
const unkeptTexts = ['a\u0000b', '\ud800']
const wrongTypes: readonly unknown[] = [0, -1.5, true, [], {}, ['ada'], { $ne: '' }, { toString: 'x' }]
const missing = Symbol('missing')

type Value = unknown | typeof missing

function valuesFor({ optional, mayBeMissing, free, at }: Field): [label: string, value: Value][] {
  const isFlag = at.at(-1) === 'approved' || at.at(-1) === 'doPreApproval'
  const absent: Value[] = optional === true ? [] : mayBeMissing === true ? [null, ''] : [missing, null, '']
  const texts = free === true ? unkeptTexts : [...hostileTexts, ...unkeptTexts]
  const types = isFlag ? wrongTypes.filter((value) => value !== true) : wrongTypes
  return [...absent, 'x'.repeat(20_000), ...types, ...texts].map((value) => [label(value), value])
}

const label = (value: Value): string => (value === missing ? 'missing' : (JSON.stringify(value) ?? '').slice(0, 40))

/** A copy with another value at that path. */
function withValue(body: unknown, [first, ...rest]: readonly (string | number)[], value: Value): unknown {
  if (first === undefined) return value
  if (Array.isArray(body)) {
    const changed = body.map((item, i) => (i === first ? withValue(item, rest, value) : item))
    return changed.filter((item) => item !== missing)
  }
  if (typeof body !== 'object' || body === null) return body
  const entries = Object.entries(body).map(([name, inner]) => [
    name,
    name === first ? withValue(inner, rest, value) : inner,
  ])
  return Object.fromEntries(entries.filter(([, inner]) => inner !== missing))
}

describe('the portal', () => {
  const config = unlimitedQuickstart()
  let gateway: GatewayProcess
  const people = new Map<DemoLogin, PortalPerson>()
  let approval = ''
  let runsBefore = 0
  const person = (login: DemoLogin): PortalPerson => {
    const found = people.get(login)
    if (found === undefined) throw new Error(`${login} is not logged in`)
    return found
  }
  const runs = async (): Promise<number> => (await person('alan').get('/main/admin/runs?limit=100')).json.runs.length

  beforeAll(async () => {
    gateway = await startGatewayProcess({ config })
    for (const login of ['ada', 'grace', 'alan'] as const) people.set(login, await PortalPerson.logIn(gateway, login))
    const line = { uuid: 'first', name: 'vault-access', reason: 'on call' }
    expect((await person('ada').send('PUT', '/main/workflows', [line])).json).toEqual({ first: 'success' })
    await until(async () => {
      approval = (await person('grace').get('/main/approvals')).json.approvals[0]?.approval ?? ''
      return approval !== ''
    }, 20_000)
    runsBefore = await runs()
    expect(runsBefore).toBe(1)
  }, 120_000)
  afterAll(async () => {
    // No attempt started or decided anything or failed inside, and everything still works.
    expect(await runs()).toBe(runsBefore)
    expect((await person('grace').get('/main/delegations')).json.delegations).toEqual([])
    const decided = await person('grace').send('PUT', `/main/approvals/${approval}`, { approved: false, reason: 'no' })
    expect(decided.status).toBe(200)
    expect(await gateway.stop()).toBe(0)
    rmSync(config, { recursive: true, force: true })
    expect(gateway.output()).not.toMatch(/"code":"INTERNAL"|Unhandled|TypeError/)
  })

  const filledIn = (text: string): string => text.replaceAll('APPROVAL', approval)

  function faultsOf(answer: PortalAnswer, statuses: readonly number[]): string[] {
    const faults: string[] = []
    if (!statuses.includes(answer.status)) faults.push(`status ${answer.status}`)
    if (!/^application\/json/.test(answer.headers.get('content-type') ?? '')) faults.push('not JSON')
    if (/node_modules|\.ts\b|^ {4}at |TypeError|SQLITE/im.test(answer.text)) faults.push('tells of the inside')
    if (answer.json?.code === 'INTERNAL') faults.push('failed inside')
    const errors: unknown = answer.json?.errors
    const areTexts = Array.isArray(errors) && errors.length > 0 && errors.every((one) => typeof one === 'string')
    if (answer.status === 200) {
      if (Object.values(answer.json ?? {}).some((result) => result === 'success')) faults.push('taken')
    } else if (!areTexts) faults.push('no errors')
    if (answer.headers.has('set-cookie')) faults.push('sets a cookie')
    return faults
  }

  const tryWrite = async ({ as, method, path, statuses }: Write, body: string): Promise<string[]> => {
    const answer = await person(as).send(method, filledIn(path), filledIn(body))
    // Small requests have a much smaller limit of the body.
    const faults = faultsOf(answer, body.length > 16_000 ? [...statuses, 413] : statuses)
    return faults.length === 0 ? [] : [`${body.slice(0, 120)}: ${faults.join(', ')}: ${answer.text.slice(0, 200)}`]
  }

  describe.each(Object.entries(writes))('%s', (_name, write) => {
    test.each(write.fields.map((field) => [field.at.join('.') || 'body', field] as const))(
      'every bad value of %s is rejected',
      async (_at, field) => {
        const faults: string[] = []
        for (const [, value] of valuesFor(field)) {
          faults.push(...(await tryWrite(write, JSON.stringify(withValue(write.body, field.at, value)))))
        }
        expect(faults).toEqual([])
      },
    )

    test('rejects all bad values at once', async () => {
      const faults: string[] = []
      const leaves = write.fields.filter(({ at }) => !write.fields.some((other) => isBelow(other.at, at)))
      for (const value of [missing, null, '', 'x'.repeat(20_000), 0, {}, ['ada'], unkeptTexts[0]]) {
        const body = leaves.reduce((made, { at }) => withValue(made, at, value), write.body)
        faults.push(...(await tryWrite(write, JSON.stringify(body))))
      }
      expect(faults).toEqual([])
    })

    test('rejects unknown, repeated, malformed and misshapen bodies', async () => {
      const text = JSON.stringify(write.body)
      const object = text.indexOf('{')
      const inside = text.slice(object + 1)
      const name = /^"(\w+)":/.exec(inside)?.[1]
      const bodies = [
        `${text.slice(0, object)}{"isAdmin":true,${inside}`,
        `${text.slice(0, object)}{"__proto__":{"isAdmin":true},${inside}`,
        `${text.slice(0, object)}{"${name}":"x",${inside}`,
        `${text.slice(0, -1)}`,
        `${text}x`,
        `\u0001${text}`,
        'null',
        '12',
        '"text"',
        'true',
        '[[]]',
        '[null]',
        '{"":""}',
        '['.repeat(50_000),
        `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
      ]
      const faults: string[] = []
      for (const body of bodies) faults.push(...(await tryWrite(write, body)))
      expect(faults).toEqual([])
    })

    test('rejects other types, methods and sizes, and a change that another site could have made', async () => {
      const { as, method, path } = write
      const body = filledIn(JSON.stringify(write.body))
      const own = { 'x-requested-with': 'test' }
      const url = filledIn(path)
      const statusOf = async (how: string, sent: string, headers: Readonly<Record<string, string>>) => {
        const answer = await person(as).send(how, url, sent, headers)
        expect(faultsOf(answer, [answer.status])).toEqual([])
        return answer.status
      }
      expect(await statusOf(method, body, { ...own, 'content-type': 'text/plain' })).toBe(415)
      expect(await statusOf(method, 'a=b', { ...own, 'content-type': 'application/x-www-form-urlencoded' })).toBe(415)
      expect(await statusOf(method, body, { ...own, 'content-type': 'multipart/form-data; boundary=x' })).toBe(415)
      expect(await statusOf('PATCH', body, own)).toBe(405)
      expect(await statusOf(method, `[${' '.repeat(2_000_000)}]`, own)).toBe(413)
      if (path.startsWith('/register')) return
      expect(await statusOf(method, body, {})).toBe(403)
      const proven = { 'sec-fetch-site': 'same-origin', origin: gateway.url }
      expect(await statusOf(method, body, { ...proven, 'content-type': 'text/plain' })).toBe(415)
      expect(await statusOf(method, body, { ...proven, origin: 'null' })).toBe(403)
      expect(await statusOf(method, body, { ...proven, 'sec-fetch-site': 'same-site' })).toBe(403)
      expect(await statusOf(method, body, { origin: 'https://evil.test' })).toBe(403)
      expect(await statusOf(method, body, { ...own, 'sec-fetch-site': 'cross-site' })).toBe(403)
      expect(await statusOf(method, body, { ...own, 'sec-fetch-site': 'same-site' })).toBe(403)
    })
  })

  test.each([
    '/main/X',
    '/main/workflows/org/X',
    '/main/workflows/candelegate?workflowName=X',
    '/main/workflows/candelegate?workflowName=vault-access&workflowName=X',
    '/main/urls/org/X',
    '/main/approvals/X',
    '/main/approvals?after=X',
    '/main/approvals?limit=X',
    '/main/requests/X',
    '/main/requests?state=X',
    '/main/requests?about=X',
    '/main/reports/X',
    '/main/reports/org/X',
    '/main/reports/excel/X/report.xlsx',
    '/main/reports/My%20requests?currentUser=X',
    '/main/reports/My%20requests?format=X',
    '/main/search?q=X',
    '/main/search?q=ada&kind=X',
    '/main/search?q=ada&X=1',
    '/main/admin/runs/X',
    '/main/admin/runs?state=X',
    '/register/X',
    '/register/values?name=X',
    '/register/values?name=team&search=X',
    '/register/invitation?token=X',
    '/token/X',
  ])('reading %s with hostile values', async (template) => {
    const faults: string[] = []
    for (const value of [...hostileTexts, 'x'.repeat(3_000), '-1', '1e9', 'NaN', ' ', '%', '\u00e9']) {
      const path = template.replaceAll('X', encodeURIComponent(value))
      const answer = await person('ada').get(path)
      const found = answer.status === 200 ? faultsOf(answer, [200]) : faultsOf(answer, [400, 403, 404, 414])
      if (found.length > 0) faults.push(`${path.slice(0, 120)}: ${found.join(', ')}: ${answer.text.slice(0, 200)}`)
    }
    expect(faults).toEqual([])
  })

  test('no request creates new tokens within a session', async () => {
    for (const body of ['{}', 'null', '[]', '{"trustName":"workflows","user":"grace"}']) {
      const answer = await person('ada').send('POST', '/token/user', body)
      expect([body, faultsOf(answer, [400, 403])]).toEqual([body, []])
    }
    expect((await person('ada').send('PUT', '/token/user', '{}')).status).toBe(405)
  })
})

const isBelow = (inner: readonly unknown[], outer: readonly unknown[]): boolean =>
  inner.length > outer.length && outer.every((part, i) => part === inner[i])

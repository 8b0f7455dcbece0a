import { createSecretKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { PortalWorkflow } from '#features/portal/access/portal.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ConfiguredTexts } from '#sdk/page/configured-texts.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakePortal } from '#testing/modules/fake-portal.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { person, workflow } from '#testing/modules/main-fixture.ts'
import { MemoryRuns } from '#testing/workflows/memory-runs.ts'
import { type GivenApproval, someApproval } from '#testing/workflows/some-approval.ts'
import { approvalLinkKey, offersApprovalLinks, signApprovalLink } from '#workflows/approvals/approval-link.ts'
import type { ApprovalView, ApprovalVote } from '#workflows/approvals/desk-requests.ts'
import type { ApprovalUser } from '#workflows/record/operator.ts'
import approvalLink from './approval-link.ts'

const secretKeys = [createSecretKey(Buffer.alloc(32, 1))]
const keys = { secretKeys: async () => secretKeys }
const now = Date.parse('2026-01-02T03:04:05Z')

const open: ApprovalView = {
  ...someApproval({
    id: 'a-1',
    label: 'Access to <payroll>',
    run: { workflow: 'grant', subject: 'ada"><script>alert(1)</script>', requester: 'eve', reason: 'I need it & soon' },
    opened: new Date('2026-01-01T00:00:00Z'),
    version: 3,
  }),
  mayDecide: true,
}

interface Scene {
  readonly approval?: GivenApproval<ApprovalView> | 'none'
  readonly params?: ParamValues
  readonly failure?: GatewayError
  /** What the approval is after the failure. */
  readonly meanwhile?: Partial<ApprovalView>
  readonly as?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly entries?: readonly InsertEntry[]
  readonly workflows?: readonly PortalWorkflow[]
  readonly texts?: ConfiguredTexts
  readonly portalUrl?: string
}

const tokenFor = async (more: { approver?: string; version?: number; approve?: boolean; expires?: number } = {}) => {
  const { approver = 'boss', version = 3, approve = true, expires = now + 60_000 } = more
  return signApprovalLink(
    { approval: 'a-1', version, approver, identity: subject(`uid=${approver},o=test`).identity, approve },
    new Date(expires),
    await approvalLinkKey(keys),
  )
}

/** A link of a channel, which names no approver. */
const sharedToken = async () =>
  signApprovalLink({ approval: 'a-1', version: 3, approve: true }, new Date(now + 60_000), await approvalLinkKey(keys))

async function call(method: 'GET' | 'POST' | 'DELETE', token: string, scene: Scene = {}, comment = '', type = form) {
  const votes: { user: ApprovalUser; vote: ApprovalVote }[] = []
  const approvals = {
    get: async () =>
      scene.approval === 'none'
        ? undefined
        : {
            ...open,
            ...scene.approval,
            run: { ...open.run, ...scene.approval?.run },
            ...(votes.length > 0 && scene.meanwhile),
          },
    decide: async (user: ApprovalUser, vote: ApprovalVote) => {
      votes.push({ user, vote })
      if (scene.failure !== undefined) throw scene.failure
      return open
    },
  }
  const runs = new MemoryRuns()
  runs.parameters.set(open.run.id, new Map([['group', 'Payroll <1>']]))
  const params = fakeParams({ url: 'https://gate.example.com/decide', ...scene.params })
  const prepared = approvalLink.prepare(params, noIssues(), fakeParseContext())
  const filter = await prepared.create(
    fakeModuleHost({
      approvals,
      secretKeys,
      now: () => now,
      entries: scene.entries ?? [],
      runs,
      portal: { ...fakePortal(), workflows: scene.workflows ?? [] },
      ...(scene.texts === undefined ? {} : { texts: scene.texts }),
      ...(scene.portalUrl === undefined ? {} : { portalUrl: scene.portalUrl }),
    }),
  )
  const url =
    method === 'GET' ? `http://localhost/decide?token=${encodeURIComponent(token)}` : 'http://localhost/decide'
  const body = new URLSearchParams({ token, comment }).toString()
  const as = scene.as ?? 'boss'
  const response = await filter.handle(
    {
      request: fakeRequest({ method, url, headers: { 'content-type': type, ...scene.headers }, body }),
      application: 'links',
      mount: '/decide',
      pathInfo: '',
      subject: as === '' ? subject('uid=anonymous,o=test', {}, 0) : subject(`uid=${as},o=test`),
    },
    async () => {
      throw new Error('there is nothing behind this filter')
    },
  )
  return { status: response.status, headers: response.headers, page: String(response.body), votes }
}

const form = 'application/x-www-form-urlencoded'

test('pages are in the language of their reader', async () => {
  const scene: Scene = { headers: { 'accept-language': 'de-CH, en;q=0.5' } }
  const { page } = await call('GET', await tokenFor(), scene)
  expect(page).toContain('<html lang="de">')
  expect(page).toContain('Diesen Antrag genehmigen?')
  expect(page).toContain('<dt>Offen seit</dt><dd>1. Januar 2026 um 00:00 UTC</dd>')
  expect((await call('POST', await tokenFor(), scene)).page).toContain('wurde genehmigt.')
  expect((await call('GET', 'damaged', scene)).page).toContain('Dieser Link ist nicht gültig.')
})

test('the page shows the label of the workflow, in the language of its reader and with the parameters', async () => {
  const shown = async (scene: Scene) =>
    (await call('GET', await tokenFor(), scene)).page.match(/<dd>([^<]*)<\/dd>/g)?.[1]
  const workflows = [workflow('grant', { label: 'Join a group' })]
  expect(await shown({ workflows })).toBe('<dd>Join a group</dd>')
  const texts = new Map([['de', new Map([['Join $group$', 'Beitritt zu $group$']])]] as const)
  const dynamic = { annotations: [], parameterSets: async () => [] }
  const scene = { workflows: [workflow('grant', { label: 'Join $group$', dynamic })], texts }
  expect(await shown(scene)).toBe('<dd>Join Payroll &lt;1&gt;</dd>')
  const headers = { 'accept-language': 'de' }
  expect(await shown({ ...scene, headers })).toBe('<dd>Beitritt zu Payroll &lt;1&gt;</dd>')
})

test('pages after a decision lead to the approvals in the portal, where its address is known', async () => {
  const link = '<a href="https://gate.example.com/portal/approvals">Open your approvals in the portal</a>'
  const scene: Scene = { portalUrl: 'https://gate.example.com/portal' }
  expect((await call('POST', await tokenFor(), scene)).page).toContain(link)
  const used = await call('GET', await tokenFor(), { ...scene, approval: { state: 'approved' } })
  expect(used.page).toContain('This request has been decided')
  expect(used.page).toContain(link)
  expect((await call('GET', await tokenFor(), scene)).page).not.toContain(link)
  expect((await call('POST', await tokenFor())).page).not.toContain('<a ')
})

describe('opening a link', () => {
  test('shows the request and a form, and decides nothing', async () => {
    const token = await tokenFor()
    const { status, page, votes, headers } = await call('GET', token)
    expect({ status, votes }).toEqual({ status: 200, votes: [] })
    for (const text of [
      'Access to &lt;payroll&gt;',
      'grant',
      'eve',
      'I need it &amp; soon',
      'January 1, 2026 at 12:00 AM UTC',
    ]) {
      expect(page).toContain(text)
    }
    expect(page).toContain('<form method="post" action="/decide">')
    expect(page).toContain(`<input type="hidden" name="token" value="${token}">`)
    expect(page).toContain('<html lang="en">')
    expect(page).toContain('<label for="comment">')
    expect(page).not.toContain('<script')
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
      'content-type': 'text/html; charset=utf-8',
    })
    expect(headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-[^ ]+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
    )
  })

  test('to approve access that has already expired says so, and a link to deny it still works', async () => {
    const scene = { approval: { run: { accessEnds: new Date(now) } } }
    for (const method of ['GET', 'POST'] as const) {
      const { status, page, votes } = await call(method, await tokenFor(), scene)
      expect({ status, votes }).toEqual({ status: 422, votes: [] })
      expect(page).toContain('The requested expiry date has passed')
    }
    expect(await call('POST', await tokenFor({ approve: false }), scene)).toMatchObject({ status: 200, votes: [{}] })
    const ahead = {
      approval: { run: { accessEnds: new Date(now + 1) } },
      failure: new GatewayError('UNPROCESSABLE', 'by now'),
    }
    expect(await call('GET', await tokenFor(), ahead)).toMatchObject({ status: 200 })
    expect(await call('POST', await tokenFor(), ahead)).toMatchObject({ status: 422, votes: [{}] })
  })

  test('shows who submitted it in the name of another user', async () => {
    const { page } = await call('GET', await tokenFor(), { approval: { run: { caller: 'mal<lory>' } } })
    expect(page).toContain('<dt>Requested by</dt><dd>eve</dd>')
    expect(page).toContain('<dt>Submitted by</dt><dd>mal&lt;lory&gt;</dd>')
    expect((await call('GET', await tokenFor())).page).not.toContain('Submitted by')
    const turned = { run: { caller: 'mal\u202e', reason: '\u2067lory' }, label: 'Join\u202d' }
    expect((await call('GET', await tokenFor(), { approval: turned })).page).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/)
  })

  test('shows the expiry date, and a registration without a login', async () => {
    const approval = { run: { accessEnds: new Date('2026-02-01T23:59:59Z'), requester: 'Anonymous' } }
    const { page } = await call('GET', await tokenFor(), { approval })
    expect(page).toContain('<dt>Requested until</dt><dd>February 1, 2026 at 11:59 PM UTC</dd>')
    expect(page).toContain('<dd>a visitor who registered without signing in</dd>')
    expect((await call('GET', await tokenFor())).page).not.toContain('Requested until')
  })

  test('shows which decision it makes', async () => {
    expect((await call('GET', await tokenFor())).page).toContain('<button type="submit">Approve</button>')
    expect((await call('GET', await tokenFor({ approve: false }))).page).toContain('Deny this request?')
  })
})

describe('sending the form', () => {
  test.each([
    [{ state: 'denied' }, 'Already decided'],
    [{ state: 'cancelled' }, 'No longer valid'],
    [{ version: 4 }, 'No longer valid'],
    [{}, 'No longer valid'],
  ] as const)('says what happened meanwhile: %j', async (meanwhile, title) => {
    const failure = new GatewayError('CONFLICT', 'x')
    const { status, page } = await call('POST', await tokenFor(), { failure, meanwhile })
    expect(status).toBe(410)
    expect(page).toContain(`<h1>${title}</h1>`)
  })

  test.each([true, false])('decides as the approver: approve %j', async (approve) => {
    const { status, page, votes } = await call('POST', await tokenFor({ approve }), {}, ' fine\r\nby me ')
    expect(status).toBe(200)
    expect(page).toContain(approve ? 'was approved' : 'was denied')
    expect(votes).toMatchObject([
      {
        user: { login: 'boss' },
        vote: { approval: 'a-1', version: 3, approve, comment: 'fine\nby me', requestId: 'request-1' },
      },
    ])
  })

  test('must be a form of bounded size, by POST', async () => {
    const token = await tokenFor()
    await expect(call('POST', token, {}, '', 'application/json')).rejects.toMatchObject({ status: 415 })
    await expect(call('DELETE', token)).rejects.toMatchObject({ status: 405 })
    const { status, votes } = await call('POST', token, {}, 'x'.repeat(2001))
    expect({ status, votes }).toEqual({ status: 400, votes: [] })
  })

  test.each([
    ['CONFLICT', 410],
    ['VERSION_MISMATCH', 410],
    ['NOT_FOUND', 410],
    ['ACCESS_DENIED', 403],
    ['ACCOUNT_EXISTS', 409],
  ] as const)('that comes too late gets a page: %s', async (code, status) => {
    expect((await call('POST', await tokenFor(), { failure: new GatewayError(code, 'x') })).status).toBe(status)
  })

  test.each<[string, Readonly<Record<string, string>>, number]>([
    ['of the page itself', { 'sec-fetch-site': 'same-origin', origin: 'null' }, 200],
    ['of the page itself, in an older browser', { origin: 'http://localhost' }, 200],
    ['of no browser', {}, 200],
    ['of another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example.com' }, 403],
    ['of a neighbour', { 'sec-fetch-site': 'same-site', origin: 'http://localhost' }, 403],
    ['that was typed or bookmarked', { 'sec-fetch-site': 'none' }, 403],
    ['of another site, in an older browser', { origin: 'https://evil.example.com' }, 403],
    ['of a page without an origin', { origin: 'null' }, 403],
  ])('%s', async (_, headers, status) => {
    for (const params of [{}, { withoutLogin: 'true' }]) {
      const as = 'withoutLogin' in params ? '' : 'boss'
      const answer = await call('POST', await tokenFor(), { headers, params, as })
      expect({ status: answer.status, votes: answer.votes.length }).toEqual({ status, votes: status === 200 ? 1 : 0 })
    }
  })

  test('without a comment decides nothing if the approval requires one', async () => {
    const scene = { approval: { commentRequired: true } }
    const { status, votes } = await call('POST', await tokenFor(), scene, ' ')
    expect([status, votes]).toEqual([400, []])
    expect((await call('POST', await tokenFor(), scene, 'fine')).status).toBe(200)
    expect((await call('GET', await tokenFor(), scene)).page).toContain('" required></textarea>')
  })

  test('without the token of the link decides nothing, even for a logged-in user', async () => {
    const own = { 'sec-fetch-site': 'same-origin' }
    for (const token of ['', 'x', (await tokenFor()).split('.').slice(0, 2).join('.')]) {
      expect(await call('POST', token, { headers: own, as: 'boss' })).toMatchObject({ status: 403, votes: [] })
    }
  })

  test('that fails otherwise is not reported as a decision', async () => {
    const failure = new GatewayError('TARGET_UNREACHABLE', 'x')
    await expect(call('POST', await tokenFor(), { failure })).rejects.toBe(failure)
  })
})

describe.each(['GET', 'POST'] as const)('an invalid link is rejected by %s', (method) => {
  const refusal = async (token: string, scene: Scene = {}) => {
    const { status, votes, page } = await call(method, token, scene)
    expect(votes).toEqual([])
    expect(page).not.toContain('payroll')
    return status
  }

  test('forged, for another installation or truncated', async () => {
    expect(await refusal('')).toBe(403)
    expect(await refusal((await tokenFor()).slice(0, -5))).toBe(403)
  })

  test('expired', async () => {
    expect(await refusal(await tokenFor({ expires: now - 1000 }))).toBe(410)
  })

  test('used', async () => {
    expect(await refusal(await tokenFor(), { approval: { state: 'approved', version: 4, mayDecide: false } })).toBe(410)
    expect(await refusal(await tokenFor(), { approval: { state: 'denied' } })).toBe(410)
  })

  test('of a version before the approval was reassigned, or without a version', async () => {
    expect(await refusal(await tokenFor({ version: 2 }))).toBe(410)
    expect(await refusal(await tokenFor(), { approval: 'none' })).toBe(410)
    expect(await refusal(await tokenFor(), { approval: { state: 'cancelled' } })).toBe(410)
  })

  test('of another approver', async () => {
    expect(await refusal(await tokenFor({ approver: 'other' }))).toBe(403)
    expect(await refusal(await tokenFor({ approver: 'other' }), { params: { withoutLogin: 'true' } })).toBe(403)
    expect(await refusal(await tokenFor(), { approval: { mayDecide: false } })).toBe(403)
  })

  test('without a login, unless the configuration accepts the link alone', async () => {
    expect(await refusal(await tokenFor(), { as: '' })).toBe(403)
    const { status } = await call(method, await tokenFor(), { as: '', params: { withoutLogin: 'true' } })
    expect(status).toBe(200)
  })
})

describe('a link of a channel', () => {
  test('decides as the approver who is logged in', async () => {
    const opened = await call('GET', await sharedToken(), { as: 'ann' })
    expect(opened.status).toBe(200)
    expect(opened.page).toContain('<dt>You decide as</dt><dd>ann</dd>')
    const { status, votes } = await call('POST', await sharedToken(), { as: 'ann' })
    expect(status).toBe(200)
    expect(votes).toMatchObject([{ user: { login: 'ann' }, vote: { approval: 'a-1', version: 3, approve: true } }])
  })

  test.each(['GET', 'POST'] as const)('is refused without a login, even where links need none: %s', async (method) => {
    for (const params of [{}, { withoutLogin: 'true' }]) {
      const { status, page, votes } = await call(method, await sharedToken(), { as: '', params })
      expect({ status, votes }).toEqual({ status: 403, votes: [] })
      expect(page).toContain('logged in')
    }
  })

  test('is refused for users who may not decide, and after the decision', async () => {
    for (const approval of ['none', { mayDecide: false }] as const) {
      const { status, page, votes } = await call('POST', await sharedToken(), { as: 'eve', approval })
      expect({ status, votes }).toEqual({ status: 403, votes: [] })
      expect(page).toContain('You may not decide this request')
    }
    expect(await call('POST', await sharedToken(), { approval: { state: 'approved' } })).toMatchObject({
      status: 410,
      votes: [],
    })
  })
})

test('the case of a login does not matter', async () => {
  expect((await call('GET', await tokenFor({ approver: 'BOSS' }))).status).toBe(200)
})

test('the configuration sets the address and lifetime of links', () => {
  const read = (params: ParamValues) => {
    const issues = noIssues()
    const filter = approvalLink.prepare(fakeParams(params), issues, fakeParseContext())
    const approvalLinks = offersApprovalLinks(filter) ? filter.approvalLinks : undefined
    return { approvalLinks, issues: issueTexts(issues.list) }
  }
  const day = 24 * 3600_000
  const url = 'https://gate.example.com/decide'
  expect(read({ url })).toEqual({ approvalLinks: { url, validMillis: 14 * day, withoutLogin: false }, issues: [] })
  expect(read({ url, validDays: '2' }).approvalLinks?.validMillis).toBe(2 * day)
  for (const wrong of [
    '/decide',
    'javascript:alert(1)',
    'https://u:p@x.test/',
    'https://x.test/?a=1',
    'https://x.test/#a',
  ]) {
    expect(read({ url: wrong }).issues).toEqual([expect.stringMatching(/^error params\.url/)])
  }
  expect(read({}).issues).toHaveLength(1)
})

test('users are named by display name and login, and by login alone if the directory has none of them', async () => {
  const entries = [person('carl', { displayName: ['Carl <b>Gauss</b>'] }), person('eve')]
  const scene = { approval: { run: { subject: 'carl', requester: 'eve', caller: 'idp', who: {} } }, entries }
  const { page } = await call('GET', await tokenFor(), scene)
  const shown = [...page.matchAll(/<dt>(For|Requested by|Submitted by)<\/dt><dd>(.*)<\/dd>/g)]
  expect(shown.map(([, name, value]) => [name, value])).toEqual([
    ['For', 'Carl &lt;b&gt;Gauss&lt;/b&gt; (carl)'],
    ['Requested by', 'eve Doe (eve)'],
    ['Submitted by', 'idp'],
  ])
  const done = await call('POST', await tokenFor(), scene)
  expect(done.page).toContain('for Carl &lt;b&gt;Gauss&lt;/b&gt; (carl) was approved')
})

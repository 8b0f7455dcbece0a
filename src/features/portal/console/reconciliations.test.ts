import { expect, test } from 'vitest'
import { AuditStore } from '#audit/store/audit-store.ts'
import type { ReconciliationConfig } from '#config/configuration/configuration.ts'
import type { Difference } from '#features/reconciliation/plan/difference.ts'
import { ReconciliationPlans } from '#features/reconciliation/service/plans.ts'
import { LinkStore } from '#features/reconciliation/store/link-store.ts'
import { ReconciliationStore } from '#features/reconciliation/store/reconciliation-store.ts'
import { Attributes } from '#identity/attributes.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { openMain, person, someone } from '#testing/modules/main-fixture.ts'
import { addUser, comparedSystems, idOf, memoryTarget } from '#testing/reconciliation/compared-systems.ts'
import { countsOf, missingAccount } from '#testing/reconciliation/difference.ts'

const root = someone('root', ['people', 'admins', 'operators'])
const viewer = someone('viewer', ['people', 'admins'])
const minute = 60_000

const config = {
  at: 'chat.yaml:1:1',
  description: 'Staff has the chat',
  source: { kind: 'target', name: 'people', filter: undefined, groups: [] },
  target: 'chat',
  scope: { filter: undefined, groups: [] },
  mapping: undefined,
  groups: [],
  correlation: [{ kind: 'login' }, { kind: 'attribute', source: 'mail', target: 'emails' }],
  missing: 'create',
  different: 'change',
  extra: 'deactivate',
  ambiguous: 'report',
  deactivated: undefined,
  workflows: {},
  limits: { percent: 5, accounts: 50 },
  schedule: undefined,
  apply: 'manual',
} as unknown as ReconciliationConfig

const spec = `
attributes: [{ name: mail, source: mail, sourceType: user }]
correlation: [login, { attribute: mail }]`

async function open() {
  const database = memoryDatabase()
  const store = new ReconciliationStore(database)
  const links = new LinkStore(database)
  const plans = new ReconciliationPlans({ store, links, clock: systemClock })
  const [people, accounts] = [memoryTarget(), memoryTarget()]
  const compared = await comparedSystems({ source: people, target: accounts, spec })
  const systems = {
    ...compared,
    links: (sources: readonly string[]) => links.ofSources('chat', sources),
    linksByTarget: (targets: readonly string[]) => links.ofTargets('chat', targets),
  }
  const { send } = await openMain({
    params: { administrators: 'filter;(groups=admins)', operators: 'filter;(groups=operators)' },
    entries: [person('ann'), person('root')],
    reconciliations: { plans, configured: new Map([['chat', config]]), systems: () => systems },
  })
  const get = (path: string) => send('GET', `/admin${path}`, undefined, viewer)
  const post = (path: string, body: unknown, who = root) => send('POST', `/admin${path}`, body, who)
  /** A plan that a gateway has compared. */
  const planned = async (...differences: readonly Difference[]): Promise<string> => {
    const { body } = await post('/reconciliations/chat/plans', {})
    const claim = await store.claim('w', minute)
    if (claim === undefined || claim.id !== body.plan.id) throw new Error('another plan is due')
    const counts = countsOf(differences, 3)
    await store.addPart(claim, { differences, counts, resumeAt: 'end', definition: 'a', leaseMillis: minute })
    const { source, target, agree } = counts
    const report = { plan: claim.id, reconciliation: 'chat', source, target, agree, ...counts.differences }
    await store.endComparison(claim, { state: 'planned', report, audit: [] })
    return claim.id
  }
  return { get, post, send, planned, plans, people, accounts, systems, audit: new AuditStore(database) }
}

test('reconciliations are listed with their drift, their trend and their latest plan', async () => {
  const { get, send, planned } = await open()
  await expect(send('GET', '/admin/reconciliations')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  const [before] = (await get('/reconciliations')).body.reconciliations
  expect(before).toEqual({
    name: 'chat',
    description: 'Staff has the chat',
    source: 'people',
    target: 'chat',
    apply: 'manual',
    trend: [],
  })
  const id = await planned(missingAccount('ann'), missingAccount('bob', { action: 'report' }))
  expect((await get('/reconciliations')).body.reconciliations).toMatchObject([{ trend: [{ plan: id, agree: 3 }] }])
  const { body } = await get('/reconciliations/chat')
  expect(body).toMatchObject({
    drift: { agree: 3, missing: 2, extra: 0, source: 5 },
    differsSince: expect.any(String),
    plan: { id, state: 'planned', counts: { actions: { create: 1, report: 1 } } },
    rules: ['login', 'emails'],
    limits: { percent: 5, accounts: 50 },
    trend: [{ plan: id, missing: 2 }],
  })
  expect((await get('/reconciliations?q=wiki')).body.reconciliations).toEqual([])
  await expect(get('/reconciliations/wiki')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect((await get('/reconciliations/chat/plans?format=csv')).text).toContain(`${id},planned`)
})

test('rows of a plan are filtered, paged and exported, without secrets', async () => {
  const { get, planned } = await open()
  const secret = { name: 'userPassword', from: ['old-secret'], to: ['new-secret'] }
  const id = await planned(
    missingAccount('ann', { attributes: [secret] }),
    missingAccount('bob', { action: 'report' }),
    missingAccount('cyd', { kind: 'extra', action: 'deactivate', source: undefined, target: { login: 'cyd' } }),
  )
  const logins = async (query: string) =>
    (await get(`/plans/${id}/rows${query}`)).body.rows.map(
      ({ source, target }: { source?: { login: string }; target?: { login: string } }) => (source ?? target)?.login,
    )
  expect(await logins('')).toEqual(['ann', 'bob', 'cyd'])
  expect(await logins('?kind=extra')).toEqual(['cyd'])
  expect(await logins('?action=create')).toEqual(['ann'])
  expect(await logins('?state=reported')).toEqual(['bob'])
  expect(await logins('?login=ANN')).toEqual(['ann'])
  const first = await get(`/plans/${id}/rows?limit=2`)
  expect(await logins(`?limit=2&after=${first.body.next}`)).toEqual(['cyd'])
  const file = (await get(`/plans/${id}/rows?format=csv`)).text
  expect(file).toContain('0,missing,create,open,ann')
  expect(`${file}${first.text}`).not.toContain('secret')
  await expect(get(`/plans/${id}/rows?kind=odd`)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  await expect(get(`/plans/${id}/rows?after=x`)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  await expect(get('/plans/none/rows')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('an operator applies the plan that they saw, and others do not', async () => {
  const { get, post, planned, audit } = await open()
  const id = await planned(missingAccount('ann'))
  const seen = { state: 'planned', reason: 'looks right' }
  await expect(post(`/plans/${id}/apply`, seen, viewer)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  await expect(post(`/plans/${id}/apply`, { state: 'planned', reason: ' ' })).rejects.toMatchObject({
    code: 'BAD_REQUEST',
  })
  expect((await get(`/plans/${id}`)).body).toMatchObject({ state: 'planned', rows: { open: 1 }, own: false })
  const { body } = await post(`/plans/${id}/apply`, seen)
  expect(body).toMatchObject({ state: 'applying', approval: { by: 'root', reason: 'looks right' } })
  await expect(post(`/plans/${id}/stop`, seen)).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
  const now = { state: 'applying', reason: 'too many' }
  expect((await post(`/plans/${id}/pause`, now)).body).toMatchObject({
    state: 'paused',
    problem: 'Paused by root: too many',
  })
  expect((await post(`/plans/${id}/resume`, { ...now, state: 'paused' })).body.state).toBe('applying')
  expect((await post(`/plans/${id}/stop`, now)).body).toMatchObject({ state: 'stopped' })
  expect((await audit.list({ limit: 2 })).rows).toMatchObject([
    { requestor: 'root', value: `stop ${id}`, reason: 'too many' },
    { requestor: 'root', value: `resume ${id}` },
  ])
})

test('no one applies a plan that changes their own account, or decides about it', async () => {
  const { get, post, planned } = await open()
  const id = await planned(missingAccount('ROOT'), missingAccount('ann'))
  const denied = { code: 'ACCESS_DENIED', publicText: expect.stringContaining('your own account') }
  await expect(post(`/plans/${id}/apply`, { state: 'planned', reason: 'mine' })).rejects.toMatchObject(denied)
  const links = '/reconciliations/chat/links'
  for (const names of [{ source: 'Root' }, { source: 'id of ROOT' }, { source: 'ann', target: 'root' }]) {
    await expect(post(links, { ...names, reason: 'mine' })).rejects.toMatchObject(denied)
  }
  await expect(post(`${links}/remove`, { source: 'root', reason: 'mine' })).rejects.toMatchObject(denied)
  expect((await get(`/plans/${id}`)).body.state).toBe('planned')
  expect((await get(links)).body.links).toEqual([])
})

test('no one decides about the person and the account that are theirs in the systems now', async () => {
  const { get, post, plans, people, accounts, systems } = await open()
  await addUser(people, 'root', { mail: ['root@example.com'] })
  await addUser(people, 'ann')
  await addUser(accounts, 'root-chat', { mail: ['root@example.com'] })
  await addUser(accounts, 'boss')
  const [own, ownAccount, boss] = [
    await idOf(people, 'root'),
    await idOf(accounts, 'root-chat'),
    await idOf(accounts, 'boss'),
  ]
  const links = '/reconciliations/chat/links'
  const denied = { code: 'ACCESS_DENIED', publicText: expect.stringContaining('your own account') }
  for (const names of [
    { source: own, target: boss },
    { source: 'ROOT', target: boss },
    { source: own },
    { source: 'ann', target: ownAccount },
    { source: 'ann', target: 'ROOT-chat' },
    { source: root.identity, target: boss },
  ]) {
    await expect(post(links, { ...names, reason: 'mine' })).rejects.toMatchObject(denied)
  }
  const ann = await idOf(people, 'ann')
  const linked = await post(links, { source: 'Ann', target: 'boss', reason: 'asked her' })
  expect(linked.body).toEqual({ source: ann, target: boss, unknown: [] })
  expect((await get(links)).body.links).toMatchObject([{ source: ann, personLogin: 'ann', accountLogin: 'boss' }])
  await plans.link({ reconciliation: 'chat', source: 'dan', target: ownAccount, by: { login: 'someone' } })
  await expect(post(`${links}/remove`, { source: 'dan', reason: 'mine' })).rejects.toMatchObject(denied)
  expect((await get(links)).body.links).toHaveLength(2)

  const lookUp = systems.target.lookupUserByLogin
  systems.target.lookupUserByLogin = async () => {
    throw new GatewayError('TARGET_UNREACHABLE', 'connect ECONNREFUSED 10.0.0.1')
  }
  const unread = {
    code: 'TARGET_UNREACHABLE',
    publicText: expect.stringMatching(/could not be checked. A downstream system did not answer./),
  }
  await expect(post(links, { source: ann, reason: 'left' })).rejects.toMatchObject(unread)
  await expect(post(`${links}/remove`, { source: ann, reason: 'left' })).rejects.toMatchObject(unread)
  expect((await get(links)).body.links).toHaveLength(2)
  systems.target.lookupUserByLogin = lookUp
  expect((await post(`${links}/remove`, { source: ann, reason: 'left' })).body).toEqual({ removed: true })
})

test('a decision about a person is stored under the ids of the last plan, listed and removed', async () => {
  const { get, post, planned } = await open()
  await planned(
    missingAccount('ann', { kind: 'ambiguous', action: 'report', candidates: [{ id: 'U1', login: 'ann1' }] }),
  )
  const links = '/reconciliations/chat/links'
  const decision = { source: 'ann', target: 'U1', reason: 'asked her' }
  await expect(post(links, decision, viewer)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  expect((await post(links, decision)).body).toMatchObject({ source: 'id of ann', target: 'U1' })
  expect((await post(links, { source: 'dan', reason: 'has left' })).body).toEqual({ source: 'dan', unknown: ['dan'] })
  expect((await get(links)).body.links).toMatchObject([
    { source: 'dan', decidedBy: 'root', reason: 'has left' },
    { source: 'id of ann', target: 'U1', reason: 'asked her' },
  ])
  const removal = { source: 'dan', reason: 'is back' }
  expect((await post(`${links}/remove`, removal)).body).toEqual({ removed: true })
  expect((await post(`${links}/remove`, removal)).body).toEqual({ removed: false })
})

test('the page of a user shows what each system has, what differs, and what could not be read', async () => {
  const read = { fails: false }
  const { get, planned, systems } = await open()
  systems.target.lookupUserByLogin = async (login) => {
    if (read.fails) throw new GatewayError('TARGET_UNREACHABLE', 'connect ECONNREFUSED 10.0.0.1')
    if (login !== 'ann') return undefined
    return {
      id: 'U1',
      userID: 'ann',
      attributes: Attributes.from({ mail: ['old@example.com'], userPassword: ['secret'] }),
      groups: ['staff'],
    }
  }
  expect((await get('/people/ann/systems')).body.systems).toMatchObject([{ reconciliation: 'chat', differences: [] }])
  await planned(missingAccount('ann', { kind: 'different', action: 'change', target: { id: 'U1', login: 'ann' } }))
  const { body, text } = await get('/people/ann/systems')
  expect(body.systems).toEqual([
    {
      reconciliation: 'chat',
      target: 'chat',
      login: 'ann',
      account: {
        id: 'U1',
        attributes: [
          { name: 'mail', values: ['old@example.com'] },
          { name: 'userPassword', values: [], hidden: true },
        ],
        groups: ['staff'],
      },
      compared: expect.any(String),
      differences: [expect.objectContaining({ kind: 'different', action: 'change' })],
    },
  ])
  expect(text).not.toContain('secret')
  read.fails = true
  const [system] = (await get('/people/ann/systems')).body.systems
  expect(system).toMatchObject({ problem: expect.any(String) })
  expect(system).not.toHaveProperty('account')
})

test('the page of a user shows the account that a decision or a rule finds', async () => {
  const { get, people, accounts, plans } = await open()
  await addUser(people, 'ann', { mail: ['ann@example.com'] })
  await addUser(accounts, 'ann')
  await addUser(accounts, 'lovelace', { mail: ['ann@example.com'] })
  await addUser(accounts, 'boss')
  const shown = async () => (await get('/people/ann/systems')).body.systems[0]
  expect(await shown()).toMatchObject({ login: 'ann', rule: 'login', account: { groups: [] } })
  const link = async (target?: string) =>
    plans.link({ reconciliation: 'chat', source: await idOf(people, 'ann'), target, by: { login: 'someone' } })
  await link(await idOf(accounts, 'boss'))
  expect(await shown()).toMatchObject({ login: 'boss', rule: 'link', account: { id: await idOf(accounts, 'boss') } })
  await link()
  expect(await shown()).toMatchObject({ login: 'ann', rule: 'link' })
  expect(await shown()).not.toHaveProperty('account')
  await link('gone')
  expect(await shown()).toMatchObject({ login: 'gone' })
  expect(await shown()).not.toHaveProperty('rule')
})

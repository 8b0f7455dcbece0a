import { expect, test } from 'vitest'
import { ReconciliationPlans } from '#features/reconciliation/service/plans.ts'
import type { ClaimedPlan } from '#features/reconciliation/store/plan-record.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { minute } from '#testing/databases/workflow-stores.ts'
import { countsOf, missingAccount } from '#testing/reconciliation/difference.ts'
import { reconcileCommand } from './reconcile.ts'

const differences = [
  missingAccount('ada', { groups: { add: ['staff'], remove: [] } }),
  missingAccount('=bob', {
    kind: 'ambiguous',
    action: 'report',
    rule: 'mail',
    candidates: [{ id: 'U1', login: 'bob' }, { login: 'bob2' }],
    reason: 'By mail, 2 accounts may belong to this person.',
  }),
]

async function withStorage<T>(folder: string, work: (storage: Storage) => Promise<T>): Promise<T> {
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger })
  try {
    await storage.ready()
    return await work(storage)
  } finally {
    await storage.close()
  }
}

async function run(folder: string, ...args: string[]) {
  const output: string[] = []
  const errors: string[] = []
  const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
  const code = await reconcileCommand([...args, '--data', folder], io)
  return { code, output, errors, text: output.join('\n') }
}

/** Claims the next plan as a gateway does. */
async function claimed({ reconciliations }: Storage): Promise<ClaimedPlan> {
  for (;;) {
    const plan = await reconciliations.claim('gateway', minute)
    if (plan !== undefined) return plan
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Compares the next plan as a gateway does; returns its id. */
async function compare(storage: Storage, state: 'planned' | 'stopped' = 'planned'): Promise<string> {
  const plan = await claimed(storage)
  const { id, reconciliation } = plan
  const counts = countsOf(differences, 7)
  await storage.reconciliations.addPart(plan, {
    differences,
    counts,
    resumeAt: 'end',
    definition: 'a',
    leaseMillis: minute,
  })
  const { source, target, agree } = counts
  const report = { plan: id, reconciliation, source, target, agree, ...counts.differences }
  const problem = state === 'stopped' ? 'The plan would delete 60 accounts.' : undefined
  await storage.reconciliations.endComparison(plan, { state, problem, report, audit: [] })
  return id
}

/** A data folder with a plan of these differences. */
async function planned() {
  const folder = temporaryFolder()
  const id = await withStorage(folder, async (storage) => {
    const { reconciliations: store, accountLinks: links } = storage
    await new ReconciliationPlans({ store, links, clock: systemClock }).request('chat', { by: { login: 'Ada' } })
    return await compare(storage)
  })
  return { folder, id }
}

test('plan waits for a gateway to compare, and shows what it found', async () => {
  const folder = temporaryFolder()
  await withStorage(folder, async (storage) => {
    const [{ code, text }, id] = await Promise.all([
      run(folder, 'plan', 'chat', '--by', 'Grace', '--reason', 'weekly'),
      compare(storage),
    ])
    expect(code).toBe(0)
    expect(text).toContain(`plan       ${id}`)
    expect(text).toContain('found      7 agree, 1 missing, 1 ambiguous')
    expect(text).toContain('actions    report 1, create 1')
    expect(text).toContain(`reconcile apply ${id} --data ${folder}"`)
    const [entry] = (await storage.audit.list({ limit: 1 })).rows
    expect(entry).toMatchObject({ requestor: 'Grace', reason: 'weekly', value: `request ${id}` })
    const [stopped] = await Promise.all([run(folder, 'plan', 'chat'), compare(storage, 'stopped')])
    expect(stopped).toMatchObject({ code: 1, text: expect.stringContaining('stopped: The plan would delete 60') })
  })
})

test('plan says so when no gateway takes it, and follows the same plan the next time', async () => {
  const folder = temporaryFolder()
  await withStorage(folder, async () => {})
  const first = await run(folder, 'plan', 'chat', '--wait', '0')
  expect(first.code).toBe(1)
  expect(first.errors.join()).toMatch(/no gateway has taken the plan .* The plan stays requested/)
  const again = await run(folder, 'plan', 'chat', '--wait', '0')
  expect(again.errors[0]).toMatch(/is requested: it is followed instead of a new one/)
  expect((await run(folder, 'list')).text).toMatch(/^chat: plan \S+ is requested\n {4}never compared$/)
})

test('list and show print what the last comparison found, and why', async () => {
  const { folder, id } = await planned()
  expect((await run(folder, 'list')).text).toMatch(
    /chat: plan .* is planned\n.*7 agree, 1 missing, 1 ambiguous, differs since/,
  )
  const { text } = await run(folder, 'show', id, '--limit', '1')
  expect(text).toContain(
    '0 missing: ada, create, open\n    ada has no account.\n    mail: none → "ada@example.com"\n    joins staff',
  )
  expect(text).toContain(`reconcile rows ${id} --data ${folder}" lists them`)
  const rows = await run(folder, 'rows', id, '--kind', 'ambiguous')
  expect(rows.text).toContain('1 ambiguous: =bob (by mail), report, reported')
  expect(rows.text).toContain('candidates: bob (U1), bob2')
  const json = JSON.parse((await run(folder, 'rows', id, '--login', 'ADA', '--output', 'json')).text)
  expect(json).toMatchObject([{ number: 0, state: 'open', kind: 'missing', source: { login: 'ada' } }])
  expect((await run(folder, 'rows', id, '--state', 'done')).errors).toEqual(['There are no rows that match.'])
  for (const action of ['show', 'apply', 'stop']) {
    const unknown = (await run(folder, action, 'none')).errors.join(' ')
    expect(unknown.replaceAll(/\s+/g, ' ')).toContain('there is no plan "none"; "')
  }
})

test('rows are CSV for spreadsheets, without formulas', async () => {
  const { folder, id } = await planned()
  const { output } = await run(folder, 'rows', id, '--csv')
  expect(output).toHaveLength(3)
  expect(output[0]).toMatch(/^row,kind,action,state,person,/)
  expect(output[1]).toContain('0,missing,create,open,ada,id of ada,,,,ada has no account.')
  expect(output[2]).toContain(`1,ambiguous,report,reported,'=bob,`)
})

test('apply allows the plan once, and shows its end', async () => {
  const { folder, id } = await planned()
  await withStorage(folder, async (storage) => {
    const finish = async (): Promise<void> => {
      const plan = await claimed(storage)
      await storage.reconciliations.settleRow(plan, { number: 0, state: 'done' })
      await storage.reconciliations.endApplying(plan, undefined, [])
    }
    const [{ code, text }] = await Promise.all([run(folder, 'apply', id, '--by', 'Grace'), finish()])
    expect(code).toBe(0)
    expect(text).toMatch(/state {6}applied\n[\s\S]*approved {3}by Grace, [\s\S]*rows {7}1 reported, 1 done/)
  })
  const again = await run(folder, 'apply', id)
  expect(again).toMatchObject({ code: 1 })
  expect(again.errors.join()).toContain('Only a plan that waits for approval can be applied; this one is applied.')
})

test('pause, resume and stop change a plan that is under way', async () => {
  const folder = temporaryFolder()
  await withStorage(folder, async () => {})
  await run(folder, 'plan', 'chat', '--wait', '0')
  const id = await withStorage(
    folder,
    async ({ reconciliations }) => (await claimed({ reconciliations } as Storage)).id,
  )
  expect((await run(folder, 'pause', id)).text).toBe(`${id} is paused`)
  expect((await run(folder, 'resume', id)).text).toBe(`${id} is requested`)
  expect((await run(folder, 'stop', id, '--reason', 'wrong scope', '--by', 'Grace')).text).toBe(`${id} is stopped`)
  expect((await run(folder, 'show', id)).text).toContain('stopped: Stopped by Grace: wrong scope')
  expect((await run(folder, 'resume', id)).errors.join()).toContain('Only a paused plan can be resumed')
})

test('link remembers a decision by the ids of the plan, and unlink forgets it', async () => {
  const { folder } = await planned()
  const known = await run(folder, 'link', 'chat', '=bob', 'bob')
  expect(known).toMatchObject({ code: 0, errors: [], text: '=bob (id of =bob) has the account bob (U1)' })
  const given = await run(folder, 'link', 'chat', '77')
  expect(given.text).toBe('77 has no account, stored as given')
  expect(given.errors.join()).toContain('No row of the last plan of chat has "77"')
  expect((await run(folder, 'links', 'chat')).output).toHaveLength(2)
  expect((await run(folder, 'link', 'chat', '78', 'U1')).errors.join()).toContain('is linked to "id of =bob"')
  expect((await run(folder, 'unlink', 'chat', '77')).text).toBe('77 is no longer linked')
  expect((await run(folder, 'unlink', 'chat', '77')).errors.join()).toContain('chat has no link of "77"')
})

test('the operator named by --by neither applies a plan of, nor decides about, their own account', async () => {
  const { folder, id } = await planned()
  const refused = async (...args: string[]) => {
    const { code, errors } = await run(folder, ...args)
    expect([code, errors.join()]).toEqual([1, expect.stringMatching(/your own account. Ask another operator/)])
  }
  await refused('apply', id, '--by', 'Ada')
  await refused('link', 'chat', 'ada', '--by', 'ADA')
  await refused('link', 'chat', 'id of ada', 'U1', '--by', 'ada')
  await refused('link', 'chat', '77', 'ADA', '--by', 'ada')
  expect((await run(folder, 'link', 'chat', 'ada', 'U1', '--by', 'grace')).code).toBe(0)
  await refused('unlink', 'chat', 'id of ada', '--by', 'ada')
  expect((await run(folder, 'unlink', 'chat', 'id of ada', '--by', 'grace')).code).toBe(0)
})

test.each([
  ['--state must be one of', 'rows', 'x', '--state', 'lost'],
  ['--kind must be one of', 'rows', 'x', '--kind', 'lost'],
  ['--wait must be a whole number', 'plan', 'chat', '--wait', 'soon'],
  ['--limit must be a whole number', 'show', 'x', '--limit', '0'],
  ['--reason and --by have at most', 'apply', 'x', '--reason', 'x'.repeat(2001)],
])('wrong usage: %s', async (message, ...args) => {
  const { code, errors } = await run(temporaryFolder(), ...args)
  expect(code).toBe(2)
  expect(errors[0]).toContain(message)
})

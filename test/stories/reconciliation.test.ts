import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import {
  embeddedSystem,
  openGatewayData,
  type Person,
  PlanDesk,
  type StorySystem,
  storyFolder,
  storyKey,
  tableSystem,
  writeStoryConfig,
} from '#testing/stories/reconciliation-story.ts'

const reconciliation = (name: string, more = ''): string => `apiVersion: gatehouse.dev/v1
kind: Reconciliation
metadata: { name: ${name} }
spec:
  source: { target: people, filter: "(!(active=false))" }
  target: chat
  scope: { filter: "(!(type=*))" }
  attributes:
    - { name: mail, source: mail, sourceType: user }
    - { name: active, source: "true", sourceType: static }
  correlation: [login, { attribute: mail }]
  missing: create
  different: change
  extra: deactivate
  limits: { percent: 100, accounts: 1000 }
  workflows: { create: chat-join, change: chat-join, deactivate: chat-leave }
  ${more}
---
`

/** A workflow that asks before an account is deactivated. */
const approvedLeave = `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: chat-ask }
spec:
  tasks:
    - taskType: approval
      label: Deactivate an account
      emailTemplate: An account is to be deactivated.
      mailAttr: mail
      failureEmailSubject: Denied
      failureEmailMsg: Denied
      approvers: [{ scope: dn, constraint: "o=Tremolo" }]
      onSuccess:
        - { taskType: addAttribute, name: active, value: "false" }
        - { taskType: provision, target: chat, sync: true, attributes: [active] }
---
`

const person = (login: string, more: Person = {}): Person => ({ mail: `${login}@example.com`, active: 'true', ...more })
const people = (logins: readonly string[]) => Object.fromEntries(logins.map((login) => [login, person(login)]))

type Side = 'a database' | 'tables'
const pairs: readonly (readonly [Side, Side])[] = [
  ['tables', 'a database'],
  ['a database', 'tables'],
  ['a database', 'a database'],
]

/** Two systems and a data folder, before the gateway starts. */
async function systems(from: Side, to: Side) {
  const folder = storyFolder()
  const dataFolder = join(folder, 'data')
  const storage = await openGatewayData(dataFolder)
  await storage.ready()
  const open = (side: Side, name: string): StorySystem =>
    side === 'tables' ? tableSystem(join(folder, `${name}.db`)) : embeddedSystem(name, storage)
  const [source, target] = [open(from, 'people'), open(to, 'chat')]
  const start = async (more: string, options: Partial<Parameters<typeof startGatewayProcess>[0]> = {}) => {
    const config = writeStoryConfig(folder, { source, target, more })
    return await startStory({ config, dataFolder, environment: storyKey, ...options })
  }
  return { folder, dataFolder, storage, source, target, start, desk: new PlanDesk(storage) }
}

async function startStory(options: Parameters<typeof startGatewayProcess>[0]): Promise<GatewayProcess> {
  const gateway = await startGatewayProcess(options)
  onTestFinished(async () => void (await gateway.stop()))
  return gateway
}

async function kill({ process }: GatewayProcess): Promise<void> {
  const ended = once(process, 'exit')
  process.kill('SIGKILL')
  await ended
}

describe.each(pairs)('drift from %s to %s', (from, to) => {
  test('of every kind is found, planned and applied, and then nothing differs', async () => {
    const { source, target, desk, start, dataFolder } = await systems(from, to)
    await source.add({ ...people(['ann', 'bea', 'carl', 'fay']), gone: person('gone', { active: 'false' }) })
    await target.add({
      ann: person('ann'),
      carl: person('carl', { mail: 'old@example.com' }),
      eddy: person('eddy'),
      bot: person('bot', { type: 'service' }),
      fay1: person('fay1', { mail: 'fay@example.com' }),
      fay2: person('fay2', { mail: 'fay@example.com' }),
    })
    const gateway = await start(reconciliation('chat'))
    const first = await desk.plan('chat')
    expect(await desk.lines(first.plan.id)).toEqual([
      'ambiguous fay> report reported',
      'different carl>carl change open',
      'extra >eddy deactivate open',
      'missing bea> create open',
    ])
    expect(first.plan.counts).toMatchObject({ source: 4, agree: 1 })
    const applied = await desk.apply(first.plan.id)
    expect(applied).toMatchObject({ plan: { state: 'applied' }, progress: { done: 3, failed: 0, skipped: 0 } })
    expect(await target.read()).toEqual({
      ann: person('ann'),
      bea: person('bea'),
      carl: person('carl'),
      eddy: person('eddy', { active: 'false' }),
      bot: person('bot', { type: 'service' }),
      fay1: person('fay1', { mail: 'fay@example.com' }),
      fay2: person('fay2', { mail: 'fay@example.com' }),
    })
    await desk.link('chat', 'fay', 'fay1')
    const second = await desk.plan('chat')
    expect(await desk.lines(second.plan.id)).toEqual(['different fay>fay1 change open', 'extra >fay2 deactivate open'])
    expect((await desk.apply(second.plan.id)).progress).toMatchObject({ done: 2, failed: 0 })
    expect(await target.read()).toMatchObject({
      fay: person('fay'),
      fay2: person('fay2', { mail: 'fay@example.com', active: 'false' }),
    })
    const last = await desk.plan('chat')
    expect(await desk.lines(last.plan.id)).toEqual([])
    expect(last.plan.counts).toMatchObject({ source: 4, agree: 6 })
    const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
    expect(metrics).toContain('gatehouse_reconciliation_accounts{reconciliation="chat",state="agree"} 6')
    expect(metrics).toContain('gatehouse_reconciliation_differs_since_timestamp_seconds{reconciliation="chat"} 0')
    expect(await commandOutput('reconcile', 'list', '--data', dataFolder)).toContain('6 agree')
  }, 180_000)
})

/** Kills the gateway while it compares; returns the plan, and the gateway that continues it. */
async function killComparing(desk: PlanDesk, start: () => Promise<GatewayProcess>) {
  let gateway = await start()
  for (let tries = 0; tries < 20; tries++) {
    const id = await desk.request('chat')
    await until(async () => ((await desk.plans.get(id))?.progress.open ?? 0) > 0, 120_000)
    await kill(gateway)
    const { plan, progress } = await desk.wait(id, 'comparing', 'planned')
    gateway = await start()
    if (plan.state === 'comparing') return { id, gateway, stored: progress.open }
    // It was faster: the next plan replaces this one.
  }
  throw new Error('every comparison ended before the gateway was killed')
}

/** All rows of a plan, each as `kind login`. */
async function linesOfAll({ plans }: PlanDesk, id: string): Promise<string[]> {
  const lines: string[] = []
  for (let after = -1; ; ) {
    const rows = await plans.rows(id, { limit: 500, after })
    const last = rows.at(-1)
    if (last === undefined) return lines
    lines.push(...rows.map(({ difference: { kind, source, target } }) => `${kind} ${(source ?? target)?.login}`))
    after = last.number
  }
}

test('a gateway that is killed while it compares and while it applies finishes, and changes each account once', async () => {
  const { storage, source, target, desk, start } = await systems('tables', 'tables')
  const named = (kind: string, count: number) => Array.from({ length: count }, (_, i) => `${kind}${i}`)
  const [same, joins, moves, leaves] = [named('same', 600), named('join', 700), named('move', 350), named('leave', 350)]
  const drifts = [...joins.map((one) => `missing ${one}`), ...moves.map((one) => `different ${one}`)]
  const lines = [...drifts, ...leaves.map((one) => `extra ${one}`)].sort()
  const writes = lines.length
  await source.add(people([...same, ...joins, ...moves]))
  await target.add({
    ...people([...same, ...leaves]),
    ...Object.fromEntries(moves.map((login) => [login, person(login, { mail: 'old@example.com' })])),
  })
  const { database } = target as ReturnType<typeof tableSystem>
  database.exec(`create table writes (login text not null);
    create trigger inserted after insert on persons begin insert into writes values (new.login); end;
    create trigger updated after update on persons begin insert into writes values (new.login); end`)
  const { id, gateway, stored } = await killComparing(desk, () => start(reconciliation('chat')))
  expect(stored).toBeLessThan(writes)
  const planned = await desk.wait(id, 'planned', 'failed', 'stopped')
  expect(planned).toMatchObject({
    plan: {
      state: 'planned',
      counts: {
        ...{ source: 1650, target: 1300, agree: 600 },
        differences: { missing: 700, different: 350, extra: 350, ambiguous: 0, unknown: 0 },
        actions: { create: 700, change: 350, deactivate: 350 },
      },
    },
    progress: { open: writes },
  })
  expect((await linesOfAll(desk, id)).sort()).toEqual(lines)
  await desk.plans.approve(id, { by: { login: 'Grace' } })
  await until(async () => ((await desk.plans.get(id))?.progress.done ?? 0) > 100, 120_000)
  await kill(gateway)
  const { plan, progress } = await desk.wait(id, 'applying')
  expect(plan.state).toBe('applying')
  expect(progress.open).toBeGreaterThan(0)
  await start(reconciliation('chat'))
  expect(await desk.wait(id, 'applied', 'failed', 'stopped')).toMatchObject({
    plan: { state: 'applied' },
    progress: { done: writes, failed: 0, skipped: 0 },
  })
  expect(await target.read()).toEqual({
    ...(await source.read()),
    ...Object.fromEntries(leaves.map((login) => [login, person(login, { active: 'false' })])),
  })
  const once = database.prepare('select count(*) as writes, count(distinct login) as logins from writes').get()
  expect(once).toMatchObject({ writes, logins: writes })
  const runs = new Map<string, number>()
  let after: string | undefined
  do {
    const page = await storage.runs.list({ limit: 500, after })
    for (const { head } of page.runs) runs.set(head.subject, (runs.get(head.subject) ?? 0) + 1)
    after = page.next
  } while (after !== undefined)
  expect(runs.size).toBe(writes)
  expect(Math.max(...runs.values())).toBe(1)
  const second = await desk.plan('chat')
  expect(second.plan.counts).toMatchObject({ source: 1650, target: 2000, agree: 2000 })
  expect(await linesOfAll(desk, second.plan.id)).toEqual([])
}, 600_000)

test('a plan is applied with the configuration that made it, whose limits may change', async () => {
  const { source, target, desk, start } = await systems('tables', 'tables')
  await source.add(people(['ann']))
  const before = await start(reconciliation('chat'))
  const first = await desk.plan('chat')
  await before.stop()
  const wider = reconciliation('chat').replace('accounts: 1000', 'accounts: 2000')
  const between = await start(wider)
  expect((await desk.apply(first.plan.id)).progress).toMatchObject({ done: 1 })
  await source.add(people(['bea']))
  const second = await desk.plan('chat')
  await between.stop()
  await start(wider.replace('correlation: [login, { attribute: mail }]', 'correlation: [login]'))
  expect((await desk.apply(second.plan.id)).plan).toMatchObject({
    state: 'failed',
    problem: expect.stringContaining('was changed. Make a new plan.'),
  })
  expect(await target.read()).toEqual(people(['ann']))
}, 180_000)

test('a schedule applies plans within the limits, through the approvals of their workflows', async () => {
  const { storage, source, target, desk, start } = await systems('tables', 'a database')
  await source.add(people(['ann', 'bea']))
  await target.add(people(['ann', 'eddy']))
  const always = '{ seconds: "*", minutes: "*", hours: "*", dayOfMonth: "*", month: "*", dayOfWeek: "?", year: "*" }'
  const asks = reconciliation('chat', `schedule: ${always}\n  apply: automatic`)
  await start(asks.replace('deactivate: chat-leave', 'deactivate: chat-ask').concat(approvedLeave))
  await until(async () => 'bea' in (await target.read()), 60_000)
  const openApprovals = async () =>
    (await storage.approvals.listOpen(new Date(Date.now() + 1000), { limit: 10 })).approvals.length
  let waiting: string | undefined
  await until(async () => {
    waiting = (await desk.plans.differencesOf('eddy'))[0]?.row.state
    return waiting === 'skipped' && (await openApprovals()) > 0
  }, 60_000)
  // Later plans find the account too, and start no second run.
  expect(await openApprovals()).toBe(1)
  expect((await target.read())['eddy']).toEqual(person('eddy'))
  const [plan] = await desk.plans
    .list({ limit: 500 })
    .then((all) => all.filter(({ approval }) => approval !== undefined))
  expect(plan).toMatchObject({
    requestedBy: 'gatehouse',
    approval: { by: 'its schedule' },
    scheduled: expect.any(Date),
  })
}, 180_000)

test('limits stop a mass deactivation, and a source that cannot be read deactivates no one', async () => {
  const { source, target, desk, start } = await systems('tables', 'a database')
  const logins = Array.from({ length: 100 }, (_, i) => `user${i}`)
  await source.add(people(logins))
  await target.add(people([...logins, 'eddy']))
  await start(reconciliation('chat', '').replace('accounts: 1000', 'accounts: 10'))
  if (!('database' in source)) throw new Error('the source is a table')
  const { database } = source as ReturnType<typeof tableSystem>
  database.exec('alter table persons rename to persons_away')
  const id = await desk.request('chat')
  const waiting = await desk.wait(id, 'paused', 'failed', 'planned', 'stopped')
  expect(['paused', 'failed']).toContain(waiting.plan.state)
  expect(waiting.plan.problem).toBeDefined()
  expect((await desk.plans.drift()).size).toBe(0)
  database.exec('alter table persons_away rename to persons')
  if (waiting.plan.state === 'paused') await desk.resume(id)
  database.exec(`update persons set active = 'false' where login <> 'user1'`)
  const stopped = waiting.plan.state === 'paused' ? await desk.wait(id, 'stopped', 'planned') : await desk.plan('chat')
  expect(stopped.plan).toMatchObject({ state: 'stopped', problem: expect.stringContaining('deactivate 100 of 101') })
  await expect(desk.apply(stopped.plan.id)).rejects.toMatchObject({ code: 'CONFLICT' })
  database.exec(`update persons set active = 'true'`)
  const allowed = await desk.plan('chat')
  expect(await desk.lines(allowed.plan.id)).toEqual(['extra >eddy deactivate open'])
  // Eddy gets a job before the plan is applied.
  await source.add(people(['eddy']))
  expect((await desk.apply(allowed.plan.id)).progress).toMatchObject({ skipped: 1, done: 0 })
  expect(Object.values(await target.read()).filter(({ active }) => active === 'false')).toEqual([])
}, 180_000)

import { expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { claimOne, minute, newApproval, newRun, stepRecord } from '#testing/databases/workflow-stores.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { workflowCommand } from './workflow.ts'

const frames = [{ workflow: 'join', hash: 'h', place: '', next: 0 }]
const data = { format: 1, frames, steps: 0, user: { mail: 'private@example.com' } }
const incident = { task: 'join:0', code: 'TARGET_FAILED', message: 'no\u001b[2J', maySkip: true }

async function withStorage(folder: string, work: (storage: Storage) => Promise<void>): Promise<void> {
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger })
  try {
    await work(storage)
  } finally {
    await storage.close()
  }
}

/** A folder with one run that waits for an approval and one incident, as a gateway leaves it. */
async function dataFolder(): Promise<string> {
  const folder = temporaryFolder()
  await withStorage(folder, async ({ runs }) => {
    await runs.start(
      newRun('stuck', { head: { workflow: 'join', subject: 'ada', caller: 'svc', reason: 'new here' }, data }),
    )
    const {
      head: { id },
      fence,
    } = await claimOne(runs, minute)
    const steps = [stepRecord(0, { outcome: 'failed', error: 'refused' })]
    await runs.commit({
      run: { id, fence },
      next: { state: 'incident', incident },
      data,
      touched: true,
      effects: { steps },
    })
    const approval = newApproval('a-1', { approvers: [userRef('boss'), userRef('chief')] })
    await runs.start(newRun('waiting', { head: { subject: 'bob' }, state: { state: 'waiting' } }), { approval })
  })
  return folder
}

async function run(folder: string, ...args: string[]) {
  const output: string[] = []
  const errors: string[] = []
  const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
  const code = await workflowCommand([...args, '--data', folder], io)
  return { code, output, errors }
}

const ids = async (folder: string, ...args: string[]): Promise<string[]> =>
  JSON.parse((await run(folder, 'list', '--output', 'json', ...args)).output.join('')).map(
    ({ id }: { id: string }) => id,
  )

test('list prints the matching runs, latest first', async () => {
  const folder = await dataFolder()
  expect(await ids(folder)).toEqual(['waiting', 'stuck'])
  expect(await ids(folder, '--limit', '1')).toEqual(['waiting'])
  expect(await ids(folder, '--state', 'incident', '--state', 'failed')).toEqual(['stuck'])
  expect(await ids(folder, '--name', 'join')).toEqual(['stuck'])
  expect(await ids(folder, '--subject', 'BOB')).toEqual(['waiting'])
  expect(await ids(folder, '--requestor', 'nobody')).toEqual([])
  expect(await ids(folder, '--unfinished')).toEqual(['stuck'])
  const { output } = await run(folder, 'list', '--name', 'join')
  expect(output[0]).toMatch(/^[\d-]+T[\d:.]+Z incident {2}stuck join, for ada, by alice \(called by svc\)$/)
  expect(output[1]).toBe('    join:0: TARGET_FAILED: no\ufffd[2J')
})

test('list shows unfinished changes, and why a run was cancelled', async () => {
  const folder = await dataFolder()
  await withStorage(folder, async ({ runs }) => {
    await runs.start(newRun('half', { head: { subject: 'ada' }, resource: 'people User id 7', touched: true }))
  })
  expect(await ids(folder, '--unfinished')).toEqual(['half', 'stuck'])
  await run(folder, 'cancel', 'half', '--by', 'idp', '--reason', 'A later change replaced it.')
  expect(await ids(folder, '--unfinished')).toEqual(['stuck'])
  const { output } = await run(folder, 'list', '--state', 'cancelled')
  expect(output.at(-1)).toBe('    idp requested to cancel it: A later change replaced it.')
})

test('a list without runs says so on standard error, also with --output json', async () => {
  const folder = temporaryFolder()
  await withStorage(folder, async (storage) => await storage.ready())
  const empty = { code: 0, output: [] }
  expect(await run(folder, 'list')).toEqual({
    ...empty,
    errors: ['There are no stored runs. A run that ended within its SCIM call is only in the audit.'],
  })
  expect(await run(folder, 'list', '--unfinished')).toEqual({ ...empty, errors: ['There are no unfinished changes.'] })
  for (const args of [
    ['--state', 'incident'],
    ['--name', 'join'],
  ]) {
    expect(await run(folder, 'list', ...args)).toEqual({
      ...empty,
      errors: ['There are no stored runs that match. A run that ended within its SCIM call is only in the audit.'],
    })
  }
  expect(await run(folder, 'list', '--output', 'json', '--subject', 'ada')).toEqual({
    code: 0,
    output: ['[]'],
    errors: ['There are no stored runs that match. A run that ended within its SCIM call is only in the audit.'],
  })
  expect((await run(await dataFolder(), 'list')).errors).toEqual([])
})

test('a run is shown with its timeline and approvals, and without its data', async () => {
  const folder = await dataFolder()
  const stuck = (await run(folder, 'show', 'stuck')).output.join('\n')
  expect(stuck).toContain('state      incident: retry')
  expect(stuck).toContain('reason     new here')
  expect(stuck).toMatch(/create-user:0 provision: failed \(1000 ms\)\n {6}refused/)
  const waiting = (await run(folder, 'show', 'waiting')).output.join('\n')
  expect(waiting).toContain('open "Manager approval" a-1, approvers: boss, chief')
  for (const id of ['stuck', 'waiting']) {
    const json = (await run(folder, 'show', id, '--output', 'json')).output.join('\n')
    expect(JSON.parse(json)).toMatchObject({ id, timeline: expect.any(Array), approvals: expect.any(Array) })
    expect(stuck + json).not.toContain('private@example.com')
  }
})

test('an incident is retried, and skipped, and the audit has the operator and the reason', async () => {
  const folder = await dataFolder()
  expect(await run(folder, 'retry', 'stuck', '--by', 'root')).toMatchObject({ code: 0, output: ['stuck is ready'] })
  expect((await run(folder, 'retry', 'stuck')).code).toBe(1)
  await withStorage(folder, async ({ runs, audit }) => {
    const {
      head: { id },
      fence,
    } = await claimOne(runs)
    await runs.commit({ run: { id, fence }, next: { state: 'incident', incident }, data, touched: true, effects: {} })
    const { rows } = await audit.list({ workflowId: 'stuck', limit: 10 })
    expect(rows).toMatchObject([{ requestor: 'root', subject: 'ada', value: expect.stringContaining('retry') }])
  })
  expect((await run(folder, 'skip', 'stuck', '--reason', 'done by hand')).code).toBe(0)
  await withStorage(folder, async ({ runs, audit }) => {
    expect(await runs.get('stuck')).toMatchObject({ state: 'ready', data: { frames: [{ next: 1 }] } })
    const [row] = (await audit.list({ workflowId: 'stuck', limit: 1 })).rows
    expect(row).toMatchObject({ reason: 'done by hand', requestor: expect.stringContaining('command line') })
    expect((await audit.verify()).problems).toEqual([])
  })
})

test("an approval can't be skipped, nor a run be changed in the name of a user who is involved", async () => {
  const folder = await dataFolder()
  await withStorage(folder, async ({ runs }) => {
    await runs.start(newRun('undecided', { head: { workflow: 'join', subject: 'ada' }, data }))
    const {
      head: { id },
      fence,
    } = await claimOne(runs, minute)
    const next = { state: 'incident', incident: { ...incident, code: 'NO_APPROVERS', maySkip: false } } as const
    await runs.commit({ run: { id, fence }, next, data, touched: false, effects: {} })
  })
  const skipped = await run(folder, 'skip', 'undecided', '--reason', 'no one is there')
  expect([skipped.code, skipped.errors]).toEqual([1, [expect.stringContaining("an approval can't be skipped")]])
  expect((await run(folder, 'show', 'undecided')).output.join('\n')).toContain('incident: retry or cancel it')
  for (const action of ['retry', 'skip', 'cancel']) {
    const { code, errors } = await run(folder, action, 'stuck', '--reason', 'mine', '--by', 'Ada')
    expect([code, errors]).toEqual([1, [expect.stringContaining('a request of their own')]])
  }
})

test('a run is cancelled with its approvals; an ended one stays unchanged', async () => {
  const folder = await dataFolder()
  const cancelled = await run(folder, 'cancel', 'waiting', '--reason', 'left')
  expect(cancelled).toMatchObject({ code: 0, output: ['waiting is cancelled'] })
  await withStorage(folder, async ({ approvals }) => {
    expect(await approvals.get('a-1')).toMatchObject({ state: 'cancelled' })
  })
  expect(await run(folder, 'cancel', 'waiting', '--reason', 'left')).toMatchObject({ code: 1 })
})

test('an intervention on a run that changed since it was shown is refused', async () => {
  const folder = await dataFolder()
  const { fence } = JSON.parse((await run(folder, 'show', 'stuck', '--output', 'json')).output.join(''))
  const stale = await run(folder, 'retry', 'stuck', '--fence', String(fence - 1))
  expect([stale.code, stale.errors]).toEqual([1, [expect.stringContaining('the run has changed')]])
  expect((await run(folder, 'retry', 'stuck', '--fence', String(fence))).code).toBe(0)
})

test('a missing run and a missing database are reported', async () => {
  const folder = await dataFolder()
  expect((await run(folder, 'show', 'nothing')).errors[0]).toContain('there is no stored run "nothing"')
  expect((await run(temporaryFolder(), 'list')).errors[0]).toContain('there is no database')
})

test.each([
  [['remove', 'x'], /unknown action "remove"/],
  [['list', '--state', 'done'], /--state/],
  [['list', '--limit', 'x'], /--limit/],
  [['skip', 'x'], /--reason/],
  [['cancel', 'x', '--reason', ''], /--reason/],
  [['retry', 'x', '--fence', '-1'], /--fence/],
  [['retry', 'x', '--fence', 'x'], /--fence/],
  [['show'], /missing argument: /],
])('%j is wrong usage', async (args, problem) => {
  const { code, errors } = await run(temporaryFolder(), ...args)
  expect(code).toBe(2)
  expect(errors[0]).toMatch(problem)
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { loadConfiguration } from '#config/load/load.ts'
import { Attributes } from '#identity/attributes.ts'
import { entryIdentity, type UserRef } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { onEachDatabase, temporaryFolder } from '#testing/databases/databases.ts'
import type { GivenCall } from '#testing/workflows/given-call.ts'
import { escalationTimer } from '#workflows/approvals/open-approval.ts'
import { RunWorker } from '#workflows/runs/run-worker.ts'
import { TimerLoop } from '#workflows/timers/timer-loop.ts'
import { createRuntime, type Runtime } from './runtime.ts'
import { createServices } from './services.ts'
import { openStorage } from './stores.ts'

const configuration = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata:
  name: people
spec:
  className: targets.Database
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata:
  name: hire
spec:
  tasks:
    - taskType: provision
      target: people
      sync: true
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata:
  name: vault
spec:
  tasks:
    - taskType: addGroup
      name: vault
      expiresAfter: $for$
    - taskType: approval
      label: The vault for \${cn}
      emailTemplate: Please decide about \${cn}.
      mailAttr: mail
      failureEmailSubject: No vault
      failureEmailMsg: "Because: \${reason}"
      approvers:
        - scope: filter
          constraint: (approves=$what$)
      escalationPolicy:
        escalations:
          - executeAfterTime: 1
            executeAfterUnits: sec
            azRules:
              - scope: group
                constraint: cn=managers,ou=groups,ou=people,o=Tremolo
      onSuccess:
        - taskType: provision
          target: people
          sync: true
          onlyPassedInAttributes: true
          attributes: [cn]
      onFailure:
        - taskType: addAttribute
          name: refused
          value: \${reason}
        - taskType: provision
          target: people
          sync: true
          attributes: [refused]
    - taskType: addAttribute
      name: vaultUser
      value: "true"
    - taskType: provision
      target: people
      sync: true
      onlyPassedInAttributes: true
      attributes: [vaultUser]
`

/** One process: the test decides when waiting work is handled. */
async function start(url: string) {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'all.yaml'), configuration)
  const loaded = await loadConfiguration({
    folder,
    secretsFolder: folder,
    environment: {},
    catalog,
    strictSecrets: true,
  })
  if (loaded.configuration === undefined) throw new Error(JSON.stringify(loaded.issues))
  const storage = openStorage({ url, clock: systemClock, log: silentLogger })
  onTestFinished(() => storage.close())
  await storage.ready()
  const services = createServices({
    storage,
    configFolder: folder,
    dataFolder: folder,
    clock: systemClock,
    log: silentLogger,
    environment: {},
  })
  const runtime: Runtime = await createRuntime(loaded.configuration, services)
  onTestFinished(() => runtime.close())
  const worker = new RunWorker(services, (work) => work(runtime.workflows.workflows), { sweepMillis: 20 })
  onTestFinished(() => worker.close())
  worker.start()
  const timers = new TimerLoop({ store: storage.timers, log: silentLogger })
  timers.on(escalationTimer, (timer) => runtime.workflows.approvals.escalate(timer))
  const directory = storage.userDirectory({ name: 'people' })
  onTestFinished(() => directory.close())
  const run = (name: string, userID: string, more: GivenCall & { attributes?: Record<string, string[]> } = {}) => {
    const { attributes = {}, head, ...call } = more
    const user = { userID, attributes: Attributes.from({ cn: [userID], ...attributes }), groups: [], ...call.user }
    return runtime.workflows.runs.run({
      head: { workflow: name, requester: 'asker', ...head },
      params: {},
      ...call,
      user,
    })
  }
  const hire = (userID: string, groups: string[] = [], attributes: Record<string, string[]> = {}) =>
    run('hire', userID, {
      user: { userID, groups, attributes: Attributes.from({ cn: [userID], mail: [`${userID}@x.org`], ...attributes }) },
    })
  await hire('boss', ['managers'], { approves: ['vault'] })
  await hire('chief', ['managers'])
  await hire('ann', ['staff'])
  await hire('asker')
  const ask = (params: Record<string, string>, more: Parameters<typeof run>[2] = {}) =>
    run('vault', 'ann', { keepGroups: true, params, ...more })
  const refOf = async (login: string): Promise<UserRef> => ({
    identity: entryIdentity('people', (await directory.lookupUserByLogin(login))?.id ?? ''),
    login,
  })
  const [boss, chief] = await Promise.all(['boss', 'chief'].map(refOf))
  if (boss === undefined || chief === undefined) throw new Error('no approvers')
  return { storage, runtime, timers, directory, ask, refOf, boss, chief, desk: runtime.workflows.approvals }
}

onEachDatabase('a workflow with an approval', (freshUrl) => {
  test('waits, continues when it is approved, and its access expires', async () => {
    const { storage, runtime, directory, ask, boss, desk } = await start(await freshUrl())
    const { id, status } = await ask({ for: '1s', what: 'vault' })
    expect(status).toBe('waiting')
    const [approval] = (await desk.list(boss, { limit: 5 })).approvals
    expect(approval).toMatchObject({
      label: 'The vault for ann',
      run: { id, workflow: 'vault', requester: 'asker' },
    })
    expect((await directory.lookupUserByLogin('ann'))?.groups).toEqual(['staff'])
    await desk.decide(boss, { approval: approval?.id ?? '', approve: true, comment: 'fine' })
    await until(async () => (await storage.runs.get(id))?.state === 'completed')
    const given = await directory.lookupUserByLogin('ann')
    expect(given?.groups.toSorted()).toEqual(['staff', 'vault'])
    expect(given?.attributes.values('vaultUser')).toEqual(['true'])
    const { rows } = await storage.audit.list({ workflowId: id, limit: 50 })
    expect(rows.find(({ kind }) => kind === 'group')).toMatchObject({ value: 'vault', approval: approval?.id })
    await until(async () => (await runtime.workflows.revokeDue()) === 1)
    await until(async () => (await directory.lookupUserByLogin('ann'))?.groups.includes('vault') === false)
    expect((await directory.lookupUserByLogin('ann'))?.groups).toEqual(['staff'])
    const { rows: after } = await storage.audit.list({ requestor: 'gatehouse', limit: 50 })
    expect(after).toMatchObject([{ action: 'delete', kind: 'group', value: 'vault', target: 'people', subject: 'ann' }])
    expect((await storage.audit.verify()).problems).toEqual([])
  })

  test('a denial runs onFailure and nothing after it, and mails the requester', async () => {
    const { storage, directory, ask, boss, desk } = await start(await freshUrl())
    const { id } = await ask({ for: '8h', what: 'vault' })
    const [approval] = (await desk.list(boss, { limit: 5 })).approvals
    await desk.decide(boss, { approval: approval?.id ?? '', approve: false, comment: 'too risky' })
    await until(async () => (await storage.runs.get(id))?.state === 'denied')
    const left = await directory.lookupUserByLogin('ann')
    expect(left?.groups).toContain('staff')
    expect(left?.attributes.values('refused')).toEqual(['too risky'])
    expect(left?.attributes.has('vaultUser')).toBe(false)
    const mails = await storage.mails.claim(10, 60_000)
    expect(mails.map(({ recipient, subject, text }) => [recipient, subject, text]).sort()).toEqual([
      ['asker@x.org', 'No vault', 'Because: too risky'],
      ['boss@x.org', 'Approval needed: The vault for ann', 'Please decide about ann.'],
    ])
  })

  test('a request value that would widen the rule finds no approver, so the escalation is asked at once', async () => {
    const { storage, ask, chief, desk } = await start(await freshUrl())
    const { id } = await ask({ for: '8h', what: '*)(uid=*' })
    const [approval] = (await storage.approvals.listOfRun(id)).map((one) => one.id)
    expect((await storage.approvals.get(approval ?? ''))?.approvers.map(({ login }) => login).sort()).toEqual([
      'boss',
      'chief',
    ])
    expect((await desk.list(chief, { limit: 5 })).approvals).toMatchObject([{ id: approval, run: { id } }])
  })

  test('approvers get a preview, which changes nothing', async () => {
    const { storage, directory, ask, boss, refOf, desk } = await start(await freshUrl())
    const { id } = await ask({ for: '8h', what: 'vault' }, { attributes: { userPassword: ['hush'] }, password: 'hush' })
    const [approval] = (await desk.list(boss, { limit: 5 })).approvals
    const approvalId = approval?.id ?? ''
    const before = await directory.lookupUserByLogin('ann')
    const run = await storage.runs.get(id)
    const preview = await desk.preview(boss, approvalId)
    expect(preview).toMatchObject({
      steps: [
        { kind: 'user', action: 'change', target: 'people', name: 'ann', attributes: [], joins: ['vault'], leaves: [] },
        { kind: 'end', target: 'people', of: 'group', name: 'vault' },
        { kind: 'user', action: 'change', attributes: [{ name: 'vaultUser', before: [], after: ['true'] }] },
      ],
      whole: true,
    })
    expect(JSON.stringify(preview)).not.toContain('hush')
    for (const login of ['chief', 'ann', 'asker', 'nobody']) {
      expect(await desk.preview(await refOf(login), approvalId)).toBeUndefined()
    }
    expect(await desk.preview(boss, 'none')).toBeUndefined()
    expect([await directory.lookupUserByLogin('ann'), await storage.runs.get(id)]).toEqual([before, run])
    expect((await storage.mails.claim(10, 60_000)).map(({ recipient }) => recipient)).toEqual(['boss@x.org'])
    expect((await storage.audit.list({ workflowId: id, limit: 5 })).rows).toEqual([])
    expect((await storage.runs.getWhole(id))?.secret).toEqual(expect.any(String))

    await desk.decide(boss, { approval: approvalId, approve: true })
    expect(await desk.preview(boss, approvalId)).toBeUndefined()
    await until(async () => (await storage.runs.get(id))?.state === 'completed')
    const after = await directory.lookupUserByLogin('ann')
    expect([after?.groups.toSorted(), after?.attributes.values('vaultUser')]).toEqual([['staff', 'vault'], ['true']])
  })

  test('without a decision, the approval is escalated', async () => {
    const { storage, timers, ask, chief, desk } = await start(await freshUrl())
    const { id } = await ask({ for: '8h', what: 'vault' })
    expect((await desk.list(chief, { limit: 5 })).approvals).toEqual([])
    await until(async () => (await timers.sweep()) === 1)
    const [approval] = (await desk.list(chief, { limit: 5 })).approvals
    expect(approval).toMatchObject({ escalation: 1 })
    await desk.decide(chief, { approval: approval?.id ?? '', approve: true })
    await until(async () => (await storage.runs.get(id))?.state === 'completed')
  })
})

async function until(done: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 300; i++) {
    if (await done()) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('it did not happen')
}

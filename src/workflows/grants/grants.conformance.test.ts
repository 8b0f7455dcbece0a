import { describe, expect, onTestFinished, test } from 'vitest'
import { issuerIdentity } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { NewGrant } from '#sdk/workflow/grant.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { auditRow, newRun } from '#testing/databases/workflow-stores.ts'
import { revokeDue } from './grant-revoker.ts'
import { OwnGrants } from './own-grants.ts'
import { removalWorkflow } from './removal-workflow.ts'

const day = 24 * 60 * 60_000
const ago = { inMillis: -1 }

const grant = (name: string, expires: NewGrant['expires'] = ago, more: Partial<NewGrant> = {}): NewGrant => ({
  id: newId(),
  target: 'store',
  subject: 'ann',
  kind: 'group',
  name,
  expires,
  run: 'run-0',
  ...more,
})

async function processAt(url: string): Promise<Storage> {
  const storage = openStorage({ url, clock: systemClock, log: silentLogger })
  onTestFinished(() => storage.close())
  await storage.ready()
  return storage
}

/** Handles due grants like one process; returns the calls it prepared runs for. */
async function sweep(storage: Storage, meanwhile: (call: WorkflowCall) => Promise<void> = async () => {}) {
  const calls: WorkflowCall[] = []
  const prepare = async (call: WorkflowCall) => {
    await meanwhile(call)
    calls.push(call)
    return newRun(newId(), {
      head: { workflow: call.head.workflow, subject: call.user.userID, requester: call.head.requester },
    })
  }
  const { grants, runs: store } = storage
  const revoked = await revokeDue({ grants, store, runs: { prepare }, log: silentLogger })
  return { revoked, calls }
}

const started = async (storage: Storage) => (await storage.runs.list({ limit: 500 })).runs

onEachDatabase('access that ends', (freshUrl) => {
  describe('an expired grant', () => {
    test('is revoked, and one run starts that removes the access', async () => {
      const storage = await processAt(await freshUrl())
      await storage.grants.add([grant('vault'), grant('later', { inMillis: day })])
      const { revoked, calls } = await sweep(storage)
      expect(revoked).toBe(1)
      expect(calls).toMatchObject([
        {
          head: {
            workflow: removalWorkflow,
            requester: 'gatehouse',
            reason: 'The access expired.',
          },
          user: { userID: 'ann', groups: [] },
          keepGroups: true,
          asynchronous: true,
          params: { accessTarget: 'store', accessKind: 'group', accessName: 'vault' },
        },
      ])
      expect(await started(storage)).toMatchObject([
        { head: { workflow: removalWorkflow, subject: 'ann' }, state: 'ready' },
      ])
      expect((await sweep(storage)).revoked).toBe(0)
      expect(await storage.grants.ofSubject('ann')).toMatchObject([{ name: 'later' }])
      const [run] = await started(storage)
      expect(await storage.grants.endedOf('ann')).toMatchObject([{ name: 'vault', removal: run?.head.id }])
    })

    test('is revoked by one of two concurrent processes', async () => {
      const url = await freshUrl()
      const [one, two] = [await processAt(url), await processAt(url)]
      await one.grants.add(Array.from({ length: 120 }, (_, i) => grant(`g${i}`, ago, { subject: `s${i}` })))
      const [first, second] = await Promise.all([sweep(one), sweep(two)])
      expect(first.revoked + second.revoked).toBe(120)
      expect(await started(one)).toHaveLength(120)
    })

    test('is kept if it was extended just before', async () => {
      const storage = await processAt(await freshUrl())
      const given = grant('vault')
      await storage.grants.add([given])
      const { revoked } = await sweep(storage, async () => {
        await storage.grants.extend(given.id, { inMillis: day }, 'later')
      })
      expect(revoked).toBe(0)
      expect(await started(storage)).toEqual([])
      expect(await storage.grants.ofSubject('ANN')).toMatchObject([{ id: given.id, name: 'vault' }])
    })

    test("does not block others if it can't be removed", async () => {
      const storage = await processAt(await freshUrl())
      await storage.grants.add([grant('stuck', { inMillis: -1000 }), grant('vault')])
      const { revoked } = await sweep(storage, async ({ params }) => {
        if (params['accessName'] === 'stuck') throw new Error('no such thing')
      })
      expect(revoked).toBe(1)
      expect((await storage.grants.due(5)).map(({ name }) => name)).toEqual(['stuck'])
    })
  })

  describe('a grant that is given back', () => {
    const ann = { login: 'ann', identity: issuerIdentity('https://idp', 'ann'), requestId: 'q' }
    const ownAccess = ({ grants, runs: store, audit }: Storage) =>
      new OwnGrants({
        grants,
        store,
        audit,
        clock: systemClock,
        runs: {
          prepare: async ({ head: { workflow, requester, who = {} }, user }) =>
            newRun(newId(), { head: { workflow, subject: user.userID, requester, who } }),
        },
      })

    test('ends once, with an audit entry and the run that removes the access', async () => {
      const storage = await processAt(await freshUrl())
      await storage.grants.add([grant('vault', { inMillis: day })])
      const own = ownAccess(storage)
      const [held] = await own.ofSubject('ann')
      if (held === undefined) throw new Error('there is no grant')
      const run = await own.giveBack(held, ann)
      await expect(own.giveBack(held, ann)).rejects.toMatchObject({ code: 'CONFLICT' })
      expect(await started(storage)).toMatchObject([
        { head: { id: run, workflow: removalWorkflow, requester: 'ann', who: { subject: ann.identity } } },
      ])
      expect(await own.ofSubject('ann')).toEqual([])
      expect(await own.endedOf('ANN')).toMatchObject([{ id: held.id, ended: expect.any(Date), removal: run }])
      expect((await storage.audit.list({ subject: 'ann', limit: 5 })).rows).toMatchObject([
        { requestor: 'ann', attribute: 'grant', action: 'delete', value: 'group vault of store, given back' },
      ])
    })
  })

  test('the audit says which run added a user to a group, unless the user left it later', async () => {
    const storage = await processAt(await freshUrl())
    const change = (action: 'add' | 'delete', value: string, run: string) => ({
      ...auditRow(newId()),
      subject: 'ann',
      workflow: { id: run, name: 'join' },
      kind: 'group' as const,
      attribute: 'groups',
      action,
      value,
    })
    await storage.audit.append([change('add', 'Vault', 'r1'), change('add', 'gone', 'r1')])
    await storage.audit.append([change('delete', 'gone', 'r2')])
    const { grants, runs: store, audit } = storage
    const prepare = async () => newRun(newId())
    const own = new OwnGrants({ grants, store, audit, clock: systemClock, runs: { prepare } })
    const origins = await own.groupOrigins('ann')
    expect([...origins]).toEqual([['vault', { since: expect.any(Date), run: 'r1' }]])
  })

  test('requesting the same access again extends it, and never shortens it', async () => {
    const storage = await processAt(await freshUrl())
    const first = grant('vault', { inMillis: day })
    await storage.grants.add([first])
    await storage.grants.add([grant('VAULT', { inMillis: 3 * day })])
    await storage.grants.add([grant('vault', ago)])
    const [held, ...others] = await storage.grants.ofSubject('ann')
    expect(others).toEqual([])
    expect(held?.id).toBe(first.id)
    expect(held?.expires.getTime()).toBeGreaterThan(Date.now() + 2 * day)
    expect((await sweep(storage)).revoked).toBe(0)
  })
})

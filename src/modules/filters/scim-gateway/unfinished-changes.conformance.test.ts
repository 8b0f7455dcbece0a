import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { Passwords } from '#modules/shared/passwords/passwords.ts'
import { databaseTarget } from '#modules/targets/database/database.ts'
import { workflowWrites } from '#sdk/workflow/workflow-writes.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { openGateway } from '#testing/scim/scim-gateway-fixture.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { openDurable } from '#testing/workflows/durable-fixture.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { parseTasks, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import scimGateway from './scim-gateway.ts'

/** The second system. It fails its writes with this code; `halfDone` makes the change first. */
class SecondSystem extends MemoryTarget {
  code: ErrorCode | undefined
  halfDone = false

  override async createUser(...args: Parameters<MemoryTarget['createUser']>): Promise<void> {
    await this.#or(() => super.createUser(...args))
  }

  override async syncUser(...args: Parameters<MemoryTarget['syncUser']>): Promise<void> {
    await this.#or(() => super.syncUser(...args))
  }

  override async deleteUser(...args: Parameters<MemoryTarget['deleteUser']>): Promise<void> {
    await this.#or(() => super.deleteUser(...args))
  }

  async #or(work: () => Promise<void>): Promise<void> {
    if (this.code === undefined || this.halfDone) await work()
    if (this.code !== undefined) throw new GatewayError(this.code, 'the second system fails')
  }
}

const provision = (target: string): TaskSpec => ({ taskType: 'provision', target, sync: true })
const remove = (target: string): TaskSpec => ({ taskType: 'delete', target })
const addGroup: TaskSpec = { taskType: 'addGroup', name: '$groupname$', remove: '$removegroup$' }

const orders = { 'first written': ['people', 'second'], 'last written': ['second', 'people'] } as const

const failures: readonly { readonly code: ErrorCode; readonly halfDone?: boolean }[] = [
  { code: 'TARGET_UNREACHABLE' },
  { code: 'TARGET_TIMEOUT', halfDone: true },
  { code: 'TOO_MANY_REQUESTS' },
  { code: 'TARGET_FAILED' },
  { code: 'CONFLICT' },
  { code: 'VERSION_MISMATCH' },
]

const patchOf = (...operations: JsonObject[]) => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})
const deactivation = patchOf({ op: 'replace', path: 'active', value: false })

let databases = 0

onEachDatabase('changes over two systems', (freshUrl) => {
  // The databases differ in how runs are stored, not in how targets fail, so all failures are tried on the first.
  const isFirstDatabase = databases++ === 0
  const tried = failures.filter(({ code }) => isFirstDatabase || code === 'TARGET_UNREACHABLE' || code === 'CONFLICT')

  async function open(order: readonly [string, string]) {
    const url = await freshUrl()
    const second = new SecondSystem()
    const workflows = {
      'sync-user': order.map(provision),
      'delete-user': order.map(remove),
      'change-members': [addGroup, ...order.map(provision)],
      'create-group': [{ taskType: 'customTask', className: 'tasks.CreateGroup', params: { target: 'people' } }],
    }
    const targets: Record<string, ReturnType<typeof databaseTarget> | SecondSystem> = { second }
    const process = await openDurable(url, { workflows: {} })
    const passwords = new Passwords(process.storage.userDirectory({ name: 'people/passwords' }))
    const people = databaseTarget(process.storage.userDirectory({ name: 'people' }), passwords)
    targets['people'] = people
    onTestFinished(() => people.close())
    await process.reload({ workflows, targets })
    const source = {
      tasks: (name: string) => parseTasks(workflows[name as keyof typeof workflows] ?? []).tasks,
      mapping: () => undefined,
    }
    const { send } = await openGateway(scimGateway, {
      params: {
        mapping: 'scim',
        lookupTarget: 'people',
        workflowName: 'sync-user',
        deleteUserWorkflowName: 'delete-user',
        groupWorkflow: 'change-members',
        groupCreateWorkflow: 'create-group',
      },
      host: {
        clock: systemClock,
        targets: fakeModuleHost({ targets }).targets,
        workflows: process.runs,
        runs: process.runs,
        openUserDirectory: async (wanted) => process.storage.userDirectory(wanted),
        workflowWrites: (name) => workflowWrites(source, name),
      },
    })
    return { send, second, process }
  }

  describe.each(Object.entries(orders))('the lookup target %s', (name, order) => {
    const isFirst = name === 'first written'

    test.each(tried)(
      'after $code nothing is claimed, and the same requests finish it',
      async ({ code, halfDone = false }) => {
        const { send, second, process } = await open(order)
        const worker = process.worker({
          retries: { attempts: 9, unknownAttempts: 3, firstMillis: 60_000, mostMillis: 60_000 },
        })
        const fails = (isFailing: boolean): void => {
          second.code = isFailing ? code : undefined
          second.halfDone = halfDone
        }
        // Before the first write, a conflict is one of the request as a whole.
        const over = [200, 201, 204, 404, ...(code === 'CONFLICT' && !isFirst ? [] : [409])]
        /** Fails, also when repeated, until the second system works again. What it made before it failed is found there. */
        const finished = async (method: string, path: string, body?: JsonObject) => {
          fails(true)
          const first = await send(method, path, body)
          expect(over, `${method} ${JSON.stringify(first.body)}`).not.toContain(first.status)
          const again = await send(method, path, body)
          if (!halfDone) expect(over, `${method} again ${JSON.stringify(again.body)}`).not.toContain(again.status)
          fails(false)
          return again.status < 300 ? again : await send(method, path, body)
        }
        const created = await finished('POST', '/Users', { userName: 'ann', title: 'Dr', active: true })
        expect(created.status, JSON.stringify(created.body)).toBe(201)
        const address = `/Users/${created.body['id']}`
        expect(second.stored('ann')?.attributes).toMatchObject({ title: ['Dr'], active: ['true'] })
        const off = await finished('PATCH', address, deactivation)
        expect([off.status, off.body['active']]).toEqual([200, false])
        expect(second.stored('ann')?.attributes).toMatchObject({ active: ['false'] })
        const put = await finished('PUT', address, { userName: 'ann', title: 'Prof', active: true })
        expect([put.status, put.body['title']]).toEqual([200, 'Prof'])
        expect(second.stored('ann')?.attributes).toMatchObject({ active: ['true'], title: ['Prof'] })
        const group = (await send('POST', '/Groups', { displayName: 'crew' })).body['id']
        const joined = await finished(
          'PATCH',
          `/Groups/${group}`,
          patchOf({ op: 'add', path: 'members', value: [{ value: String(created.body['id']) }] }),
        )
        expect(joined.status, JSON.stringify(joined.body)).toBe(204)
        expect(second.stored('ann')?.groups).toEqual(['crew'])
        const gone = await finished('DELETE', address)
        expect(gone.status, JSON.stringify(gone.body)).toBe(204)
        expect(second.stored('ann')).toBeUndefined()
        expect((await send('GET', address)).status).toBe(404)
        expect((await send('DELETE', address)).status).toBe(404)
        expect((await process.storage.runs.list({ states: ['ready', 'running', 'incident'], limit: 5 })).runs).toEqual(
          [],
        )
        expect((await process.storage.audit.verify()).problems).toEqual([])
        await worker.close()
      },
    )

    test.runIf(isFirst)('the gateway finishes a change without another request', async () => {
      const { send, second, process } = await open(order)
      second.code = 'TARGET_UNREACHABLE'
      const refused = await send('POST', '/Users', { userName: 'ann', active: true })
      expect(refused.status).toBe(503)
      second.code = undefined
      process.worker()
      await expect.poll(() => second.stored('ann')).toBeDefined()
      await expect.poll(async () => (await process.storage.runs.figures()).ready).toBe(0)
      const found = await send('GET', `/Users?filter=${encodeURIComponent('userName eq "ann"')}`)
      expect(found.body['totalResults']).toBe(1)
    })

    test.runIf(isFirst)(
      'what the second system refused is made there by the same request, and nothing is doubled',
      async () => {
        const { send, second, process } = await open(order)
        process.worker()
        const { body } = await send('POST', '/Users', { userName: 'ann', title: 'Dr', nickName: 'A', active: true })
        const address = `/Users/${body['id']}`
        for (const change of [
          patchOf({ op: 'remove', path: 'title' }),
          patchOf({ op: 'replace', path: 'userName', value: 'anna' }),
        ]) {
          second.code = 'CONFLICT'
          expect((await send('PATCH', address, change)).status).toBe(500)
          const other = await send('PATCH', address, patchOf({ op: 'replace', path: 'nickName', value: 'B' }))
          expect(other.status, JSON.stringify(other.body)).toBe(500)
          second.code = undefined
          expect((await send('PATCH', address, change)).status).toBe(200)
        }
        expect(second.stored('ann')).toBeUndefined()
        expect(second.stored('anna')?.attributes).not.toHaveProperty('title')
        second.code = 'CONFLICT'
        expect((await send('DELETE', address)).status).toBe(500)
        const again = await send('POST', '/Users', { userName: 'anna', active: true })
        expect(again.status, JSON.stringify(again.body)).toBe(500)
        expect(again.body['detail']).toMatch(/^The change was made in part\. Run .* needs an administrator\.$/)
        second.code = undefined
        expect((await send('POST', '/Users', { userName: 'anna', active: true })).status).toBe(201)
        expect(second.stored('anna')?.attributes).toMatchObject({ active: ['true'] })
      },
    )

    test.runIf(isFirst)('a delete that an operator gave up is not answered as done', async () => {
      const { send, second, process } = await open(order)
      const { body } = await send('POST', '/Users', { userName: 'ann', active: true })
      second.code = 'TARGET_UNREACHABLE'
      expect((await send('DELETE', `/Users/${body['id']}`)).status).toBe(503)
      const repeated = send('DELETE', `/Users/${body['id']}`)
      const [run] = (await process.storage.runs.list({ states: ['ready'], limit: 5 })).runs
      await process.runs.cancel({ id: run?.id ?? '', fence: run?.fence ?? 0, by: userRef('operator') })
      expect((await repeated).status).toBe(404)
    })

    test.runIf(isFirst)('a create that the gateway finished is answered 201 when it is repeated, once', async () => {
      const { send, second, process } = await open(order)
      second.code = 'TARGET_UNREACHABLE'
      const user = { userName: 'ann', active: true }
      expect((await send('POST', '/Users', user)).status).toBe(503)
      second.code = undefined
      process.worker()
      await expect
        .poll(async () => (await process.storage.runs.list({ states: ['completed'], limit: 5 })).runs)
        .toHaveLength(1)
      expect((await send('POST', '/Users', user)).status).toBe(201)
      expect((await send('POST', '/Users', user)).status).toBe(409)
    })

    test('a change that only the second system lacks is made there', async () => {
      const { send, second } = await open(order)
      const { body } = await send('POST', '/Users', { userName: 'ann', active: true })
      second.put({ userID: 'ann', attributes: { active: ['true'] } })
      await send('PATCH', `/Users/${body['id']}`, deactivation)
      second.put({ userID: 'ann', attributes: { active: ['true'] } })
      expect((await send('PATCH', `/Users/${body['id']}`, deactivation)).status).toBe(200)
      expect(second.stored('ann')?.attributes).toMatchObject({ active: ['false'] })
    })
  })
})

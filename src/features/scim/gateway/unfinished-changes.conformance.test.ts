import { describe, expect, onTestFinished, test } from 'vitest'
import { databaseTarget } from '#adapters/targets/database/database.ts'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import type { User } from '#identity/user.ts'
import { systemClock } from '#kernel/clock.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { PlannedWrite } from '#sdk/target/target.ts'
import { workflowWrites } from '#sdk/workflow/workflow-writes.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { openGateway } from '#testing/scim/scim-gateway-fixture.ts'
import { MemoryGroups } from '#testing/targets/memory-groups.ts'
import type { MemoryTarget } from '#testing/targets/memory-target.ts'
import { openDurable } from '#testing/workflows/durable-fixture.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { parseTasks, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import scimGateway from './scim-gateway.ts'

/** The second system. It fails its writes with this code; `halfDone` makes the change first. */
class SecondSystem extends MemoryGroups {
  code: ErrorCode | undefined
  halfDone = false
  /** The attributes that it can store; any if undefined. */
  places: readonly string[] | undefined

  async requirePlaces({ attributes: values }: User, { attributes }: PlannedWrite): Promise<void> {
    const isOdd = (name: string) => values.has(name) && this.places?.includes(name.toLowerCase()) === false
    const odd = attributes.find(isOdd)
    if (odd === undefined) return
    throw new GatewayError('BAD_REQUEST', odd, {
      attribute: odd,
      publicText: (shown = `"${odd}"`) => `${shown} has no place here.`,
    })
  }

  /** Creating a user with a title fails with this code. */
  failsFull: ErrorCode | undefined
  refusesPasswords = false

  override async createUser(...args: Parameters<MemoryTarget['createUser']>): Promise<void> {
    if (this.failsFull !== undefined && args[0].attributes.has('title'))
      throw new GatewayError(this.failsFull, 'it fails')
    await this.#or(() => super.createUser(...args))
  }

  override async syncUser(...args: Parameters<MemoryTarget['syncUser']>): Promise<void> {
    await this.#or(() => super.syncUser(...args))
  }

  override async deleteUser(...args: Parameters<MemoryTarget['deleteUser']>): Promise<void> {
    await this.#or(() => super.deleteUser(...args))
  }

  override async updateGroup(...args: Parameters<MemoryGroups['updateGroup']>): Promise<void> {
    await this.#or(() => super.updateGroup(...args))
  }

  override async setUserPassword(...args: Parameters<MemoryTarget['setUserPassword']>): Promise<void> {
    if (this.refusesPasswords) throw new GatewayError('BAD_REQUEST', 'too short', { publicText: 'Too short' })
    await super.setUserPassword(...args)
  }

  async #or(work: () => Promise<void>): Promise<void> {
    if (this.code === undefined || this.halfDone) await work()
    if (this.code !== undefined) throw new GatewayError(this.code, 'the second system fails')
  }
}

const provision = (target: string): TaskSpec => ({ taskType: 'provision', target, sync: true, setPassword: true })
const groupTask = (className: string, target: string): TaskSpec => ({
  taskType: 'customTask',
  className,
  params: { target },
})
const remove = (target: string): TaskSpec => ({ taskType: 'delete', target })
const addGroup: TaskSpec = { taskType: 'addGroup', name: '$groupname$', remove: '$removegroup$' }

const workflowsFor = (order: readonly string[]) => ({
  'sync-user': order.map(provision),
  'delete-user': order.map(remove),
  'change-members': [addGroup, ...order.map(provision)],
  'create-group': order.map((target) => groupTask('tasks.CreateGroup', target)),
  'update-group': order.map((target) => groupTask('tasks.UpdateGroup', target)),
  'delete-group': order.map((target) => groupTask('tasks.DeleteGroup', target)),
})

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
    const workflows = workflowsFor(order)
    const targets: Record<string, ReturnType<typeof databaseTarget> | SecondSystem> = { second }
    const process = await openDurable(url, { workflows: {} })
    const passwords = new Passwords(process.storage.userDirectory({ name: 'people/passwords' }))
    const people = databaseTarget(process.storage.userDirectory({ name: 'people' }), passwords)
    targets['people'] = people
    onTestFinished(() => people.close())
    await process.reload({ workflows, targets })
    const gateway = async (tasks: typeof workflows, client = 'idp', { runs, storage } = process) => {
      const source = {
        tasks: (name: string) => parseTasks(tasks[name as keyof typeof workflows] ?? []).tasks,
        mapping: () => undefined,
      }
      const { send } = await openGateway(scimGateway, {
        client,
        params: {
          mapping: 'scim',
          lookupTarget: 'people',
          workflowName: 'sync-user',
          deleteUserWorkflowName: 'delete-user',
          groupWorkflow: 'change-members',
          groupCreateWorkflow: 'create-group',
          groupUpdateWorkflow: 'update-group',
          groupDeleteWorkflow: 'delete-group',
        },
        host: {
          clock: systemClock,
          targets: fakeModuleHost({ targets }).targets,
          workflows: runs,
          runs,
          openUserDirectory: async (wanted) => storage.userDirectory(wanted),
          workflowWrites: (name) => workflowWrites(source, name),
        },
      })
      return send
    }
    /** Another configuration takes over, whose workflows write the lookup target only. */
    const writeOnlyPeople = async () => {
      const fewer = workflowsFor(['people'])
      await process.reload({ workflows: fewer, targets })
      return await gateway(fewer)
    }
    const replica = async () => {
      const other = await openDurable(url, { workflows, targets })
      return await gateway(workflows, 'idp', other)
    }
    const send = await gateway(workflows)
    return { send, replica, sendAs: (client: string) => gateway(workflows, client), writeOnlyPeople, second, process }
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
        expect(again.body['detail']).toMatch(
          /^An earlier change of the same user or group is unfinished\. Run .* needs an administrator\.$/,
        )
        second.code = undefined
        expect((await send('POST', '/Users', { userName: 'anna', active: true })).status).toBe(201)
        expect(second.stored('anna')?.attributes).toMatchObject({ active: ['true'] })
      },
    )

    test('a password that the second system refused is set by a request that has one, and by no other', async () => {
      const { send, second, process } = await open(order)
      process.worker()
      const { body } = await send('POST', '/Users', { userName: 'ann', title: 'Dr', active: true })
      const address = `/Users/${body['id']}`
      const password = (value: string) => patchOf({ op: 'replace', path: 'password', value })
      second.refusesPasswords = true
      const refused = await send('PATCH', address, password('correct horse'))
      expect([refused.status, refused.body['scimType']]).toEqual([400, 'invalidValue'])
      if (isFirst) {
        expect(refused.body['detail']).toMatch(
          /^Too short\. The change was made in part\. The target "second" has not completed it\. Correct the value and send the request again\. Run \S+ is on hold\.$/,
        )
        const other = await send('PATCH', address, patchOf({ op: 'replace', path: 'title', value: 'Prof' }))
        expect(other.status).toBe(500)
        expect(other.body['detail']).toMatch(
          /^An earlier change of the same user set a password and is unfinished\. Send a password with this change\. Run \S+ is on hold\.$/,
        )
      }
      second.refusesPasswords = false
      expect((await send('PATCH', address, password('battery staple'))).status).toBe(200)
      expect(second.passwords.get('ann')).toBe('battery staple')
      expect((await process.storage.runs.list({ states: ['ready', 'incident'], limit: 5 })).runs).toEqual([])
    })

    test('a refused rename of a group comes before its delete', async () => {
      const { send, second, process } = await open(order)
      process.worker()
      const { body } = await send('POST', '/Groups', { displayName: 'crew' })
      const address = `/Groups/${body['id']}`
      const named = async (name: string) => await second.findGroup(name)
      expect(await named('crew')).toBeDefined()
      second.code = 'CONFLICT'
      const rename = await send('PATCH', address, patchOf({ op: 'replace', path: 'displayName', value: 'team' }))
      if (isFirst) {
        expect(rename.status, JSON.stringify(rename.body)).toBe(500)
        const early = await send('DELETE', address)
        expect(early.status, JSON.stringify(early.body)).toBe(500)
        expect(early.body['detail']).toMatch(/^An earlier change of the same user or group is unfinished\. Run /)
      } else expect(rename.status).toBe(409)
      second.code = undefined
      const gone = await send('DELETE', address)
      expect(gone.status, JSON.stringify(gone.body)).toBe(204)
      expect([await named('crew'), await named('team')]).toEqual([undefined, undefined])
      expect((await send('GET', address)).status).toBe(404)
    })

    test.runIf(isFirst)('a delete that an operator gave up is not answered as done', async () => {
      const { send, second, process } = await open(order)
      const { body } = await send('POST', '/Users', { userName: 'ann', active: true })
      second.code = 'TARGET_UNREACHABLE'
      expect((await send('DELETE', `/Users/${body['id']}`)).status).toBe(503)
      const repeated = send('DELETE', `/Users/${body['id']}`)
      const [run] = (await process.storage.runs.list({ states: ['ready'], limit: 5 })).runs
      await process.runs.cancel({ id: run?.head.id ?? '', fence: run?.fence ?? 0, by: userRef('operator') })
      expect((await repeated).status).toBe(404)
    })

    test.runIf(isFirst)('a refused create is not over for a client with other credentials', async () => {
      const { send, sendAs, second, process } = await open(order)
      process.worker()
      const ann = { userName: 'ann', active: true }
      second.code = 'CONFLICT'
      expect((await send('POST', '/Users', ann)).status).toBe(500)
      const other = await sendAs('renewed')
      const early = await other('POST', '/Users', ann)
      expect(early.status, JSON.stringify(early.body)).toBe(500)
      const changed = await other('POST', '/Users', { ...ann, title: 'Dr' })
      expect(changed.status, JSON.stringify(changed.body)).toBe(500)
      second.code = undefined
      expect((await other('POST', '/Users', { ...ann, title: 'Dr' })).status).toBe(201)
      expect(second.stored('ann')?.attributes).toMatchObject({ title: ['Dr'] })
      expect((await send('POST', '/Users', ann)).status).toBe(409)
    })

    test.runIf(isFirst).each([
      { code: 'TARGET_UNREACHABLE', status: 503 },
      { code: 'CONFLICT', status: 500 },
    ] as const)('after $code, what is unfinished comes first after a change of the workflow', async (given) => {
      const { send, second, writeOnlyPeople, process } = await open(order)
      const ann = { userName: 'ann', active: true }
      const address = `/Users/${(await send('POST', '/Users', ann)).body['id']}`
      second.code = given.code
      expect((await send('PATCH', address, deactivation)).status).toBe(given.status)
      expect((await send('POST', '/Users', { userName: 'bob', active: true })).status).toBe(given.status)
      const now = await writeOnlyPeople()
      process.worker({ retries: { attempts: 9, unknownAttempts: 3, firstMillis: 60_000, mostMillis: 60_000 } })
      if (given.status === 503) {
        for (const answer of [
          await now('PATCH', address, deactivation),
          await now('POST', '/Users', { userName: 'bob', active: true }),
        ]) {
          expect(answer.status, JSON.stringify(answer.body)).toBe(503)
        }
        second.code = undefined
      }
      expect((await now('PATCH', address, deactivation)).status).toBe(200)
      expect((await now('POST', '/Users', { userName: 'bob', active: true })).status).toBe(201)
      if (given.status === 503) {
        expect(second.stored('ann')?.attributes).toMatchObject({ active: ['false'] })
        expect(second.stored('bob')).toBeDefined()
      }
      // The workflow no longer writes the second system, so its refusal is replaced.
      expect((await process.storage.runs.list({ states: ['ready', 'incident'], limit: 5 })).runs).toEqual([])
    })

    test.runIf(isFirst)(
      'two replicas at once: one creates, both rename, and none is answered as if nothing were there',
      async () => {
        const { send, replica, second } = await open(order)
        const replicas = [send, await replica()]
        const atOnce = (method: string, path: string, bodies: readonly JsonObject[]) =>
          Promise.all(bodies.map((body, i) => (replicas[i] ?? send)(method, path, body)))
        for (const [path, body] of [
          ['/Users', { userName: 'ann', active: true }],
          ['/Groups', { displayName: 'crew' }],
        ] as const) {
          const answers = await atOnce('POST', path, [body, body])
          expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
          expect(answers.map(({ body }) => body['scimType'])).toContain('uniqueness')
        }
        const found = await send('GET', `/Groups?filter=${encodeURIComponent('displayName eq "crew"')}`)
        const [{ id } = { id: '' }] = found.body['Resources'] as { id: string }[]
        const renames = ['team', 'staff'].map((value) => patchOf({ op: 'replace', path: 'displayName', value }))
        const renamed = await atOnce('PATCH', `/Groups/${id}`, renames)
        expect(
          renamed.map(({ status }) => status),
          JSON.stringify(renamed.map(({ body }) => body)),
        ).toEqual([204, 204])
        // A system that lacks the group does not make it one that is not there.
        for (const name of ['team', 'staff']) second.groups.delete(name)
        const [refused] = await atOnce('PATCH', `/Groups/${id}`, renames.slice(0, 1))
        const isThere = (await send('GET', `/Groups/${id}`)).status
        expect([refused?.status === 404, isThere]).toEqual([false, 200])
      },
    )

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

    test('a request that one system would refuse is refused before the first is changed', async () => {
      const { send, second, process } = await open(order)
      const ann = { userName: 'ann', active: true }
      const address = `/Users/${(await send('POST', '/Users', ann)).body['id']}`
      second.put({ userID: 'anna' })
      second.places = ['username', 'active']
      const taken = await send('PATCH', address, patchOf({ op: 'replace', path: 'userName', value: 'anna' }))
      expect(taken, JSON.stringify(taken.body)).toMatchObject({ status: 409, body: { scimType: 'uniqueness' } })
      for (const refused of [
        await send('PATCH', address, patchOf({ op: 'replace', path: 'nickName', value: 'A' })),
        await send('PUT', address, { ...ann, nickName: 'A' }),
        await send('POST', '/Users', { userName: 'bob', nickName: 'B', active: true }),
      ]) {
        const detail = 'nickName has no place here. Target "second" refuses it.'
        expect(refused).toMatchObject({ status: 400, body: { scimType: 'invalidValue', detail } })
      }
      expect(await send('GET', address)).toMatchObject({ status: 200, body: { userName: 'ann' } })
      expect((await send('GET', '/Users')).body['totalResults']).toBe(1)
      expect(second.stored('bob')).toBeUndefined()
      expect((await process.storage.runs.list({ limit: 5 })).runs).toEqual([])
      expect((await send('PATCH', address, deactivation)).status).toBe(200)
    })

    test.runIf(isFirst).each([
      { code: 'TARGET_UNREACHABLE', status: 503 },
      { code: 'TARGET_FAILED', status: 500 },
    ] as const)('after $code, a user that is not created everywhere joins no group', async ({ code, status }) => {
      const { send, second, process } = await open(order)
      process.worker({ retries: { attempts: 9, unknownAttempts: 3, firstMillis: 60_000, mostMillis: 60_000 } })
      second.failsFull = code
      const ann = { userName: 'ann', title: 'Dr', active: true }
      expect((await send('POST', '/Users', ann)).status).toBe(status)
      const found = await send('GET', `/Users?filter=${encodeURIComponent('userName eq "ann"')}`)
      const [{ id } = { id: '' }] = found.body['Resources'] as { id: string }[]
      const crew = { displayName: 'crew', members: [{ value: id }] }
      const refused = await send('POST', '/Groups', crew)
      expect(refused.status, JSON.stringify(refused.body)).toBe(status)
      expect((await send('GET', '/Groups')).body['totalResults']).toBe(0)
      expect(second.stored('ann')).toBeUndefined()
      second.failsFull = undefined
      expect((await send('POST', '/Groups', crew)).status).toBe(201)
      expect(second.stored('ann')).toMatchObject({ attributes: { title: ['Dr'] }, groups: ['crew'] })
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

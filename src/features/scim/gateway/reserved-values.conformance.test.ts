import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute } from '#protocols/scim/schema/schema.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { dry, openDryRuns, provision } from '#testing/scim/dry-run-fixture.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import type { OwnTasks, TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import scimGateway from './scim-gateway.ts'

const device = {
  schema: new ResourceSchema({
    id: 'urn:example:Device',
    name: 'Device',
    description: '',
    attributes: [
      attribute('serial', '', { required: true, uniqueness: 'server' }),
      attribute('tag', '', { uniqueness: 'server' }),
    ],
  }),
  endpoint: '/Devices',
  nameAttribute: 'serial',
  target: 'devices',
  workflow: 'write-device',
  deleteWorkflow: undefined,
} as const

const orders = { 'before the others': ['devices', 'second'], 'after the others': ['second', 'devices'] } as const

onEachDatabase('a unique value of an unfinished change', (freshUrl) => {
  const hold: OwnTasks[string] = ({ signal }) =>
    signal === undefined ? { kind: 'wait', until: new Date(Date.now() + 3600_000) } : { kind: 'next' }

  async function open(order: readonly string[], ...first: readonly TaskSpec[]) {
    const opened = await openDryRuns(scimGateway, await freshUrl(), {
      types: { device },
      params: { resourceTypes: ['device'] },
      workflows: { 'write-device': [...first, ...order.map(provision)] },
      tasks: { hold },
    })
    const { send, second, process } = opened
    const create = (serial: string, headers: Record<string, string> = {}) =>
      send('POST', '/Devices', { serial, tag: serial === 'D-1' ? 'one' : 'ONE' }, headers)
    /** The run of the first device, which no one knows to have written the second system. */
    const beginFirst = async (): Promise<string> => {
      second.before = ({ method }) => {
        if (method !== 'findUser') throw new GatewayError('TARGET_TIMEOUT', 'no answer')
      }
      const { body } = await create('D-1')
      second.before = () => {}
      const [, run = ''] = /Run (\S+) /.exec(String(body['detail'])) ?? []
      expect(await process.storage.runs.get(run), JSON.stringify(body)).toBeDefined()
      return run
    }
    const serials = async () =>
      ((await send('GET', '/Devices')).body['Resources'] as JsonObject[]).map(({ serial }) => serial)
    return { ...opened, create, beginFirst, serials }
  }
  const taken = [409, 'uniqueness']

  test.each(Object.entries(orders))('is its own until it is finished, read %s', async (_, order) => {
    const { create, beginFirst, serials, process, dump } = await open(order)
    const run = await beginFirst()
    const before = await dump()
    const shown = await create('D-2', dry)
    expect([shown.status, shown.body['scimType']], JSON.stringify(shown.body)).toEqual(taken)
    expect(await dump()).toEqual(before)
    const refused = await create('D-2')
    expect([refused.status, refused.body['scimType']], JSON.stringify(refused.body)).toEqual(taken)
    process.worker()
    expect((await process.settled(run, 'completed')).state).toBe('completed')
    const other = await create('D-2')
    expect([other.status, other.body['scimType'], await serials()]).toEqual([...taken, ['D-1']])
  })

  test('is its own while its run waits', async () => {
    const { create, serials, process } = await open(['devices'], { taskType: 'hold' })
    const { status, body } = await create('D-1')
    expect([status, await serials()]).toEqual([202, []])
    const refused = await create('D-2')
    expect([refused.status, refused.body['scimType']], JSON.stringify(refused.body)).toEqual(taken)
    const id = String(body['workflowId'])
    const { fence = 0 } = (await process.storage.runs.get(id)) ?? {}
    await process.runs.cancel({ id, fence, by: userRef('operator') })
    expect((await create('D-2')).status).toBe(202)
  })

  test('is free once its run has ended without it', async () => {
    const { create, beginFirst, serials, process } = await open(orders['after the others'])
    const run = await beginFirst()
    expect((await create('D-2')).status).toBe(409)
    const { fence = 0 } = (await process.storage.runs.get(run)) ?? {}
    await process.runs.cancel({ id: run, fence, by: userRef('operator') })
    expect((await create('D-2')).status).toBe(201)
    const first = await create('D-1')
    expect([first.status, first.body['scimType'], await serials()]).toEqual([...taken, ['D-2']])
  })
})

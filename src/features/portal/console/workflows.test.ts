import { expect, test } from 'vitest'
import { openMain, someone } from '#testing/modules/main-fixture.ts'
import type { Public } from '#testing/workflows/call-store.ts'
import type { WorkflowCatalog } from '#workflows/definitions/workflow-catalog.ts'

const admin = someone('root', ['people', 'admins'])
const params = { administrators: 'filter;(groups=admins)' }

const workflow = (name: string) => ({ name, label: `Label of ${name}`, description: '', inList: true, definition: 'h' })
const task = { taskType: 'provision', details: { target: 'crm' }, calls: [], onSuccess: [], onFailure: [] }
const workflowCatalog: Public<WorkflowCatalog> = {
  list: async () => ['join', 'leave', 'move'].map((name) => ({ ...workflow(name), open: { waiting: 2 } })),
  get: async (name, definition = 'h', parameters = new Map()) => {
    if (name !== 'join' || !['h', 'old'].includes(definition)) return undefined
    const details = { target: parameters.get('target') ?? 'crm' }
    return {
      ...workflow(name),
      definition,
      current: definition === 'h',
      tasks: [{ ...task, details, place: 'join:0' }],
    }
  },
}

const open = async () => {
  const { send, runs } = await openMain({ params, workflowCatalog })
  runs.parameters.set('r1', new Map([['target', 'erp']]))
  return { send, get: (path: string) => send('GET', `/admin/workflows${path}`, undefined, admin) }
}

test('workflows are listed in pages, by a part of the name or the label', async () => {
  const { send, get } = await open()
  await expect(send('GET', '/admin/workflows')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  const first = (await get('?limit=2')).body
  expect(first).toMatchObject({ workflows: [{ name: 'join', open: { waiting: 2 } }, { name: 'leave' }], next: 'leave' })
  expect((await get(`?limit=2&after=${first.next}`)).body).toEqual({
    workflows: [expect.objectContaining({ name: 'move' })],
  })
  expect((await get('?q=OF+LE')).body.workflows).toMatchObject([{ name: 'leave' }])
  expect((await get('?after=zzz')).body).toEqual({ workflows: [] })
})

test('a workflow is shown as the configuration has it, or as a run follows it', async () => {
  const { get } = await open()
  expect((await get('/join')).body).toMatchObject({
    current: true,
    tasks: [{ place: 'join:0', details: { target: 'crm' } }],
  })
  expect((await get('/join?definition=old')).body).toMatchObject({ current: false, definition: 'old' })
  expect((await get('/join?definition=old&run=r1')).body).toMatchObject({ tasks: [{ details: { target: 'erp' } }] })
  expect((await get('/join?run=none')).body).toMatchObject({ tasks: [{ details: { target: 'crm' } }] })
  await expect(get('/join?definition=lost')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(get('/none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(get('/join?version=1')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})

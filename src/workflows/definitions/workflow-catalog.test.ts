import { expect, test } from 'vitest'
import { loadText } from '#testing/modules/check-text.ts'
import { fakeCatalog } from '#testing/modules/fake-catalog.ts'
import { WorkflowCatalog } from './workflow-catalog.ts'

const text = (group: string) => `
### workflow.yaml
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: join }
spec:
  label: Join
  inList: true
  tasks: |-
    - taskType: when
      name: mail
      onSuccess:
        - taskType: customTask
          className: com.tremolosecurity.provisioning.customTasks.PrintUserInfo
          params: { message: hush-hush }
        - { taskType: provision, target: store, attributes: [] }
      onFailure:
        - { taskType: when, name: ${group} }
### target.yaml
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: store }
spec: { className: targets.Memory }
`

const load = (group: string) => {
  const { configuration } = loadText(text(group), fakeCatalog, {})
  if (configuration === undefined) throw new Error('the configuration has errors')
  return configuration
}

const configuration = load('staff of $team$')
const earlier = load('guests').workflows.get('join')
const catalog = new WorkflowCatalog(configuration, {
  definition: async (hash) =>
    hash === earlier?.hash ? { hash, name: 'join', body: earlier.source } : { hash, name: 'other', body: '' },
  openByWorkflow: async () => [
    { name: 'join', state: 'waiting', count: 3 },
    { name: 'join', state: 'incident', count: 1 },
  ],
})

test('workflows are listed with their open runs', async () => {
  expect(await catalog.list()).toEqual([
    {
      name: 'join',
      label: 'Join',
      description: expect.any(String),
      inList: true,
      definition: configuration.workflows.get('join')?.hash,
      open: { waiting: 3, incident: 1 },
    },
  ])
})

test('a definition is a tree of tasks whose places are those of steps, without written values', async () => {
  const shown = await catalog.get('join')
  expect(shown).toMatchObject({
    current: true,
    tasks: [
      {
        place: 'join:0',
        taskType: 'when',
        details: { name: 'mail' },
        onSuccess: [
          { place: 'join:0/onSuccess/0', details: { className: expect.stringContaining('PrintUserInfo') } },
          { place: 'join:0/onSuccess/1', taskType: 'provision', details: { target: 'store' } },
        ],
        onFailure: [{ place: 'join:0/onFailure/0', details: { name: 'staff of [team]' } }],
      },
    ],
  })
  expect(JSON.stringify(shown)).not.toContain('hush-hush')
})

test('for a run, tasks have the names that they have in the run', async () => {
  const parameters = new Map([['team', 'Red']])
  expect(await catalog.get('join', undefined, parameters)).toMatchObject({
    tasks: [{ onFailure: [{ details: { name: 'staff of Red' } }] }],
  })
})

test('an earlier definition is shown as long as it can be read', async () => {
  expect(await catalog.get('join', earlier?.hash)).toMatchObject({
    current: false,
    tasks: [{ onFailure: [{ details: { name: 'guests' } }] }],
  })
  expect(await catalog.get('join', 'unknown')).toBeUndefined()
  expect(await catalog.get('none')).toBeUndefined()
})

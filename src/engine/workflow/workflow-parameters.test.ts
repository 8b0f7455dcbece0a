import { expect, test } from 'vitest'
import type { WorkflowConfig } from '#sdk/configuration.ts'
import { noFlow } from '#sdk/flow.ts'
import type { PreparedTask } from '#sdk/workflow-task.ts'
import { workflowParameters } from './workflow-parameters.ts'

const task = (calls: string[], more: Partial<PreparedTask> = {}): PreparedTask => ({
  taskType: 'callWorkflow',
  path: [],
  flow: noFlow,
  calls,
  onSuccess: [],
  onFailure: [],
  create: async () => {
    throw new Error('not to be created')
  },
  ...more,
})

const config = (name: string, parameters: string[], tasks: PreparedTask[]): [string, WorkflowConfig] => [
  name,
  {
    name,
    namespace: undefined,
    at: '',
    label: name,
    description: '',
    inList: false,
    orgId: undefined,
    hash: '',
    source: '',
    tasks,
    parameters,
  },
]

const workflows = new Map([
  config('a', ['x'], [task([], { onFailure: [task(['b'])] })]),
  config('b', ['y'], [task(['a', 'missing'])]),
  config('c', ['z'], []),
])

test('parameters of called workflows count, in whichever branch, and a circle ends', () => {
  expect([...(workflowParameters({ workflows }, 'a') ?? [])].sort()).toEqual(['x', 'y'])
  expect([...(workflowParameters({ workflows }, 'c') ?? [])]).toEqual(['z'])
})

test('no workflow is not one without parameters', () => {
  expect(workflowParameters({ workflows }, 'missing')).toBeUndefined()
  expect(workflowParameters({ workflows }, '__proto__')).toBeUndefined()
})

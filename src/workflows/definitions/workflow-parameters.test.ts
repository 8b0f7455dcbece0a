import { expect, test } from 'vitest'
import type { TargetConfig, WorkflowConfig } from '#config/configuration/configuration.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import { type PreparedMapping, prepareMapping } from '#sdk/mapper/mapping.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'
import { fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { customTask, parseTasks, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import { loginAttributes, workflowParameters } from './workflow-parameters.ts'

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

test('includes parameters of called workflows, in any branch, and ends on a circle', () => {
  expect([...(workflowParameters({ workflows }, 'a') ?? [])].sort()).toEqual(['x', 'y'])
  expect([...(workflowParameters({ workflows }, 'c') ?? [])]).toEqual(['z'])
})

test('an unknown workflow differs from one without parameters', () => {
  expect(workflowParameters({ workflows }, 'missing')).toBeUndefined()
  expect(workflowParameters({ workflows }, '__proto__')).toBeUndefined()
})

test('logins are made from attributes by mapping tasks, also of called workflows, and by targets', () => {
  const rules = (sourceType: 'user' | 'composite', source: string): PreparedMapping =>
    prepareMapping([{ attribute: 'TREMOLO_USER_ID', sourceType, source, path: [] }], noIssues(), fakeParseContext())
  const mapping = (name: string) => task([], { flow: { ...noFlow, loginReads: [name] } })
  const all = new Map([
    config('outer', [], [task(['inner'])]),
    config('inner', [], [task([], { onSuccess: [mapping('badge')] })]),
    config('opaque', [], [task([], { flow: { ...noFlow, loginReads: 'any' } })]),
  ])
  const target = (prepared?: PreparedMapping) => ({ mapping: prepared }) as unknown as TargetConfig
  const targets = new Map([
    ['plain', target()],
    ['crm', target(rules('composite', '${employeeNumber}@crm'))],
    ['same', target(rules('user', 'TREMOLO_USER_ID'))],
  ])
  const of = (name: string) => loginAttributes({ workflows: all, targets }, name)
  expect(of('outer')).toEqual(new Set(['badge', 'employeeNumber']))
  expect(of('missing')).toEqual(new Set(['employeeNumber']))
  expect(of('opaque')).toBe('any')
})

test('logins are also made in workflows that a task starts; in any workflow if its name is a template', () => {
  const starting = (starts: readonly string[] | 'any') =>
    task([], { flow: { ...noFlow, starts, loginReads: ['owner'] } })
  const mapping = task([], { flow: { ...noFlow, loginReads: ['badge'] } })
  const all = new Map([
    config('named', ['p'], [starting(['later'])]),
    config('templated', [], [starting('any')]),
    config('later', ['q'], [mapping]),
    config('other', [], [task([], { flow: { ...noFlow, loginReads: ['desk'] } })]),
  ])
  const of = (name: string) => loginAttributes({ workflows: all, targets: new Map() }, name)
  expect(of('named')).toEqual(new Set(['owner', 'badge']))
  expect(of('templated')).toEqual(new Set(['owner', 'badge', 'desk']))
  expect(of('later')).toEqual(new Set(['badge']))
  expect([...(workflowParameters({ workflows: all }, 'named') ?? [])]).toEqual(['p'])
})

test('attributes by which a task finds accounts count, and so do the sources of their mappings', () => {
  const load = (className: string, nameAttr: string) =>
    customTask(className, { target: 'crm', nameAttr, ...(className.includes('Attributes') ? { name: 'phone' } : {}) })
  const rule = (targetAttributeName: string, sourceType: string, targetAttributeSource: string) => ({
    targetAttributeName,
    sourceType,
    targetAttributeSource,
  })
  const of = (...specs: TaskSpec[]) => {
    const all = new Map([config('w', [], [...parseTasks(specs).tasks])])
    return loginAttributes({ workflows: all, targets: new Map() }, 'w')
  }
  expect(of(load('tasks.LoadAttributesFromTarget', 'mail'))).toEqual(new Set(['mail']))
  expect(of(load('tasks.LoadGroupsFromTarget', 'badge'))).toEqual(new Set(['badge']))
  expect(of(load('tasks.LoadGroupsFromTarget', 'TREMOLO_USER_ID'))).toEqual(new Set())
  const later = [load('tasks.LoadGroupsFromTarget', 'badge')]
  const inner = { taskType: 'mapping', map: [rule('badge', 'composite', 'B-${desk}')], onSuccess: later }
  const outer = { taskType: 'mapping', map: [rule('DESK', 'user', 'room'), rule('x', 'user', 'y')], onSuccess: [inner] }
  expect(of(outer)).toEqual(new Set(['badge', 'desk', 'room']))
})

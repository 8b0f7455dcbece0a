import { expect, test } from 'vitest'
import { prepareMapping } from '#sdk/mapper/mapping.ts'
import { fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { parseTasks, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import { workflowWrites } from './workflow-writes.ts'

const provision = (more: TaskSpec = {}): TaskSpec => ({ taskType: 'provision', target: 'people', sync: true, ...more })

const mapped = prepareMapping(
  [
    { attribute: 'mail', sourceType: 'user', source: 'email', path: ['a'] },
    { attribute: 'cn', sourceType: 'composite', source: '${first} ${last}', path: ['b'] },
    { attribute: 'fixed', sourceType: 'static', source: 'x', path: ['c'] },
  ],
  noIssues(),
  fakeParseContext(),
)

function writesOf(tasks: readonly TaskSpec[], called: Readonly<Record<string, readonly TaskSpec[]>> = {}) {
  const all = new Map(Object.entries({ ...called, start: tasks }).map(([name, list]) => [name, parseTasks(list).tasks]))
  const mapping = (target: string) => (target === 'mapped' ? mapped : undefined)
  return workflowWrites({ tasks: (name) => all.get(name), mapping }, 'start')
}

test('a provision task with a list writes the listed attributes, and one without writes all', () => {
  const listed = writesOf([provision({ attributes: ['uid', 'Mail'] })])
  expect(listed.ofUser('mail')).toEqual([{ target: 'people', attribute: 'mail' }])
  expect(listed.ofUser('active')).toEqual([])
  expect(writesOf([provision()]).ofUser('active')).toEqual([{ target: 'people', attribute: 'active' }])
})

test('a target with its own mapping gets what the mapping reads, under other names', () => {
  const writes = writesOf([provision({ target: 'mapped' })])
  expect(writes.ofUser('email')).toEqual([{ target: 'mapped', attribute: 'mail' }])
  expect(writes.ofUser('last')).toEqual([{ target: 'mapped', attribute: 'cn' }])
  expect(writes.ofUser('mail')).toEqual([])
  expect(writesOf([provision({ target: 'mapped', attributes: ['mail'] })]).ofUser('last')).toEqual([])
})

const rule = (targetAttributeName: string, targetAttributeSource: string, sourceType = 'user') => ({
  targetAttributeName,
  sourceType,
  targetAttributeSource,
})

test.each([
  [true, []],
  [false, [{ target: 'people', attribute: 'other' }]],
])('a mapping task passes its results to its subtasks, strict: %s', (strict, others) => {
  const map = [rule('mail', 'email'), rule('kind', 'person', 'static')]
  const writes = writesOf([{ taskType: 'mapping', strict, map, onSuccess: [provision()] }])
  expect(writes.ofUser('email')).toContainEqual({ target: 'people', attribute: 'mail' })
  expect(writes.ofUser('mail')).toEqual([])
  expect(writes.ofUser('other')).toEqual(others)
})

test('called workflows and both branches of a condition count', () => {
  const question = { taskType: 'ifAttrHasValue', name: 'kind', value: 'x' }
  const writes = writesOf(
    [
      {
        ...question,
        onSuccess: [{ taskType: 'callWorkflow', name: 'other' }],
        onFailure: [provision({ attributes: ['b'] })],
      },
    ],
    { other: [provision({ attributes: ['a'] })] },
  )
  expect([writes.ofUser('a'), writes.ofUser('b'), writes.ofUser('c')].map((one) => one.length)).toEqual([1, 1, 0])
})

test('an attribute that decides what happens may have any effect', () => {
  for (const taskType of ['ifAttrHasValue', 'ifAttrExists']) {
    const writes = writesOf([
      { taskType, name: 'active', value: 'x', onSuccess: [{ taskType: 'delete', target: 'people' }] },
    ])
    expect(writes.ofUser('active')).toBe('unknown')
    expect(writes.ofUser('title')).toEqual([])
  }
})

test('a script, a separate run and a missing workflow may do anything', () => {
  const custom = (className: string, params: object) => ({ taskType: 'customTask', className, params })
  for (const tasks of [
    [custom('tasks.JavaScriptTask', { javaScript: 'function doTask() { return true }' })],
    [custom('tasks.AsyncCallWorkflow', { workflowName: 'x', uidAttributeName: 'TREMOLO_USER_ID' })],
    [{ taskType: 'callWorkflow', name: 'absent' }],
    [{ taskType: 'callWorkflow', name: 'start' }],
  ]) {
    const writes = writesOf(tasks)
    expect([writes.ofUser('x'), writes.ofGroup('x'), writes.passwords]).toEqual(['unknown', 'unknown', 'unknown'])
  }
})

test('passwords are set where a provision task says so', () => {
  expect(writesOf([provision()]).passwords).toEqual([])
  expect(writesOf([provision({ setPassword: true })]).passwords).toEqual(['people'])
})

test('group tasks write all attributes, or those they name', () => {
  const custom = (params: object) => writesOf([{ taskType: 'customTask', className: 'tasks.UpdateGroup', params }])
  expect(custom({ target: 'people' }).ofGroup('externalId')).toEqual([{ target: 'people', attribute: 'externalid' }])
  expect(custom({ target: 'people' }).ofUser('externalId')).toEqual([])
  const named = custom({ target: 'people', attributes: ['description', 'note=by ${author}'] })
  expect(named.ofGroup('externalId')).toEqual([])
  expect(named.ofGroup('description')).toEqual([{ target: 'people', attribute: 'description' }])
  expect(named.ofGroup('author')).toBe('unknown')
})

test('a workflow writes several times if two of its steps may, also in branches and called workflows', () => {
  const severalTimes = (...given: Parameters<typeof writesOf>) => writesOf(...given).severalTimes
  const question = { taskType: 'ifAttrHasValue', name: 'kind', value: 'x' }
  const called = { next: [provision()] }
  const call = { taskType: 'callWorkflow', name: 'next' }
  expect(severalTimes([])).toBe(false)
  expect(severalTimes([{ taskType: 'addGroup', name: 'crew' }, provision()])).toBe(false)
  expect(severalTimes([provision(), provision({ target: 'others' })])).toBe(true)
  expect(severalTimes([provision(), { taskType: 'delete', target: 'others' }])).toBe(true)
  expect(severalTimes([call], called)).toBe(false)
  expect(severalTimes([call, call], called)).toBe(true)
  expect(severalTimes([{ ...question, onSuccess: [provision()] }, provision()])).toBe(true)
})

import { expect, test } from 'vitest'
import { Dn } from '#identity/dn.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'
import { reloadRoot } from './reload-root.ts'

const task = (more: Partial<PreparedTask> = {}): PreparedTask => ({
  taskType: 'test',
  path: [],
  flow: noFlow,
  calls: [],
  onSuccess: [],
  onFailure: [],
  create: () => Promise.reject(new Error('not created')),
  ...more,
})
const reloads = (root: string): PreparedTask => task({ flow: { ...noFlow, reloadsFrom: Dn.parse(root) } })

const workflows: Readonly<Record<string, readonly PreparedTask[]>> = {
  none: [task()],
  last: [reloads('o=A'), task(), reloads('o=B'), task()],
  inner: [task({ onSuccess: [task({ onFailure: [reloads('o=C')] })] })],
  called: [task({ calls: ['none', 'inner'] })],
  circular: [reloads('o=D'), task({ calls: ['circular'] })],
}

test.each([
  ['none', undefined],
  ['unknown', undefined],
  ['last', 'o=B'],
  ['inner', 'o=C'],
  ['called', 'o=C'],
  ['circular', 'o=D'],
])('%s: %s', (name, expected) => {
  expect(reloadRoot((one) => workflows[one], name)?.toString()).toBe(expected)
})

import { expect, test } from 'vitest'
import { customTask, parseTasks } from '#testing/workflows/workflow-fixture.ts'
import { catalog } from './catalog.ts'

/** Tasks that change something outside their run. A run of a workflow with two of them is stored before its first step. */
const writers = [
  'delete',
  'provision',
  'tasks.AddArgoCDPolicies',
  'tasks.AddGroupToRoleBinding',
  'tasks.AddGroupToStore',
  'tasks.CallRemoteWorkflow',
  'tasks.CopyGroupMembers',
  'tasks.CreateArgoCDRepository',
  'tasks.CreateGroup',
  'tasks.CreateK8sObject',
  'tasks.CreateOpenShiftProject',
  'tasks.CreateUserGroups',
  'tasks.DeleteGroup',
  'tasks.DeleteGroupMembers',
  'tasks.DeleteK8sObject',
  'tasks.ExtendAccess',
  'tasks.JavaScriptTask',
  'tasks.NestGroup',
  'tasks.PatchK8sObject',
  'tasks.RevokeAccess',
  'tasks.UpdateGroup',
]

test('every task that changes a system says so', () => {
  const types = [...catalog.tasks.keys()].filter((taskType) => taskType !== 'customTask')
  const specs = [
    ...types.map((taskType) => ({ taskType })),
    ...catalog.customTasks.names().map((className) => customTask(className)),
  ]
  const { tasks } = parseTasks(specs)
  const writing = tasks.flatMap(({ flow, taskType, name }) => (flow.writes === true ? [name ?? taskType] : []))
  expect(writing.sort()).toEqual(writers)
})

import { expect, test } from 'vitest'
import { customTask, issuesOf, parseTasks } from '#testing/workflows/workflow-fixture.ts'

const openShift = 'com.tremolosecurity.unison.openshiftv3.tasks'
const project = (template: string) =>
  issuesOf([customTask(`${openShift}.CreateProject`, { targetName: 'openshift', template })]).join()
const binding = (more = {}) =>
  customTask(`${openShift}.AddGroupToRole`, {
    targetName: 'openshift',
    projectName: '$project$',
    groupName: 'view-$project$',
    roleName: 'view',
    ...more,
  })

test('the template of a project is a ProjectRequest of either version', () => {
  expect(project('{"kind":"ProjectRequest","apiVersion":"v1","metadata":{"name":"$p$"}}')).toBe('')
  expect(project('{kind: ProjectRequest, apiVersion: project.openshift.io/v1, metadata: {name: $p$}}')).toBe('')
  expect(project('{kind: Namespace, apiVersion: v1, metadata: {name: $p$}}')).toContain(
    'must be a ProjectRequest of project.openshift.io/v1, not a Namespace of v1',
  )
  expect(project('{kind: $k$, apiVersion: v1, metadata: {name: $p$}}')).toContain('needs a fixed "kind"')
  expect(project('{kind: ProjectRequest, apiVersion: v1, metadata: {name: $p$, namespace: x}}')).toContain(
    'has no namespace',
  )
})

test('a fixed cluster must exist, and versions of OpenShift with RoleBindings are accepted', () => {
  const { referred, issues } = parseTasks([binding({ version: '3.9' })])
  expect(issues.list).toEqual([])
  expect(referred).toEqual([{ kind: 'target', name: 'openshift', path: [0, 'params', 'targetName'] }])
  expect(issuesOf([binding({ version: '3.6' })]).join()).toContain('policy bindings')
})

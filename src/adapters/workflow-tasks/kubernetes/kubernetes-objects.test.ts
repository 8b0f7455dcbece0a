import { describe, expect, test } from 'vitest'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import type { WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { customTask, issuesOf, parseTasks } from '#testing/workflows/workflow-fixture.ts'
import { parseObjectUrl } from './object-url.ts'

const openUnison = 'com.tremolosecurity.provisioning.tasks'
const ok = { targetName: 'k8s', template: '{apiVersion: v1, kind: Namespace, metadata: {name: $n$}}' }
const create = (params: Record<string, string>) =>
  issuesOf([customTask(`${openUnison}.CreateK8sObject`, { ...ok, ...params })])

describe('tasks.CreateK8sObject', () => {
  test('a fixed target must exist, one from the request cannot be known', () => {
    const referred = (targetName: string) =>
      parseTasks([customTask('tasks.CreateK8sObject', { ...ok, targetName })]).referred
    expect(referred('k8s')).toEqual([{ kind: 'target', name: 'k8s', path: [0, 'params', 'targetName'] }])
    expect(referred('$cluster$')).toEqual([])
  })

  test.each([
    ['kind: X\nmetadata: {name: a}', 'needs a fixed "apiVersion"'],
    ['apiVersion: v1\nkind: $kind$\nmetadata: {name: a}', 'needs a fixed "kind"'],
    ['apiVersion: v1\nkind: X\nmetadata: {}', 'needs metadata.name'],
    ['apiVersion: v1\nkind: X\nmetadata: {generateName: a-}', 'generateName'],
    ['- a', 'must be one object'],
    ['a: b: c', 'line 1'],
    ['a: 1\n---\nb: 2', 'several documents'],
  ])('rejects the template %j', (template, message) => {
    expect(create({ template }).join()).toContain(message)
  })

  test('warns of Git, and refuses unusable patches', () => {
    expect(create({})).toEqual([])
    expect(create({ writeToRequest: 'false', requestAttribute: 'a', path: 'b' })).toEqual([])
    expect(create({ writeToRequest: '$useGit$' })).toEqual([])
    expect(create({ writeToRequest: 'True' })).toEqual([
      '0.params.writeToRequest: Gatehouse does not write to Git: a run that reaches this task fails',
    ])
    expect(create({ patchTemplate: 'a: b', patchType: 'json' }).join()).toContain('a list of operations')
    expect(create({ patchTemplate: 'a: b', patchType: 'apply' }).join()).toContain('use merge, strategic or json')
    expect(create({ patchType: 'other' }).join()).toContain('must be one of')
  })
})

test('tasks.PushToGit loads with a warning', () => {
  expect(issuesOf([customTask(`${openUnison}.PushToGit`, { gitRepo: '$clusterGitUrl$' })])).toEqual([
    '0.params.gitRepo: Gatehouse does not write to Git: a run that reaches this task fails',
  ])
})

describe('tasks.WaitForStatus', () => {
  test.each([
    ['.status.phase', 'is not path=value'],
    ['.status.$x$=1', 'must be a fixed path'],
    ['.status[=1', 'conditions'],
  ])('rejects the condition %j', (condition, message) => {
    const params = { target: 'k8s', uri: '/api/v1/namespaces/$n$', conditions: [condition] }
    expect(issuesOf([customTask(`${openUnison}.WaitForStatus`, params)]).join()).toContain(message)
  })
})

describe('a path of an object', () => {
  const user = userOf('ada') as WorkflowUser
  const rendered = (url: string, values: Record<string, string> = {}) =>
    parseObjectUrl(url).render({ request: new Map(Object.entries(values)), user })

  test('has a namespace, a name or labels', () => {
    expect(rendered('/api/v1/namespaces/$n$', { n: 'a' })).toEqual({
      resource: { group: '', version: 'v1', plural: 'namespaces' },
      name: 'a',
    })
    expect(rendered('/apis/apps/v1/namespaces/x-$n$/deployments/d%2Dd', { n: 'a' })).toEqual({
      resource: { group: 'apps', version: 'v1', plural: 'deployments', namespace: 'x-a' },
      name: 'd-d',
    })
    expect(rendered('/api/v1/namespaces/a/pods?labelSelector=app%3D$n$%2Cb', { n: 'a.b' })).toEqual({
      resource: { group: '', version: 'v1', plural: 'pods', namespace: 'a' },
      labels: 'app=a.b,b',
    })
  })

  test('a value stays within its part', () => {
    expect(rendered('/api/v1/namespaces/$n$', { n: 'a/pods/b' })).toMatchObject({ name: 'a/pods/b' })
    expect(() => rendered('/api/v1/namespaces/$n$/pods/x', {})).toThrow('has no value')
    expect(() => rendered('/api/v1/pods?labelSelector=a%3D$n$', { n: 'x,y' })).toThrow('not the value of a label')
    expect(() => rendered('/api/v1/pods?labelSelector=a%3D$n$', {})).toThrow('has no value')
  })

  test.each([
    'api/v1/namespaces/x',
    '/healthz',
    '/api/v1',
    '/api/v1/namespaces',
    '/api/v1/namespaces/a/pods',
    '/api/v1/$plural$/a',
    '/apis/$group$/v1/a/b',
    '/api/v1/namespaces/a/pods/b/log',
    '/api/v1/namespaces//pods/b',
    '/api/v1/namespaces/a?dryRun=All',
    '/api/v1/pods?labelSelector=',
    '/api/v1/pods?labelSelector=a&limit=1',
  ])('rejects %j', (url) => {
    expect(() => parseObjectUrl(url)).toThrow(/./)
  })
})

import { describe, expect, test } from 'vitest'
import { customTask, issuesOf } from '#testing/workflows/workflow-fixture.ts'

const argoCd = 'com.tremolosecurity.argocd.tasks'

describe('policies of Argo CD', () => {
  const add = (toAdd: string) => issuesOf([customTask(`${argoCd}.AddtoRBAC`, { k8sTarget: 'k8s', toAdd })]).join()

  test('lines, empty lines and comments are read', () => {
    expect(
      add(`
        # operations
        p, role:$nameSpace$-operations, applications, *, $nameSpace$/*, allow

        g, k8s-namespace-operations-$nameSpace$, role:$nameSpace$-operations
      `),
    ).toBe('')
  })

  test.each([
    ['p, role:a, applications, get, a/*', 'is neither'],
    ['g, a, role:b, c', 'is neither'],
    ['x, a, b', 'is neither'],
    ['g, , role:a', 'is neither'],
    ['p, role:a, $resource$, get, a/*, allow', 'must be a fixed text'],
    ['p, role:a, applications, $action$, a/*, allow', 'must be a fixed text'],
    ['p, role:a, applications, get, a/*, $effect$', 'must be a fixed text'],
    ['$kind$, a, role:b', 'is neither'],
  ])('%j is rejected', (line, message) => {
    expect(add(line)).toContain(message)
  })
})

test('the key of a repository comes from the request', () => {
  const repository = (sshPrivateKey: string) =>
    issuesOf([
      customTask(`${argoCd}.CreateGitRepository`, {
        type: 'git',
        name: '$nameSpace$-build',
        repoUrl: '$gitSshInternalURL$',
        target: 'argocd',
        sshPrivateKey,
      }),
    ])
  expect(repository('$gitPrivateKey$')).toEqual([])
  expect(repository('-----BEGIN').join()).toContain('must be a value of the request')
})

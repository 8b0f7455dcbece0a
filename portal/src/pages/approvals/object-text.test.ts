import { expect, test } from 'vitest'
import { objectText } from './object-text.ts'

test.each([
  ['/api/v1/namespaces/team-red', 'Namespace', 'Namespace team-red'],
  [
    '/apis/rbac.authorization.k8s.io/v1/namespaces/team-red/rolebindings/admins',
    'RoleBinding',
    'RoleBinding team-red/admins',
  ],
  ['/apis/rbac.authorization.k8s.io/v1/clusterroles/reader', undefined, 'clusterroles reader'],
  ['/api/v1/namespaces/namespaces/configmaps/quota', undefined, 'configmaps namespaces/quota'],
  ['something', 'Namespace', 'something'],
])('%s of the kind %s is "%s"', (name, objectKind, text) => {
  expect(objectText({ name, ...(objectKind === undefined ? {} : { objectKind }) })).toBe(text)
})

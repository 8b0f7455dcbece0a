import { expect, test } from 'vitest'
import { bindingPlace } from './role-bindings-target.ts'

test.each([
  ['crb:admins', 'clusterrolebindings', undefined, 'admins'],
  ['crb:system:node', 'clusterrolebindings', undefined, 'system:node'],
  ['rb:ns:admins', 'rolebindings', 'ns', 'admins'],
  ['rb:ns:system:x', 'rolebindings', 'ns', 'system:x'],
])('%s is a binding', (group, plural, namespace, name) => {
  const place = bindingPlace(group)
  expect(place).toMatchObject({ name, resource: { plural } })
  expect(place?.resource.namespace).toBe(namespace)
})

test.each(['admins', '', 'RB:ns:x', 'xcrb:admins', 'crb'])('"%s" is a group of another target', (group) => {
  expect(bindingPlace(group)).toBeUndefined()
})

test.each(['crb:', 'rb:', 'rb:ns', 'rb::x', 'rb:ns:'])('%s is rejected', (group) => {
  expect(() => bindingPlace(group)).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
})

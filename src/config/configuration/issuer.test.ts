import { expect, test } from 'vitest'
import { isIssuedBy, issuersByName } from './issuer.ts'

test.each([
  ['https://portal.test/auth/idp/people', true],
  ['http://PORTAL.test:8080/auth/idp/people', true],
  ['https://portal.test/auth/idp/people/', false],
  ['https://portal.test/auth/idp/others', false],
  ['https://elsewhere.test/auth/idp/people', false],
  ['people', false],
])('tokens of %s are our own: %s', (issuer, own) => {
  expect(isIssuedBy({ mount: '/auth/idp/people', hosts: ['portal.test'] }, issuer)).toBe(own)
})

test('an issuer that is served at every host is known at each', () => {
  expect(isIssuedBy({ mount: '/auth/idp/people', hosts: ['*'] }, 'https://any.test/auth/idp/people')).toBe(true)
})

test('an issuer is also known by its Application, unless that has several', () => {
  const of = (application: string, name: string) => ({ application, name })
  const all = issuersByName([of('k8sidp', 'k8sIdp'), of('both', 'one'), of('both', 'two'), of('two', 'three')])
  expect(Array.from(all, ([name, found]) => [name, found.name])).toEqual([
    ['k8sidp', 'k8sIdp'],
    ['two', 'two'],
    ['k8sIdp', 'k8sIdp'],
    ['one', 'one'],
    ['three', 'three'],
  ])
})

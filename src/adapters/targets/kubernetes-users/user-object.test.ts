import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { foldLogin, objectName } from './kubernetes-users-target.ts'

const hash = /^u-[0-9a-f]{64}$/

describe('the name of a login', () => {
  test.each([
    ['ada', 'ada'],
    ['Ada.Lovelace', 'ada.lovelace'],
    ['ada@x.test', 'adax-64-xx.test'],
    ['user1', 'userx-49-x'],
  ])('%s is %s, as in OpenUnison', (login, name) => {
    expect(objectName(login)).toBe(name)
  })

  test.each([['-ada'], ['ada.'], ['a..b'], ['.'], ['..'], ['a.-b.'], ['x'.repeat(300)], ['@'.repeat(100)]])(
    '%s is a hash, since it is not a valid name',
    (login) => {
      expect(objectName(login)).toMatch(hash)
    },
  )

  test('differs if logins differ by more than ASCII letter case, and is always a valid name', () => {
    const unit = fc.oneof(
      fc.constantFrom(...'xXa649@.-'),
      fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
    )
    const text = fc.string({ unit, maxLength: 12 })
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(objectName(a) === objectName(b)).toBe(foldLogin(a) === foldLogin(b))
        expect(objectName(a)).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/)
        expect(objectName(a).length).toBeLessThanOrEqual(253)
      }),
      { numRuns: 300 },
    )
  })
})

import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { isSwitchedOff } from '#identity/switched-off.ts'

test.each<Record<string, string[]>>([
  { active: ['false'] },
  { ACTIVE: ['False '] },
  { active: ['true', 'false'] },
  { nsAccountLock: ['TRUE'] },
  { loginDisabled: ['true'] },
  { pwdAccountLockedTime: ['000001010000Z'] },
  { userAccountControl: ['514'] },
  { userAccountControl: ['66050'] },
])('%j is switched off', (attributes) => {
  expect(isSwitchedOff(Attributes.from(attributes))).toBe(true)
})

test.each<Record<string, string[]>>([
  {},
  { active: ['true'] },
  { active: [] },
  { active: ['no'] },
  { inactive: ['false'] },
  { nsAccountLock: ['false'] },
  { pwdAccountLockedTime: ['20300101120000Z'] },
  { userAccountControl: ['512'] },
  { userAccountControl: ['0x2'] },
  { userAccountControl: ['-2'] },
  { userAccountControl: ['99999999999999999999'] },
])('%j is not', (attributes) => {
  expect(isSwitchedOff(Attributes.from(attributes))).toBe(false)
})

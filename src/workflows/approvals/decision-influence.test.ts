import { expect, test } from 'vitest'
import { entryIdentity, issuerIdentity, loginIdentity } from '#identity/identity.ts'
import { barOf, isInvolvedIn, partiesOf, requireUninvolved } from './decision-influence.ts'

const entry = (login: string) => ({ identity: entryIdentity('people', `id of ${login}`), login })
const run = { requester: 'ada', caller: 'cy', subject: 'sue', who: {} }
const who = { requester: entry('ada').identity, caller: entry('cy').identity, subject: entry('sue').identity }

test('requester, caller and subject are involved in a run, and no one else', () => {
  const known = { ...run, who }
  for (const login of ['ada', 'cy', 'sue']) {
    expect(isInvolvedIn(known, entry(login))).toBe(true)
    expect(() => requireUninvolved(known, entry(login))).toThrow(expect.objectContaining({ code: 'ACCESS_DENIED' }))
  }
  expect(isInvolvedIn(known, entry('bob'))).toBe(false)
})

test('users are compared by identity: a renamed user is involved, another user with the login is not', () => {
  expect(isInvolvedIn({ ...run, who }, { ...entry('ada'), login: 'ada.king' })).toBe(true)
  expect(isInvolvedIn({ ...run, who }, { ...entry('other'), login: 'ada' })).toBe(false)
})

test('users without a known directory entry are compared by every name, loosely', () => {
  expect(isInvolvedIn(run, { ...entry('ada'), login: ' ＡＤＡ' })).toBe(true)
  expect(isInvolvedIn(run, { ...entry('x'), names: ['sue'] })).toBe(true)
  const former = { ...run, who: { ...who, requester: loginIdentity('ada') } }
  expect(isInvolvedIn(former, entry('ada'))).toBe(true)
  const issued = { ...run, who: { ...who, requester: issuerIdentity('https://idp', 'ada') } }
  expect(isInvolvedIn(issued, entry('ada'))).toBe(true)
})

test('an operator of whom only the login is known is compared by login', () => {
  expect(isInvolvedIn({ ...run, who }, { identity: loginIdentity('ada'), login: 'ada' })).toBe(true)
  expect(isInvolvedIn({ ...run, who }, { identity: loginIdentity('root'), login: 'root' })).toBe(false)
})

test('allowSelf lets involved users decide in their own name only, and never the operator who chose the approver', () => {
  const parties = { involved: partiesOf([entry('ada')]), reassignedBy: partiesOf([entry('linus')]), allowSelf: true }
  expect(barOf(parties, entry('ada'), [])).toBeUndefined()
  expect(barOf(parties, entry('ada'), [], { forOthers: true })).toBe('involved')
  expect(barOf({ ...parties, allowSelf: false }, entry('ada'), [])).toBe('involved')
  for (const forOthers of [true, false]) {
    expect(barOf(parties, entry('linus'), [], { forOthers })).toBe('reassigned')
    expect(barOf(parties, entry('bob'), [], { forOthers })).toBeUndefined()
  }
})

test('an operator without a directory entry is also barred by name', () => {
  const parties = { involved: partiesOf([]), reassignedBy: partiesOf([{ ...entry('x'), login: 'linus' }]) }
  expect(barOf(parties, { ...entry('y'), login: 'linus' }, [])).toBeUndefined()
  const issued = { identity: issuerIdentity('https://idp', '7'), login: 'linus' }
  expect(barOf({ ...parties, reassignedBy: partiesOf([issued]) }, entry('Linus'), [])).toBe('reassigned')
})

import { describe, expect, test } from 'vitest'
import { JsonDocument, type MappedValue } from '#identity/mapping/mapped-value.ts'
import { subject } from '#testing/login/subjects.ts'
import { accountOf, readAccount } from './issuer-account.ts'

const ada = subject('uid=ada,o=Tremolo')
const account = (mapped: Readonly<Record<string, MappedValue>>) =>
  accountOf(ada, { apply: async () => new Map(Object.entries(mapped)), dependents: () => [] })

describe('the claims of a user', () => {
  test('are texts or lists, as consumers expect', async () => {
    expect(
      await account({
        sub: ['ada'],
        email: ['a@b'],
        email_verified: ['true'],
        groups: ['one'],
        phone: ['1', '2'],
        address: new JsonDocument({ city: 'x' }),
      }),
    ).toEqual({
      uid: 'ada',
      sub: 'ada',
      claims: { email: 'a@b', email_verified: true, groups: ['one'], phone: ['1', '2'], address: { city: 'x' } },
    })
  })

  test.each([{}, { sub: [] }, { sub: [''] }, { sub: ['a', 'b'] }])(
    "can't be created without exactly one sub: %j",
    async (mapped) => {
      await expect(account(mapped as Record<string, string[]>)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    },
  )

  test.each([undefined, null, 'x', {}, { uid: 'a', sub: 1, claims: {} }, { uid: 'a', sub: 'b', claims: [] }])(
    'are not read from %j',
    (value) => expect(readAccount(value)).toBeUndefined(),
  )
})

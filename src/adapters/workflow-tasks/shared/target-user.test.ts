import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { noVersion } from '#sdk/workflow/workflow.ts'
import { checkVersion } from './target-user.ts'

const user = (version?: string): User => ({
  userID: 'ada',
  attributes: new Attributes(),
  groups: [],
  ...(version === undefined ? {} : { version }),
})

describe('checkVersion', () => {
  test.each<[string, User | undefined, string | undefined, string]>([
    ['another version', user('2'), '1', 'VERSION_MISMATCH'],
    ['a deleted user', undefined, '1', 'VERSION_MISMATCH'],
    ['a user who was absent', user('1'), noVersion, 'CONFLICT'],
    ['a user who was absent, without a version', user(), noVersion, 'CONFLICT'],
  ])('refuses %s', (_, found, expected, code) => {
    expect(() => checkVersion(found, expected)).toThrowError(expect.objectContaining({ code }))
  })

  test.each<[string, User | undefined, string | undefined]>([
    ['the version that was read', user('1'), '1'],
    ['an absent user, as before', undefined, noVersion],
    ['any user if nothing was read', user('1'), undefined],
    ['an absent user if nothing was read', undefined, undefined],
  ])('accepts %s', (_, found, expected) => {
    expect(() => checkVersion(found, expected)).not.toThrow()
  })
})

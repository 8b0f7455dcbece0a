import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { DirectoryEntry, DirectorySearch } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { entryIdentity, issuerIdentity, loginIdentity } from '#identity/identity.ts'
import { type LogFields, type Logger, silentLogger } from '#kernel/logger.ts'
import { nameLookup } from './person-names.ts'

const entry = (id: string, uid: string, displayName?: string): DirectoryEntry => ({
  dn: Dn.of(['entry', id], ['o', 'x']),
  identity: entryIdentity('people', id),
  attributes: Attributes.from({ uid: [uid], ...(displayName === undefined ? {} : { displayName: [displayName] }) }),
})

function open(entries: readonly DirectoryEntry[], fail?: () => Promise<never>) {
  const searches: DirectorySearch[] = []
  const warnings: string[] = []
  const log: Logger = { ...silentLogger, warn: (text: string, _fields?: LogFields) => void warnings.push(text) }
  const directory = {
    search: async (search: DirectorySearch) => {
      searches.push(search)
      await fail?.()
      return entries.filter(({ attributes }) => matches(search.filter, attributes)).slice(0, search.limit)
    },
  }
  const names = nameLookup({ directory, loginAttribute: 'uid', nameAttribute: 'displayName', log })
  return { names, searches, warnings }
}

const ada = entry('1', 'ada', 'Ada King')

test('users are named by their own entry, in any letter case', async () => {
  const { names, searches } = open([ada, entry('2', 'plain'), entry('3', 'blank', ' ')])
  const users = [
    { login: 'ada', identity: ada.identity },
    { login: 'ADA' },
    { login: 'plain' },
    { login: 'blank' },
    { login: 'gone' },
    { login: '' },
    { login: 'Anonymous' },
    { login: '__proto__' },
  ]
  expect(await names(users)).toEqual({ ada: 'Ada King', ADA: 'Ada King' })
  expect(searches).toHaveLength(1)
  expect(await names([])).toEqual({})
  expect(await names([{ login: 'anonymous' }])).toEqual({})
  expect(searches).toHaveLength(1)
})

test('a login that belongs to another user by now has no name', async () => {
  const { names } = open([ada])
  const former = { login: 'ada', identity: entryIdentity('people', 'left') }
  const outside = { login: 'ada', identity: issuerIdentity('https://idp.example.com', 'ada') }
  expect(await names([former])).toEqual({})
  expect(await names([outside])).toEqual({})
  expect(await names([{ login: 'ada', identity: ada.identity }, former])).toEqual({})
  expect(await names([{ login: 'ada', identity: loginIdentity('ada') }])).toEqual({ ada: 'Ada King' })
})

test('of two users with one login, only one whose identity is known has a name', async () => {
  const { names } = open([ada, entry('2', 'ada', 'Ada Other')])
  expect(await names([{ login: 'ada' }])).toEqual({})
  expect(await names([{ login: 'ada', identity: ada.identity }])).toEqual({ ada: 'Ada King' })
})

test('many users take a few searches, and beyond the limit they have no name', async () => {
  const many = Array.from({ length: 1_200 }, (_, i) => entry(`${i}`, `u${i}`, `User ${i}`))
  const { names, searches } = open(many)
  const found = await names(many.map((_, i) => ({ login: `u${i}` })))
  expect(Object.keys(found)).toHaveLength(1_000)
  expect(searches).toHaveLength(10)
})

test('without the directory, or if it is too slow, there are no names', async () => {
  const down = open([ada], () => Promise.reject(new Error('down')))
  expect(await down.names([{ login: 'ada' }])).toEqual({})
  const slow = open([ada], () => new Promise<never>(() => {}))
  expect(await slow.names([{ login: 'ada' }])).toEqual({})
  expect([down.warnings.length, slow.warnings.length]).toEqual([1, 1])
})

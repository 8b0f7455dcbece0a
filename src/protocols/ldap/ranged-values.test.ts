import { expect, test } from 'vitest'
import { withWholeLists } from '#protocols/ldap/ldap-server.ts'

const bytes = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => Buffer.from(String(from + i)))
const entryOf = (name: string, from: number, to: number) => ({
  dn: 'cn=all',
  attributes: [
    ['cn', [Buffer.from('all')]],
    [name, bytes(from, to)],
  ] as const,
})

test('parts are read to the last one', async () => {
  const asked: string[] = []
  const whole = await withWholeLists(entryOf('member;range=0-1499', 0, 1500), async (attribute) => {
    asked.push(attribute)
    return asked.length === 1
      ? entryOf('member;range=1500-2999', 1500, 3000)
      : entryOf('member;Range=3000-*', 3000, 3001)
  })
  expect(asked).toEqual(['member;range=1500-*', 'member;range=3000-*'])
  expect(whole.attributes.map(([name, values]) => `${name} ${values.length} ${values.at(-1)}`)).toEqual([
    'cn 1 all',
    'member 3001 3000',
  ])
})

test('an entry without parts needs no further read', async () => {
  const entry = entryOf('member', 0, 3)
  expect(await withWholeLists(entry, () => Promise.reject(new Error('asked')))).toBe(entry)
})

test.each([
  ['is gone', undefined],
  ['gives the same part again', entryOf('member;range=0-1499', 0, 1500)],
  ['gives another attribute', entryOf('owner;range=1500-*', 0, 1)],
])('a server that %s is a failure, not a short result', async (_, part) => {
  const whole = withWholeLists(entryOf('member;range=0-1499', 0, 1500), async () => part)
  await expect(whole).rejects.toMatchObject({ code: 'TARGET_FAILED' })
})

test('endless parts are stopped', async () => {
  let at = 0
  const whole = withWholeLists(entryOf('member;range=0-0', 0, 1), async () =>
    entryOf(`member;range=${++at}-${at}`, 0, 1),
  )
  await expect(whole).rejects.toMatchObject({ code: 'TARGET_FAILED' })
  expect(at).toBe(1000)
})

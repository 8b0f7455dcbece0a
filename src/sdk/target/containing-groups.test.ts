import { expect, test } from 'vitest'
import { groupsAbove } from './containing-groups.ts'

const walk = async (parents: Readonly<Record<string, readonly string[]>>, ...starts: string[]) => {
  const asked: string[] = []
  const found = await groupsAbove(
    starts,
    (name) => name.toLowerCase(),
    async (name) => {
      asked.push(name)
      return parents[name] ?? []
    },
  )
  const above = (name: string) => found.of(name).map(({ group, direct }) => `${group} ${direct}`)
  return { asked, above }
}

test('groups are found through all levels, and each is read once', async () => {
  const { asked, above } = await walk({ d: ['b', 'c'], b: ['a'], c: ['a'], e: ['d'] }, 'd', 'e', 'D')
  expect(above('d')).toEqual(['b true', 'c true', 'a false'])
  expect(above('e')).toEqual(['d true', 'b false', 'c false', 'a false'])
  expect(asked.toSorted()).toEqual(['a', 'b', 'c', 'd', 'e'])
})

test('a group that contains the start directly and through others is direct', async () => {
  const { above } = await walk({ c: ['b', 'a'], b: ['a'] }, 'c')
  expect(above('c')).toEqual(['b true', 'a true'])
})

test('a cycle of groups ends the walk, and no group is above itself', async () => {
  const { above } = await walk({ a: ['b'], b: ['c'], c: ['a', 'c'] }, 'a')
  expect(above('a')).toEqual(['b true', 'c false'])
})

test('an endless nesting is rejected', async () => {
  const endless = (width: number) =>
    groupsAbove(['0'], String, async (name) => Array.from({ length: width }, (_, i) => `${name}.${i}`))
  await expect(endless(1)).rejects.toMatchObject({ code: 'TARGET_FAILED', message: expect.stringContaining('levels') })
  await expect(endless(20)).rejects.toMatchObject({ code: 'TARGET_FAILED', message: expect.stringContaining('5000') })
})

import { expect, test } from 'vitest'
import type { UserChange, UserDirectory, UserSync } from '#identity/user-directory.ts'
import { user } from '#storage/conformance/user-directory.ts'

const join = (userID: string, name: string, id: string): UserSync => ({
  userID,
  attributes: new Map(),
  groups: [name],
  addOnly: false,
  expectedGroup: { name, id },
})

const told = (changes: readonly UserChange[]): string[] =>
  changes.map(({ subject, action, attribute, value }) => `${subject} ${action} ${attribute}=${value}`)

const codes = (results: readonly PromiseSettledResult<unknown>[]): Set<string | undefined> =>
  new Set(results.flatMap((result) => (result.status === 'rejected' ? [result.reason?.code] : [])))

const mismatch = 'VERSION_MISMATCH'

/**
 * What every UserDirectory owes to a change that names the group it is about; `open` gives two that stand for the same
 * people, each by connections of its own.
 */
export function expectedGroupConformance(open: () => Promise<readonly [UserDirectory, UserDirectory]>): void {
  const names = async (directory: UserDirectory): Promise<string[]> =>
    (await directory.searchGroups({ offset: 0, limit: 10 })).items.map(({ name }) => name)

  test('it happens only while that group has the name, and makes none', async () => {
    const [directory] = await open()
    await directory.create(user('ada'))
    const { id } = await directory.createGroup('staff', new Map())
    await expect(directory.sync(join('ada', 'staff', 'another'))).rejects.toMatchObject({ code: mismatch })
    expect(told(await directory.sync(join('ada', 'STAFF', id)))).toEqual(['group add groups=staff'])
    await directory.updateGroup('staff', { newName: 'people' })
    await expect(directory.sync(join('ada', 'staff', id))).rejects.toMatchObject({ code: mismatch })
    await directory.deleteGroup('people')
    await expect(directory.sync(join('ada', 'people', id))).rejects.toMatchObject({ code: mismatch })
    expect(await names(directory)).toEqual([])
  })

  test('those who join while the group is renamed or goes are in it or in none', async () => {
    const [first, second] = await open()
    const logins = Array.from({ length: 20 }, (_, i) => `user${i}`)
    for (const login of logins) await first.create(user(login))
    const { id } = await first.createGroup('old', new Map())
    const joins = (name: string) => logins.map((login) => first.sync(join(login, name, id)))
    const joined = await Promise.allSettled([...joins('old'), second.updateGroup('old', { newName: 'new' })])
    expect([mismatch]).toEqual(expect.arrayContaining([...codes(joined)]))
    expect(await names(second)).toEqual(['new'])
    const left = await Promise.allSettled([...joins('new'), second.deleteGroup('new')])
    expect([mismatch]).toEqual(expect.arrayContaining([...codes(left)]))
    expect(await names(second)).toEqual([])
    for (const login of logins) expect((await first.findByLogin(login))?.groups).toEqual([])
  })
}

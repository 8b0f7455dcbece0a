import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { DirectorySearch, EntryDirectory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { customTask, userAfter } from '#testing/workflows/workflow-fixture.ts'

class OnePerson implements EntryDirectory {
  readonly searches: DirectorySearch[] = []
  readonly #copies: number

  constructor(copies = 1) {
    this.#copies = copies
  }

  async search(search: DirectorySearch) {
    this.searches.push(search)
    const attributes = Attributes.from({
      memberOf: ['cn=admins,ou=groups,o=Tremolo', 'cn=a\\,b,ou=groups,o=Tremolo'],
    })
    return Array.from({ length: this.#copies }, () =>
      directoryEntry({ dn: Dn.parse('uid=jjackson,o=Tremolo'), attributes }),
    )
  }

  async isMember() {
    return false
  }
}

const load = (extra = {}) => customTask('tasks.LoadGroups', { nameAttr: 'uid', ...extra })

test("adds the directory's groups to the user's", async () => {
  const directory = new OnePerson()
  const user = await userAfter([load()], { groups: ['own', 'Admins'] }, { directory })
  expect(user?.groups).toEqual(['own', 'Admins', 'a,b'])
  expect(directory.searches[0]).toMatchObject({
    scope: 'sub',
    filter: { kind: 'equal', attribute: 'uid', value: 'jjackson' },
  })
})

test("inverse keeps the directory's groups that the user does not have", async () => {
  const user = await userAfter([load({ inverse: 'true' })], { groups: ['admins'] }, { directory: new OnePerson() })
  expect(user?.groups).toEqual(['a,b'])
})

test('a login is a value, not a filter', async () => {
  const directory = new OnePerson(0)
  await userAfter([load()], { userID: '*)(uid=*' }, { directory })
  expect(directory.searches[0]?.filter).toEqual({ kind: 'equal', attribute: 'uid', value: '*)(uid=*' })
})

test('a login that appears twice in the directory fails', async () => {
  const run = userAfter([load()], {}, { directory: new OnePerson(2) })
  await expect(run).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
})

test('a user whose login changes is also searched by the new one', async () => {
  const directory = new OnePerson(0)
  await userAfter([load()], { newUserID: 'jsmith' }, { directory })
  expect(directory.searches.map(({ filter }) => filter)).toMatchObject([{ value: 'jjackson' }, { value: 'jsmith' }])
})

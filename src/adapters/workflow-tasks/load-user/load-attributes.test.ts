import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { DirectoryEntry, DirectorySearch, EntryDirectory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { customTask, issuesOf, parseTasks, userAfter } from '#testing/workflows/workflow-fixture.ts'

const entry = directoryEntry({
  dn: Dn.parse('uid=jjackson,o=Tremolo'),
  attributes: Attributes.from({ givenName: ['Jen'], sn: ['Jackson'], admin: ['true'] }),
})

const directoryOf = (entries: readonly DirectoryEntry[], searches: DirectorySearch[] = []): EntryDirectory => ({
  search: async (search) => {
    searches.push(search)
    return entries
  },
  isMember: async () => false,
})

const load = (extra = {}) =>
  customTask('tasks.LoadAttributes', { nameAttr: 'uid', name: ['givenName', 'sn', 'mail'], ...extra })

test('loads only the named attributes, and keeps those that the directory does not have', async () => {
  const searches: DirectorySearch[] = []
  const call = { attributes: { sn: ['Old'], mail: ['m'] } }
  const task = load({ base: 'ou=db,o=Tremolo' })
  const user = await userAfter([task], call, { directory: directoryOf([entry], searches) })
  expect(user?.attributes).toEqual({ sn: ['Jackson'], mail: ['m'], givenName: ['Jen'] })
  expect(searches[0]?.base.toString()).toBe('ou=db,o=Tremolo')
})

test('a user who is not in the directory passes; an ambiguous one does not', async () => {
  expect((await userAfter([load()], {}, { directory: directoryOf([]) }))?.attributes).toEqual({})
  const twice = userAfter([load()], {}, { directory: directoryOf([entry, entry]) })
  await expect(twice).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
})

test('an invalid base DN is reported, and the flow declares the attributes it produces', () => {
  expect(issuesOf([load({ base: 'nonsense' })])[0]).toMatch(/^0\.params\.base/)
  expect(parseTasks([load()]).tasks[0]?.flow.produces[1]).toEqual({ attribute: 'sn', path: [0, 'params', 'name', 1] })
})

import type { EntryDirectory, MemberDirectory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'

const everything = 100_000

/**
 * A directory with the test's entries, in pages by number. Groups have the members that the test says, and every password
 * is wrong.
 */
export const fakeDirectory = (
  entries: EntryDirectory & Partial<Pick<MemberDirectory, 'members'>>,
): MemberDirectory => ({
  search: (search) => entries.search(search),
  page: async ({ after = '0', limit, ...search }) => {
    const all = await entries.search({ ...search, limit: everything })
    const end = Number(after) + limit
    return { entries: all.slice(Number(after), end), ...(end < all.length ? { next: String(end) } : {}) }
  },
  entry: async (identity) => {
    const search = { base: new Dn([]), scope: 'sub', filter: { kind: 'present', attribute: 'objectClass' } } as const
    return (await entries.search({ ...search, limit: everything })).find((entry) => entry.identity === identity)
  },
  isMember: (group, member) => entries.isMember(group, member),
  members: async (group, limit) => (await entries.members?.(group, limit)) ?? [],
  memberPage: async () => ({ members: [], more: false }),
  bind: async () => false,
})

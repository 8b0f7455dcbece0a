import type { Directory, EntryDirectory } from '#identity/directory.ts'

const everything = 100_000

/** A directory that answers as the test's own does, in pages by number; no password is right. */
export const fakeDirectory = (entries: EntryDirectory): Directory => ({
  search: (search) => entries.search(search),
  page: async ({ after = '0', limit, ...search }) => {
    const all = await entries.search({ ...search, limit: everything })
    const end = Number(after) + limit
    return { entries: all.slice(Number(after), end), ...(end < all.length ? { next: String(end) } : {}) }
  },
  isMember: (group, member) => entries.isMember(group, member),
  bind: async () => false,
})

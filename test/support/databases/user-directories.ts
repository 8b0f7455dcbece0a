import { onTestFinished } from 'vitest'
import type { EntryChange } from '#identity/account-store.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { type Clock, systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'

/** Opens directories of one database by name. They close with the test. */
export async function openDirectories(
  url: string,
  clock: Clock = systemClock,
): Promise<(name: string) => UserDirectory> {
  const storage = openStorage({ url, clock, log: silentLogger })
  onTestFinished(() => storage.close())
  await storage.ready()
  return (name) => {
    const directory = storage.userDirectory({ name })
    onTestFinished(() => directory.close())
    return directory
  }
}

export const openDirectory = async (url: string, clock?: Clock): Promise<UserDirectory> =>
  (await openDirectories(url, clock))('people')

/** The same directory twice, each with its own connections. */
export const openTwice = async (url: string): Promise<readonly [UserDirectory, UserDirectory]> => [
  await openDirectory(url),
  await openDirectory(url),
]

/** Changes as short texts: `attribute add mail=a@x.org`. */
export const texts = (changes: readonly EntryChange[]): string[] =>
  changes.map(({ subject, action, attribute, value }) => `${subject} ${action} ${attribute}=${value}`)

/** The error codes of the rejected calls. */
export const codes = (results: readonly PromiseSettledResult<unknown>[]): (string | undefined)[] =>
  results.flatMap((result) => (result.status === 'rejected' ? [result.reason?.code] : []))

/** All pages of a search, each by the position that the previous one returned. */
export async function followPages(
  directory: UserDirectory,
  search: Omit<SearchQuery, 'offset' | 'after'>,
): Promise<SearchPage<User>[]> {
  const pages: SearchPage<User>[] = []
  let after: string | undefined
  do {
    const page = await directory.searchUsers({ ...search, offset: 0, ...(after === undefined ? {} : { after }) })
    pages.push(page)
    after = page.next
  } while (after !== undefined && pages.length < 10_000)
  return pages
}

import { groupEntrySource, userEntrySource } from '#identity/entry-source.ts'
import type { Group } from '#identity/group.ts'
import type { Collection } from '#identity/paging.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'

/** Ordered by login and by name, so that pages are stable whatever order the target returns. */
export const userCollection: Collection<User> = { of: 'users', source: userEntrySource, key: ({ userID }) => userID }
export const groupCollection: Collection<Group> = { of: 'groups', source: groupEntrySource, key: ({ name }) => name }

/** The page with the attributes of the query. */
export function withAttributes(page: SearchPage<User>, { attributes }: SearchQuery): SearchPage<User> {
  if (attributes === undefined) return page
  return { ...page, items: page.items.map((user) => ({ ...user, attributes: user.attributes.pick(attributes) })) }
}

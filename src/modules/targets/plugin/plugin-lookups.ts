import { printFilter } from '#identity/filter/print-filter.ts'
import { pageInMemory } from '#identity/page-in-memory.ts'
import type { JsonValue } from '#kernel/json.ts'
import { groupCollection, userCollection } from '#modules/shared/targets/collections.ts'
import type { LookupTarget, SearchQuery, Target } from '#sdk/target.ts'
import { readFlag, readGroup, readList, readOptional, readUser } from './plugin-answers.ts'
import type { PluginCaller } from './plugin-caller.ts'

/** What everything has, for a search without a filter. */
const anything = { kind: 'present', attribute: 'objectClass' } as const

/** The three facts are asked once; a plug-in that has no such function is taken at its simplest. */
export async function lookupsOf(caller: PluginCaller): Promise<Omit<LookupTarget, keyof Target>> {
  const fact = async (name: string, fallback: boolean) => (caller.has(name) ? caller.ask(name, [], readFlag) : fallback)
  const filterArgs = ({ filter = anything }: SearchQuery): JsonValue[] => [
    printFilter(filter),
    JSON.parse(JSON.stringify(filter)) as JsonValue,
  ]
  return {
    groupMembersAreIds: await fact('isGroupMembersUniqueIds', false),
    userIdIsLogin: await fact('isUniqueIdTremoloId', true),
    groupHasOwnId: await fact('isGroupIdUniqueId', false),
    lookupUserByLogin: (login) => caller.ask('lookupUserByLogin', [login], readOptional(readUser)),
    lookupUserById: (id) => caller.ask('lookupUserById', [id], readOptional(readUser)),
    lookupGroupByName: (name) => caller.ask('lookupGroupByName', [name], readOptional(readGroup)),
    lookupGroupById: (id) => caller.ask('lookupGroupById', [id], readOptional(readGroup)),
    async searchUsers(query) {
      const users = await caller.ask('searchUsers', filterArgs(query), readList(readUser))
      const page = pageInMemory(users, query, userCollection)
      const { attributes } = query
      if (attributes === undefined) return page
      return { ...page, items: page.items.map((user) => ({ ...user, attributes: user.attributes.pick(attributes) })) }
    },
    async searchGroups(query) {
      const groups = await caller.ask('searchGroups', filterArgs(query), readList(readGroup))
      return pageInMemory(groups, query, groupCollection)
    },
  }
}

import type { ConsoleGroup, ConsoleGroupDetails, GroupMember } from '#features/portal/contract/console-people.ts'
import type { MainParts } from '#features/portal/front/main-parts.ts'
import { isEntryId } from '#features/portal/front/people.ts'
import { answerList, listQuery } from '#features/portal/runs/list-answer.ts'
import type { DirectoryEntry, DirectoryPage, MemberPage } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { storedIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { answer, badRequest, notFound } from '#sdk/api/json-answer.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { groupFilter, groupNameAttribute, groupRow, isGroup, personRow, readSearch } from './directory-rows.ts'
import { entryAttributes } from './entry-attributes.ts'

/** A group, by identity or by name. */
export const groupOperations = {
  listGroups: {
    summary: 'The groups of the directory',
    query: { q: 'The start of a name', ...listQuery },
    answer: 'ConsoleGroups',
    handle: listGroups,
  },
  getGroup: {
    summary: 'One group, by id or name, with the attributes of the directory that are not secret',
    answer: 'ConsoleGroupDetails',
    failures: { '409': 'Several groups have this name' },
    handle: showGroup,
  },
  listMembers: {
    summary: 'The direct members of the group',
    query: listQuery,
    answer: 'GroupMembers',
    handle: listMembers,
  },
} satisfies OperationTable<MainParts>

const everywhere = Dn.parse('')
/** Members are shown on their own. */
const shown = [groupNameAttribute, 'description']
const memberAttributes = ['member', 'uniqueMember']

const all = (filters: readonly Filter[]): Filter => ({ kind: 'and', filters })

async function listGroups({ host }: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  return await answerList(exchange, ['q'], ({ q }) => {
    const initial = readSearch(q)
    const starts: Filter = { kind: 'substring', attribute: groupNameAttribute, initial, any: [] }
    const filter = initial === '' ? groupFilter : all([groupFilter, starts])
    return {
      name: 'groups',
      read: async (page) => {
        const found = await host.directory.page({ base: everywhere, scope: 'sub', filter, attributes: shown, ...page })
        return { rows: found.entries.map(groupRow), next: found.next }
      },
      columns: groupColumns,
    }
  })
}

export const groupColumns = {
  name: ({ name }: ConsoleGroup) => name,
  description: ({ description }: ConsoleGroup) => description,
  dn: ({ dn }: ConsoleGroup) => dn,
  id: ({ id }: ConsoleGroup) => id,
}

/** The groups that list the entry as a member. */
export const groupsOfMember = async (
  { host }: MainParts,
  member: Dn,
  page: { readonly after?: string; readonly limit: number },
): Promise<DirectoryPage> =>
  await host.directory.page({
    base: everywhere,
    scope: 'sub',
    filter: {
      kind: 'or',
      filters: memberAttributes.map((attribute) => ({ kind: 'equal', attribute, value: member.toString() })),
    },
    attributes: shown,
    ...page,
  })

async function showGroup(parts: MainParts, { request }: Exchange, id = ''): Promise<GatewayResponse> {
  readQuery(request.query, [])
  const entry = await findGroup(parts, id)
  const members = new Set([...memberAttributes, 'memberUid'].map((name) => name.toLowerCase()))
  const attributes = entryAttributes(entry.attributes).filter(({ name }) => !members.has(name.toLowerCase()))
  return answer({ ...groupRow(entry), attributes } satisfies ConsoleGroupDetails)
}

/** Throws NOT_FOUND, and CONFLICT for a name that several groups have. */
async function findGroup({ host }: MainParts, id: string): Promise<DirectoryEntry> {
  const missing = notFound(`no group "${id.slice(0, 80)}"`, 'There is no such group in the directory.')
  if (isEntryId(id)) {
    const entry = await host.directory.entry(storedIdentity(id))
    if (entry === undefined || !isGroup(entry)) throw missing
    return entry
  }
  const filter = all([groupFilter, { kind: 'equal', attribute: groupNameAttribute, value: id }])
  const [found, another] = await host.directory.search({ base: everywhere, scope: 'sub', filter, limit: 2 })
  if (found === undefined) throw missing
  if (another === undefined) return found
  throw new GatewayError('CONFLICT', `several groups have the name "${id.slice(0, 80)}"`, {
    publicText: 'Several groups have this name. Open the group from the list.',
  })
}

async function listMembers(parts: MainParts, exchange: Exchange, id = ''): Promise<GatewayResponse> {
  const { dn } = await findGroup(parts, id)
  return await answerList(exchange, [], () => ({
    name: 'members',
    read: async ({ after, limit }) => {
      const skip = readSkip(after)
      const { members, more } = await parts.host.directory.memberPage(dn, skip, limit)
      return { rows: members.map((one) => memberRow(parts, one)), next: more ? String(skip + limit) : undefined }
    },
    columns: {
      kind: ({ kind }) => kind,
      name: ({ name }) => name,
      displayName: ({ displayName }) => displayName,
      dn: (member) => member.dn,
    },
  }))
}

/** A group has no order of its own but that of its list of members. */
function readSkip(after = '0'): number {
  if (/^\d{1,9}$/.test(after)) return Number(after)
  throw badRequest('after must be the next of a page.')
}

function memberRow({ people }: MainParts, { dn, entry }: MemberPage['members'][number]): GroupMember {
  const name = dn.toString()
  if (entry !== undefined && people.isUser(entry)) {
    const { id, login, displayName } = personRow(people, entry)
    return { dn: name, kind: 'user', id, name: login, ...(displayName === undefined ? {} : { displayName }) }
  }
  if (entry === undefined || !isGroup(entry)) return { dn: name, kind: 'other', name }
  const group = groupRow(entry)
  return { dn: name, kind: 'group', id: group.id, name: group.name }
}

import type { Filter } from '#identity/filter/ast.ts'
import type { Directory } from './directory.ts'
import { Dn } from './dn.ts'

const everywhere = Dn.parse('')
const maxGroups = 1_000

/** The names of the groups, at or below the base, that the entry is a member of, sorted. At most 1,000. */
export async function groupNamesOf(
  dn: Dn,
  directory: Pick<Directory, 'search'>,
  base: Dn = everywhere,
): Promise<string[]> {
  const value = dn.toString()
  const filter: Filter = {
    kind: 'or',
    filters: ['member', 'uniqueMember'].map((attribute) => ({ kind: 'equal', attribute, value })),
  }
  const search = { base, scope: 'sub', filter, limit: maxGroups, attributes: ['cn'] } as const
  const found = await directory.search(search)
  return [...new Set(found.flatMap(({ attributes }) => attributes.first('cn') ?? []))].sort()
}

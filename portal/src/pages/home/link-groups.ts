import type { PortalLink } from '#features/portal/contract/main.ts'
import type { ItemGroup } from '../../components/grid-rows.ts'
import { matches, sortByMatch } from '../../components/matching.ts'
import type { FlatOrg } from '../../components/orgs.ts'

interface Wanted {
  readonly query: string
  /** All if empty. */
  readonly org: string
  /** The heading of links without an org in the tree. */
  readonly elsewhere: string
}

/** The matching links, below their orgs, in the order of the tree. */
export function groupLinks(
  links: readonly PortalLink[],
  orgs: readonly FlatOrg[],
  { query, org, elsewhere }: Wanted,
): readonly ItemGroup<PortalLink>[] {
  const byOrg = new Map<string, PortalLink[]>(orgs.map(({ id }) => [id, []]))
  const others: PortalLink[] = []
  const matching = links.filter(({ label, name }) => matches(query, label, name))
  for (const link of sortByMatch(query, matching)) {
    const group = byOrg.get(link.org) ?? others
    group.push(link)
  }
  const groups = orgs.map(({ id, path }) => ({ key: id, heading: path.join(' › '), items: byOrg.get(id) ?? [] }))
  if (org !== '') return groups.filter(({ key }) => key === org)
  return [...groups, { key: '', heading: elsewhere, items: others }]
}

import type { PortalLink } from '#contract/main.ts'
import type { ItemGroup } from '../../components/grid-rows.ts'
import { matches } from '../../components/matching.ts'
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
  for (const link of links) {
    if (!matches(query, link.label, link.name)) continue
    ;(byOrg.get(link.org) ?? others).push(link)
  }
  const groups = orgs.map(({ id, path }) => ({ key: id, heading: path.join(' › '), items: byOrg.get(id) ?? [] }))
  if (org !== '') return groups.filter(({ key }) => key === org)
  return [...groups, { key: '', heading: elsewhere, items: others }]
}

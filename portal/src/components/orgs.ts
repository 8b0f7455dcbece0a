import type { Organization } from '#features/portal/contract/main.ts'

export type OrgUse = 'showInPortal' | 'showInRequest' | 'showInReports'

export interface FlatOrg {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly depth: number
  /** The ids of its ancestors for the same use. */
  readonly above: readonly string[]
  /** The names of its ancestors and its own. */
  readonly path: readonly string[]
}

/** The orgs for one use, parents before children. A root that only groups others is left out. */
export function flatten(root: Organization, use: OrgUse): readonly FlatOrg[] {
  const found: FlatOrg[] = []
  const visit = (org: Organization, above: readonly string[], path: readonly string[]): void => {
    const { id, name, description, subOrgs } = org
    const isShown = id !== '' && org[use]
    const own = isShown ? [...path, name] : path
    if (isShown) found.push({ id, name, description, depth: path.length, above, path: own })
    for (const below of subOrgs) visit(below, isShown ? [...above, id] : above, own)
  }
  visit(root, [], [])
  return found
}

export interface VisibleOrg extends FlatOrg {
  readonly isParent: boolean
  readonly isClosed: boolean
}

/** The orgs that are not below a closed one. Those above the chosen one are open, so that it is always visible. */
export function visibleOrgs(
  orgs: readonly FlatOrg[],
  closed: ReadonlySet<string>,
  chosen: string,
): readonly VisibleOrg[] {
  const parents = new Set(orgs.flatMap(({ above }) => above))
  const open = new Set(orgs.find(({ id }) => id === chosen)?.above ?? [])
  const isClosed = (id: string): boolean => closed.has(id) && parents.has(id) && !open.has(id)
  // An org that is not listed can't be opened again.
  const listed = new Set(orgs.map(({ id }) => id))
  return orgs
    .filter(({ above }) => !above.some((id) => listed.has(id) && isClosed(id)))
    .map((org) => ({ ...org, isParent: parents.has(org.id), isClosed: isClosed(org.id) }))
}

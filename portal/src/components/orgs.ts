import type { Organization } from '#contract/main.ts'

export type OrgUse = 'showInPortal' | 'showInRequest' | 'showInReports'

export interface FlatOrg {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly depth: number
  /** The names of its ancestors and its own. */
  readonly path: readonly string[]
}

/** The orgs for one use, parents before children. A root that only groups others is left out. */
export function flatten(root: Organization, use: OrgUse): readonly FlatOrg[] {
  const found: FlatOrg[] = []
  const visit = (org: Organization, path: readonly string[]): void => {
    const isShown = org.id !== '' && org[use]
    const own = isShown ? [...path, org.name] : path
    if (isShown) {
      found.push({ id: org.id, name: org.name, description: org.description, depth: path.length, path: own })
    }
    for (const below of org.subOrgs) visit(below, own)
  }
  visit(root, [])
  return found
}

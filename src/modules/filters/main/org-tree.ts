import type { Organization } from '#contract/main.ts'
import type { Exchange } from '#sdk/exchange.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import type { PortalOrg } from '#sdk/portal.ts'
import { answer } from './answer.ts'
import type { MainParts } from './main-parts.ts'

export const showOrgs =
  ({ visibility }: MainParts) =>
  async ({ subject }: Exchange): Promise<GatewayResponse> =>
    answer(orgTree(await visibility.orgs(subject)))

/** Several at the top, or none, stand below a root that has no id. */
function orgTree(orgs: readonly PortalOrg[]): Organization {
  const below = (parent: string | undefined): Organization[] =>
    orgs
      .filter((org) => org.parent === parent)
      .map(({ id, name, description, showInPortal, showInRequest, showInReports }) => ({
        id,
        name,
        description,
        showInPortal,
        showInRequest,
        showInReports,
        subOrgs: below(id),
      }))
  const [top, another] = below(undefined)
  if (top !== undefined && another === undefined) return top
  return {
    id: '',
    name: '',
    description: '',
    showInPortal: true,
    showInRequest: true,
    showInReports: true,
    subOrgs: below(undefined),
  }
}

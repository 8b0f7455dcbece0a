import type { CatalogItem } from '#features/portal/contract/main-catalog.ts'
import { endOffer, type MainParts } from '#features/portal/front/main-parts.ts'
import { answer, notFound } from '#sdk/api/json-answer.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { filledLabel } from '#sdk/workflow/workflow-label.ts'

/** One workflow that the caller can request. */
export async function showWorkflow(
  { host, visibility }: MainParts,
  { subject }: Exchange,
  wanted = '',
): Promise<GatewayResponse> {
  const found = (await visibility.workflows(subject)).find(({ name }) => name === wanted)
  const [firstOrg] = await visibility.orgs(subject)
  const org = found?.org ?? firstOrg?.id
  if (found === undefined || org === undefined) {
    throw notFound(`no workflow "${wanted.slice(0, 80)}" for "${subject.uid}"`, 'There is no such workflow.')
  }
  const { name, description, owner, approverGroups } = found
  const decisionMillis = await host.approvals.decisionMillis(name)
  return answer({
    name,
    label: filledLabel(found),
    description: filledLabel({ ...found, label: description }),
    org,
    ...(owner === undefined ? {} : { owner }),
    ...endOffer(found, host.clock()),
    approverGroups,
    ...(decisionMillis === undefined ? {} : { decisionMillis }),
  } satisfies CatalogItem)
}

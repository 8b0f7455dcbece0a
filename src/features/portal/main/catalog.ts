import type { PortalWorkflow } from '#features/portal/access/portal.ts'
import type { DelegationRights, WorkflowListItem } from '#features/portal/contract/main.ts'
import type { CatalogItem } from '#features/portal/contract/main-catalog.ts'
import { endOffer, type MainParts, rightsOf, userOf } from '#features/portal/front/main-parts.ts'
import type { UserRef } from '#identity/identity.ts'
import { asGatewayError } from '#kernel/errors.ts'
import { parseTemplate } from '#kernel/template.ts'
import { answer, badRequest, notFound } from '#sdk/api/json-answer.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import type { ParameterSet } from '#sdk/workflow/dynamic-workflow.ts'
import { filledLabel } from '#sdk/workflow/workflow-label.ts'

export const catalogOperations = {
  listWorkflows: {
    summary: 'What the caller may request in one branch',
    answer: 'WorkflowListItem[]',
    handle: listWorkflows,
  },
  getDelegationRights: {
    summary: 'Whether the caller may request a workflow for others, and approve it at once',
    query: { workflowName: 'The workflow', uuid: 'Returned as it is' },
    requiredQuery: ['workflowName'],
    answer: 'DelegationRights',
    handle: showRights,
  },
  getCatalogItem: {
    summary: 'One workflow that the caller may request: its description, who decides, and how long that takes',
    answer: 'CatalogItem',
    handle: showWorkflow,
  },
} satisfies OperationTable<MainParts>

/** One workflow that the caller can request. */
async function showWorkflow(
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

/** Rows of all dynamic workflows of an org. */
const maxRows = 5_000

type Row = Omit<WorkflowListItem, 'uuid' | 'encryptedParams'> & { readonly parameters?: ParameterSet }

/** The workflows of one org that the caller can request, by label. */
async function listWorkflows(parts: MainParts, exchange: Exchange, org = ''): Promise<GatewayResponse> {
  const { visibility, host } = parts
  const { subject } = exchange
  if (!(await visibility.orgIds(subject)).has(org)) throw notFound(`no org "${org}" for "${subject.uid}"`)
  const workflows = (await visibility.workflows(subject)).filter((one) => one.org === undefined || one.org === org)
  const rows = (await Promise.all(workflows.map((workflow) => rowsOf(workflow, parts, exchange)))).flat()
  if (rows.length > maxRows) host.log.warn('a list of workflows was cut', { org, rows: rows.length })
  const shown = rows.slice(0, maxRows).sort((a, b) => (a.label < b.label ? -1 : 1))
  return answer(await withReferences(shown, userOf(parts, subject), parts))
}

/** A source that fails hides only its own workflow. */
async function rowsOf(workflow: PortalWorkflow, { host }: MainParts, { subject }: Exchange): Promise<Row[]> {
  const { name, label, description, dynamic } = workflow
  const offer = endOffer(workflow, host.clock())
  if (dynamic === undefined) return [{ name, label, description, filterAnnotations: {}, ...offer }]
  try {
    return (await dynamic.parameterSets(subject)).map((parameters) => ({
      name,
      label: filled(label, parameters),
      description: filled(description, parameters),
      filterAnnotations: Object.fromEntries(
        dynamic.annotations.map((annotation) => [annotation.name, parameterIn(parameters, annotation.parameter)]),
      ),
      ...offer,
      parameters,
    }))
  } catch (thrown) {
    host.log.error('the source of a dynamic workflow failed', { workflow: name, err: asGatewayError(thrown) })
    return []
  }
}

const parameterIn = (parameters: ParameterSet, name: string): string =>
  Object.hasOwn(parameters, name) ? (parameters[name] ?? '') : ''

/** Inserted values are not expanded again. */
const filled = (text: string, parameters: ParameterSet): string =>
  parseTemplate(text, { keys: true, attributes: false }).render({ key: (name) => parameterIn(parameters, name) })

async function withReferences(rows: readonly Row[], user: UserRef, { host }: MainParts): Promise<WorkflowListItem[]> {
  const offers = rows.flatMap(({ name, parameters }) => (parameters ? [{ workflow: name, parameters }] : []))
  const references = [...(await host.portal.memory.offer(user, offers))]
  return rows.map(({ parameters, ...row }) => {
    const reference = parameters === undefined ? undefined : references.shift()
    const uuid = crypto.randomUUID()
    return { uuid, ...row, ...(reference === undefined ? {} : { encryptedParams: reference }) }
  })
}

async function showRights(
  { settings, visibility }: MainParts,
  { request, subject }: Exchange,
): Promise<GatewayResponse> {
  const { workflowName, uuid } = readQuery(request.query, ['workflowName', 'uuid'])
  const [name = ''] = workflowName
  if (name === '') throw badRequest('workflowName is required.')
  const found = (await visibility.workflows(subject)).find((workflow) => workflow.name === name)
  const sees = found !== undefined
  const rights = rightsOf(settings, subject)
  const shown: DelegationRights = {
    canDelegate: sees && rights.delegate,
    canPreApprove: sees && rights.preApprove,
    commentRequired: found?.commentRequired === true,
    ...(uuid[0] === undefined ? {} : { uuid: uuid[0] }),
  }
  return answer(shown)
}

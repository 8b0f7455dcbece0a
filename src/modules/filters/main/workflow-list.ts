import type { DelegationRights, WorkflowListItem } from '#contract/main.ts'
import type { UserRef } from '#identity/identity.ts'
import { asGatewayError } from '#kernel/errors.ts'
import { parseTemplate } from '#kernel/template.ts'
import { spanMillis } from '#kernel/time-span.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { PortalWorkflow } from '#sdk/filter/portal.ts'
import type { ParameterSet } from '#sdk/workflow/dynamic-workflow.ts'
import { answer, badRequest, notFound } from './answer.ts'
import { type MainParts, rightsOf, userOf } from './main-parts.ts'
import { readQuery } from './routes.ts'

/** Rows of all dynamic workflows of an org. */
const maxRows = 5_000

type Row = Omit<WorkflowListItem, 'uuid' | 'encryptedParams'> & { readonly parameters?: ParameterSet }

/** What may be asked for in one org, by label. */
export const listWorkflows =
  (parts: MainParts) =>
  async (exchange: Exchange, org = ''): Promise<GatewayResponse> => {
    const { visibility, host } = parts
    const { subject } = exchange
    if (!(await visibility.orgIds(subject)).has(org)) throw notFound(`no org "${org}" for "${subject.uid}"`)
    const workflows = (await visibility.workflows(subject)).filter((one) => one.org === undefined || one.org === org)
    const rows = (await Promise.all(workflows.map((workflow) => rowsOf(workflow, parts, exchange)))).flat()
    if (rows.length > maxRows) host.log.warn('a list of workflows was cut', { org, rows: rows.length })
    const shown = rows.slice(0, maxRows).sort((a, b) => (a.label < b.label ? -1 : 1))
    return answer(await withReferences(shown, userOf(parts, subject), parts))
  }

/** A source that fails hides its own workflow and no other. */
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

function endOffer({ accessEnds }: PortalWorkflow, now: Date): Pick<WorkflowListItem, 'accessEnds'> {
  if (accessEnds === undefined) return {}
  const { required, longest } = accessEnds
  const millis = longest && spanMillis(now, longest)
  return { accessEnds: { required, ...(millis === undefined ? {} : { longestSeconds: Math.floor(millis / 1000) }) } }
}

const parameterIn = (parameters: ParameterSet, name: string): string =>
  Object.hasOwn(parameters, name) ? (parameters[name] ?? '') : ''

/** Values are put in and never looked at again. */
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

export const tellRights =
  ({ settings, visibility }: MainParts) =>
  async ({ request, subject }: Exchange): Promise<GatewayResponse> => {
    const { workflowName, uuid } = readQuery(request.query, ['workflowName', 'uuid'])
    const [name = ''] = workflowName
    if (name === '') throw badRequest('workflowName is required.')
    const sees = (await visibility.workflows(subject)).some((workflow) => workflow.name === name)
    const rights = rightsOf(settings, subject)
    const told: DelegationRights = {
      canDelegate: sees && rights.delegate,
      canPreApprove: sees && rights.preApprove,
      ...(uuid[0] === undefined ? {} : { uuid: uuid[0] }),
    }
    return answer(told)
  }

import type { DelegationRights, TimedAccess, WorkflowListItem } from '#contract/main.ts'
import type { Statistics } from '#contract/main-admin.ts'
import type { UserRef } from '#identity/identity.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { parseTemplate } from '#kernel/template.ts'
import { parseTime, spanMillis } from '#kernel/time.ts'
import type { ApiPlace } from '#modules/shared/http/api-description.ts'
import { answer, badRequest, emptyAnswer, notFound, privateErrors } from '#modules/shared/http/json-answer.ts'
import { isNobodysName } from '#modules/shared/login/own-login.ts'
import { answerJournal } from '#modules/shared/runs/journal-answer.ts'
import { RunAdministration } from '#modules/shared/runs/run-administration.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { PortalWorkflow } from '#sdk/filter/portal.ts'
import type { ParameterSet } from '#sdk/workflow/dynamic-workflow.ts'
import { mainApi } from './api-description.ts'
import {
  addDelegation,
  decideApproval,
  decideApprovals,
  endDelegation,
  listApprovals,
  listDelegations,
  showApproval,
} from './approvals.ts'
import {
  addFavourite,
  listLinks,
  listLinksOf,
  listMarks,
  noteUse,
  removeFavourite,
  search,
  showConfig,
  showOrgs,
} from './front-page.ts'
import { loginOf, type MainParts, requireOwnLogin, rightsOf, userOf, Visibility } from './main-parts.ts'
import { type MainSettings, parameters, parseMain } from './main-settings.ts'
import { People } from './people.ts'
import { changeProfile, showProfile } from './profile.ts'
import { cancelRequest, listRequests, showRequest } from './requests.ts'
import { answerRoute, mainPath, type Route, readQuery } from './routes.ts'
import { submitCart } from './submit.ts'

/** The API behind the pages of the portal: links, profile, requests, approvals. */
export default defineFilter<MainSettings>({
  className: 'filters.Main',
  aliases: ['com.tremolosecurity.scalejs.ws.ScaleMain'],
  parameters,
  answers: true,
  errors: privateErrors,
  parse: parseMain,
  summarize: ({ given }) => [
    { label: 'profile workflow', value: given.workflowName },
    ...(given.jitWorkflow === undefined ? [] : [{ label: 'workflow for new people', value: given.jitWorkflow }]),
  ],
  create: (settings, host) => createMain(settings, host),
})

function createMain(settings: MainSettings, host: FilterHost): Filter {
  const { uidAttributeName, displayNameAttribute } = settings.given
  const parts: MainParts = {
    settings,
    host,
    visibility: new Visibility(host),
    people: new People(host.directory, uidAttributeName, displayNameAttribute),
  }
  const routes = [...portalRoutes(parts), ...(settings.given.enableApprovals ? approvalRoutes(parts) : [])]
  const administration = new RunAdministration(false, host)
  return {
    async handle(exchange) {
      const path = mainPath(exchange)
      requireLogin(exchange, path)
      const document = mainApi.document(path.slice(1), placeOf(exchange))
      if (document !== undefined && isRead(exchange)) return answer(document)
      if (path === '/reports' || path.startsWith('/reports/')) return await answerReports(parts, exchange, path)
      if (path.startsWith('/admin/')) return await answerAdmin(parts, administration, exchange, path)
      return await answerRoute(routes, exchange, path)
    },
  }
}

/** Public pages need these; everything else is about one user and requires a login. */
const publicPaths = /^\/(?:config|orgs|urls(?:\/org\/[^/]+)?|swagger\.json|openapi\.json)$/

const isRead = ({ request: { method } }: Exchange): boolean => method === 'GET' || method === 'HEAD'

function requireLogin(exchange: Exchange, path: string): void {
  const { subject } = exchange
  if ((subject.level > 0 && !isNobodysName(subject.uid)) || (isRead(exchange) && publicPaths.test(path))) return
  throw new GatewayError('AUTH_REQUIRED', `"${path}" is not for callers who did not log in`)
}

const placeOf = ({ mount, request }: Exchange): ApiPlace => ({
  origin: request.origin,
  base: mount.replace(/\/main$/, ''),
  prefix: '/main',
})

/** Every route is described in `api-description.ts`. */
export const portalRoutes = (parts: MainParts): Route[] => [
  { method: 'GET', path: 'config', handle: showConfig(parts) },
  { method: 'GET', path: 'user', handle: showProfile(parts) },
  { method: 'PUT', path: 'user', handle: changeProfile(parts) },
  { method: 'GET', path: 'orgs', handle: showOrgs(parts) },
  { method: 'GET', path: 'urls', handle: listLinks(parts) },
  { method: 'GET', path: 'urls/org/*', handle: listLinksOf(parts) },
  { method: 'GET', path: 'workflows/org/*', handle: listWorkflows(parts) },
  { method: 'GET', path: 'workflows/candelegate', handle: showRights(parts) },
  { method: 'PUT', path: 'workflows', handle: submitCart(parts) },
  { method: 'GET', path: 'requests', handle: listRequests(parts) },
  { method: 'GET', path: 'requests/*', handle: showRequest(parts) },
  { method: 'POST', path: 'requests/*/cancel', handle: cancelRequest(parts) },
  { method: 'GET', path: 'search', handle: search(parts) },
  { method: 'GET', path: 'favourites', handle: listMarks(parts) },
  { method: 'PUT', path: 'favourites/*/*', handle: addFavourite(parts) },
  { method: 'DELETE', path: 'favourites/*/*', handle: removeFavourite(parts) },
  { method: 'POST', path: 'recent', handle: noteUse(parts) },
  { method: 'GET', path: 'access', handle: listAccess(parts) },
]

export const approvalRoutes = (parts: MainParts): Route[] => [
  { method: 'GET', path: 'approvals', handle: listApprovals(parts) },
  { method: 'PUT', path: 'approvals', handle: decideApprovals(parts) },
  { method: 'GET', path: 'approvals/*', handle: showApproval(parts) },
  { method: 'PUT', path: 'approvals/*', handle: decideApproval(parts) },
  { method: 'GET', path: 'delegations', handle: listDelegations(parts) },
  { method: 'POST', path: 'delegations', handle: addDelegation(parts) },
  { method: 'DELETE', path: 'delegations/*', handle: endDelegation(parts) },
]

/** The caller's access that expires. */
const listAccess =
  (parts: MainParts) =>
  async (exchange: Exchange): Promise<GatewayResponse> => {
    const grants = await parts.host.grants.ofSubject(await requireOwnLogin(parts, exchange))
    const access = grants.map(({ id, target, kind, name, granted, expires }) => ({
      id,
      target,
      kind,
      name,
      granted: granted.toISOString(),
      expires: expires.toISOString(),
    }))
    return answer({ access } satisfies TimedAccess)
  }

async function answerReports(parts: MainParts, exchange: Exchange, path: string): Promise<GatewayResponse> {
  const { host, visibility } = parts
  if (host.reports === undefined) throw notFound('there are no reports')
  return await host.reports.answer({
    exchange,
    path: path.slice('/reports'.length),
    orgs: await visibility.orgIds(exchange.subject),
    login: loginOf(parts, exchange.subject),
    ownLogin: () => requireOwnLogin(parts, exchange),
  })
}

async function answerAdmin(
  parts: MainParts,
  administration: RunAdministration,
  exchange: Exchange,
  path: string,
): Promise<GatewayResponse> {
  const { settings, host, visibility } = parts
  const { subject, request } = exchange
  if (!(await visibility.allows(subject, settings.administrators))) {
    throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" is not an administrator of the portal`)
  }
  if (path === '/admin/statistics') return await answerStatistics(parts, exchange)
  const response =
    path === '/admin/scim-journal'
      ? await answerJournal(request, settings.given.scimJournals, host)
      : await administration.answer(exchange, path.slice('/admin'.length))
  return { ...response, headers: { ...response.headers, 'cache-control': 'no-store' } }
}

const hourMillis = 3_600_000

/** The parts of statistics: their length, and their default number. */
const lengths = {
  hour: { millis: hourMillis, usual: 24 },
  day: { millis: 24 * hourMillis, usual: 30 },
} as const
type Length = keyof typeof lengths

const isLength = (word: string): word is Length => Object.hasOwn(lengths, word)

/** Statistics of the whole installation; the caller checks who may see them. */
async function answerStatistics(
  { settings, host }: Pick<MainParts, 'settings' | 'host'>,
  { request }: Pick<Exchange, 'request'>,
): Promise<GatewayResponse> {
  const { method, query } = request
  if (method !== 'GET' && method !== 'HEAD') {
    throw new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow: 'GET, HEAD' } })
  }
  const { by, from, to } = readSpan(query, host.clock())
  const { scimJournals: journals } = settings.given
  const counted = await host.readStatistics({
    from,
    to,
    partMillis: lengths[by].millis,
    ...(journals.length === 0 ? {} : { journals }),
  })
  const { parts, decisionMillis, workflows, callers } = counted
  if (method === 'HEAD') return emptyAnswer(200)
  return answer({
    from: from.toISOString(),
    to: to.toISOString(),
    by,
    parts: parts.map(({ from: begins, calls: scim, ...part }) => ({ ...part, from: begins.toISOString(), scim })),
    ...(decisionMillis === undefined ? {} : { decisionMillis }),
    workflows,
    scimClients: callers.map(({ journal, caller, calls }) => ({ gateway: journal, client: caller, calls })),
  } satisfies Statistics)
}

function readSpan(query: URLSearchParams, now: Date): { readonly by: Length; readonly from: Date; readonly to: Date } {
  const given = readQuery(query, ['from', 'to', 'by'])
  const [by = 'day'] = given.by
  if (!isLength(by)) throw badRequest('by must be hour or day.')
  const { millis, usual } = lengths[by]
  const to = readMoment('to', given.to, now) ?? now
  const from = readMoment('from', given.from, now) ?? new Date(to.getTime() - usual * millis)
  return { by, from, to }
}

function readMoment(name: string, [text]: readonly string[], now: Date): Date | undefined {
  if (text === undefined) return undefined
  const moment = parseTime(text, now)
  if (moment === undefined) throw badRequest(`${name} must be such as 15m, 1h or 7d, or an ISO 8601 date.`)
  return moment
}

/** Rows of all dynamic workflows of an org. */
const maxRows = 5_000

type Row = Omit<WorkflowListItem, 'uuid' | 'encryptedParams'> & { readonly parameters?: ParameterSet }

/** The workflows of one org that the caller can request, by label. */
const listWorkflows =
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

function endOffer({ accessEnds }: PortalWorkflow, now: Date): Pick<WorkflowListItem, 'accessEnds'> {
  if (accessEnds === undefined) return {}
  const { required, longest } = accessEnds
  const millis = longest && spanMillis(now, longest)
  return { accessEnds: { required, ...(millis === undefined ? {} : { longestSeconds: Math.floor(millis / 1000) }) } }
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

const showRights =
  ({ settings, visibility }: MainParts) =>
  async ({ request, subject }: Exchange): Promise<GatewayResponse> => {
    const { workflowName, uuid } = readQuery(request.query, ['workflowName', 'uuid'])
    const [name = ''] = workflowName
    if (name === '') throw badRequest('workflowName is required.')
    const sees = (await visibility.workflows(subject)).some((workflow) => workflow.name === name)
    const rights = rightsOf(settings, subject)
    const shown: DelegationRights = {
      canDelegate: sees && rights.delegate,
      canPreApprove: sees && rights.preApprove,
      ...(uuid[0] === undefined ? {} : { uuid: uuid[0] }),
    }
    return answer(shown)
  }

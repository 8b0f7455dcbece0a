import type { PortalWorkflow } from '#features/portal/access/portal-access.ts'
import type { OffersProfile } from '#features/portal/access/profile-form.ts'
import { answerConsole } from '#features/portal/console/console.ts'
import type { DelegationRights, WorkflowListItem } from '#features/portal/contract/main.ts'
import { localizedParts, varying } from '#features/portal/front/localized-parts.ts'
import {
  endOffer,
  isAdministrator,
  loginOf,
  type MainParts,
  requireOwnLogin,
  rightsOf,
  userOf,
  Visibility,
} from '#features/portal/front/main-parts.ts'
import { type MainSettings, parameters, parseMain } from '#features/portal/front/main-settings.ts'
import { People } from '#features/portal/front/people.ts'
import type { PortalHost } from '#features/portal/host.ts'
import { nameLookup } from '#features/portal/runs/person-names.ts'
import type { UserRef } from '#identity/identity.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { parseTemplate } from '#kernel/template.ts'
import { apiPlace, placeBelow } from '#sdk/api/api-description.ts'
import { answer, badRequest, notFound, privateErrors } from '#sdk/api/json-answer.ts'
import { answerRoute, pathBelow, type Routes, readQuery } from '#sdk/api/routes.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import { portalLook } from '#sdk/forms/page-theme.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { isAnonymousLogin } from '#sdk/login/own-login.ts'
import type { ParameterSet } from '#sdk/workflow/dynamic-workflow.ts'
import { giveBackAccess, listAccess } from './access.ts'
import { mainApiFor } from './api-description.ts'
import { listApis, showApiDocument } from './apis.ts'
import {
  addDelegation,
  askQuestion,
  decideApproval,
  decideApprovals,
  endDelegation,
  listApprovals,
  listDecisions,
  listDelegations,
  reassignApproval,
  showApproval,
} from './approvals.ts'
import { showWorkflow } from './catalog.ts'
import { ChangeStreams } from './change-streams.ts'
import {
  addFavorite,
  listLinks,
  listLinksOf,
  listMarks,
  noteUse,
  removeFavorite,
  search,
  showConfig,
  showOrgs,
} from './front-page.ts'
import { changeNotificationSettings, showNotificationSettings } from './notification-settings.ts'
import { listNotifications, readNotifications } from './notifications.ts'
import { changeProfile, profileForm, showProfile } from './profile.ts'
import { answerQuestion, cancelRequest, listRequests, showRequest } from './requests.ts'
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
    ...(given.workflowName === undefined ? [] : [{ label: 'profile workflow', value: given.workflowName }]),
    ...(given.jitWorkflow === undefined ? [] : [{ label: 'workflow for new people', value: given.jitWorkflow }]),
  ],
  look: ({ given }) => portalLook(given),
  offers: (settings): OffersProfile => ({ profile: profileForm(settings) }),
  api: ({ given: { enableApprovals: approvals } }) =>
    mainApiFor({ approvals, administrator: true }).served(placeBelow('/main'), {
      formats: ['openapi', 'swagger'],
      users: mainApiFor({ approvals, administrator: false }),
    }),
  create: (settings, host: PortalHost) => createMain(settings, host),
})

function createMain(settings: MainSettings, host: PortalHost): Filter {
  const { uidAttributeName, displayNameAttribute } = settings.given
  const all: MainParts = {
    settings,
    host,
    visibility: new Visibility(host),
    people: new People(host.directory, uidAttributeName, displayNameAttribute),
    names: nameLookup({
      directory: host.directory,
      loginAttribute: uidAttributeName,
      nameAttribute: displayNameAttribute,
      log: host.log,
    }),
    carts: new KeyedQueue({ maxPerKey: 32, waitMillis: 30_000 }),
    translate: (text) => text,
  }
  const events = new ChangeStreams()
  const localized = localizedParts(all)
  const routes: Routes<MainParts> = {
    ...portalRoutes,
    ...(settings.given.enableApprovals ? approvalRoutes : {}),
    'GET /events': (parts, exchange) => events.answer(parts, exchange),
  }
  return {
    async handle(exchange) {
      const path = pathBelow('/main', exchange)
      requireLogin(exchange, path)
      const parts = localized(exchange.request)
      if (documentPath.test(path) && isRead(exchange)) return await showOwnDocument(parts, exchange, path)
      if (path === '/reports' || path.startsWith('/reports/')) return await answerReports(parts, exchange, path)
      if (path.startsWith('/admin/')) return await answerConsole(parts, exchange, path)
      return varying(await answerRoute(routes, parts, exchange, path), parts)
    },
    close: () => events.close(),
  }
}

/** Public pages need these; everything else is about one user and requires a login. */
const publicPaths = /^\/(?:config|orgs|urls(?:\/org\/[^/]+)?|swagger\.json|openapi\.json)$/

const documentPath = /^\/(?:swagger|openapi)\.json$/

/** The description of this API, as far as the caller can use it. */
async function showOwnDocument(parts: MainParts, exchange: Exchange, path: string): Promise<GatewayResponse> {
  const administrator = await isAdministrator(parts, exchange.subject)
  const api = mainApiFor({ approvals: parts.settings.given.enableApprovals, administrator })
  return answer(api.document(path.slice(1), apiPlace('/main', exchange)))
}

const isRead = ({ request: { method } }: Exchange): boolean => method === 'GET' || method === 'HEAD'

function requireLogin(exchange: Exchange, path: string): void {
  const { subject } = exchange
  if ((subject.level > 0 && !isAnonymousLogin(subject.uid)) || (isRead(exchange) && publicPaths.test(path))) return
  throw new GatewayError('AUTH_REQUIRED', `"${path}" is not for callers who did not log in`)
}

/** Every route is described in `api-description.ts`. */
export const portalRoutes: Routes<MainParts> = {
  'GET /config': showConfig,
  'GET /user': showProfile,
  'PUT /user': changeProfile,
  'GET /orgs': showOrgs,
  'GET /urls': listLinks,
  'GET /urls/org/{orgId}': listLinksOf,
  'GET /workflows/org/{orgId}': listWorkflows,
  'GET /workflows/candelegate': showRights,
  'GET /workflows/named/{name}': showWorkflow,
  'PUT /workflows': submitCart,
  'GET /requests': listRequests,
  'GET /requests/{id}': showRequest,
  'POST /requests/{id}/cancel': cancelRequest,
  'POST /requests/{id}/answers': answerQuestion,
  'GET /search': search,
  'GET /favorites': listMarks,
  'PUT /favorites/{kind}/{name}': addFavorite,
  'DELETE /favorites/{kind}/{name}': removeFavorite,
  'POST /recent': noteUse,
  'GET /access': listAccess,
  'POST /access/{id}/return': giveBackAccess,
  'GET /notifications': listNotifications,
  'PUT /notifications/read': readNotifications,
  'GET /apis': listApis,
  'GET /apis/{name}/{document}': showApiDocument,
  'GET /notifications/settings': showNotificationSettings,
  'PUT /notifications/settings': changeNotificationSettings,
}

export const approvalRoutes: Routes<MainParts> = {
  'GET /approvals': listApprovals,
  'PUT /approvals': decideApprovals,
  'GET /approvals/{id}': showApproval,
  'PUT /approvals/{id}': decideApproval,
  'POST /approvals/{id}/reassign': reassignApproval,
  'POST /approvals/{id}/questions': askQuestion,
  'GET /decisions': listDecisions,
  'GET /delegations': listDelegations,
  'POST /delegations': addDelegation,
  'DELETE /delegations/{id}': endDelegation,
}

async function answerReports(parts: MainParts, exchange: Exchange, path: string): Promise<GatewayResponse> {
  const { host, visibility } = parts
  if (host.reports === undefined) throw notFound('there are no reports')
  const answered = await host.reports.answer({
    exchange,
    path: path.slice('/reports'.length),
    orgs: await visibility.orgIds(exchange.subject),
    login: loginOf(parts, exchange.subject),
    translate: parts.translate,
    ownLogin: () => requireOwnLogin(parts, exchange),
  })
  return varying(answered, parts)
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

import type { TimedAccess } from '#contract/main.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ApiPlace } from '#modules/shared/http/api-description.ts'
import { isNobodysName } from '#modules/shared/login/login-name.ts'
import { answerJournal } from '#modules/shared/runs/journal-answer.ts'
import { RunAdministration } from '#modules/shared/runs/run-administration.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import { answer, mainErrors, notFound } from './answer.ts'
import { mainApi } from './api-description.ts'
import { decideApproval, decideApprovals, listApprovals, showApproval } from './approvals.ts'
import { addDelegation, endDelegation, listDelegations } from './delegations.ts'
import { listLinks, listLinksOf, search, showConfig, showOrgs } from './front-page.ts'
import { loginOf, type MainParts, requireOwnLogin } from './main-parts.ts'
import { type MainSettings, parseMain } from './main-settings.ts'
import { addFavourite, listMarks, noteUse, removeFavourite } from './marks.ts'
import { parameters } from './parameter-table.ts'
import { People } from './people.ts'
import { changeProfile, showProfile } from './profile.ts'
import { cancelRequest, listRequests, showRequest } from './requests.ts'
import { answerRoute, mainPath, type Route } from './routes.ts'
import { answerStatistics } from './statistics.ts'
import { submitCart } from './submit.ts'
import { Visibility } from './visibility.ts'
import { listWorkflows, tellRights } from './workflow-list.ts'

/** The API behind the pages of the portal: links, profile, requests, approvals. */
export default defineFilter<MainSettings>({
  className: 'filters.Main',
  aliases: ['com.tremolosecurity.scalejs.ws.ScaleMain'],
  parameters,
  answers: true,
  errors: mainErrors,
  parse: parseMain,
  summarize: ({ given }) => [
    { label: 'profile workflow', value: given.workflowName },
    ...(given.jitWorkflow === undefined ? [] : [{ label: 'workflow for new people', value: given.jitWorkflow }]),
  ],
  create: (settings, host) => createMain(settings, host),
})

function createMain(settings: MainSettings, host: ModuleHost): Filter {
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
      requireSomebody(exchange, path)
      const document = mainApi.document(path.slice(1), placeOf(exchange))
      if (document !== undefined && isRead(exchange)) return answer(document)
      if (path === '/reports' || path.startsWith('/reports/')) return await answerReports(parts, exchange, path)
      if (path.startsWith('/admin/')) return await answerAdmin(parts, administration, exchange, path)
      return await answerRoute(routes, exchange, path)
    },
  }
}

/** Pages that show links to everybody need these; all else is about one person, and nobody in particular is none. */
const forEverybody = /^\/(?:config|orgs|urls(?:\/org\/[^/]+)?|swagger\.json|openapi\.json)$/

const isRead = ({ request: { method } }: Exchange): boolean => method === 'GET' || method === 'HEAD'

function requireSomebody(exchange: Exchange, path: string): void {
  const { subject } = exchange
  if ((subject.level > 0 && !isNobodysName(subject.uid)) || (isRead(exchange) && forEverybody.test(path))) return
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
  { method: 'GET', path: 'workflows/candelegate', handle: tellRights(parts) },
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

/** What the caller has for a time. */
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

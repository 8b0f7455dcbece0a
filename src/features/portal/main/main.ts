import type { OffersProfile } from '#features/portal/access/profile-form.ts'
import { requireAdministrator } from '#features/portal/console/console.ts'
import { localizedParts, varying } from '#features/portal/front/localized-parts.ts'
import { isAdministrator, type MainParts, Visibility } from '#features/portal/front/main-parts.ts'
import { type MainSettings, parameters, parseMain } from '#features/portal/front/main-settings.ts'
import { People } from '#features/portal/front/people.ts'
import type { PortalHost } from '#features/portal/host.ts'
import { nameLookup } from '#features/portal/runs/person-names.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { apiPlace, placeBelow } from '#sdk/api/api-description.ts'
import { answer, privateErrors } from '#sdk/api/json-answer.ts'
import { pathBelow } from '#sdk/api/routes.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import { portalLook } from '#sdk/forms/page-theme.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { isAnonymousLogin } from '#sdk/login/own-login.ts'
import { mainApiFor } from './api-description.ts'
import { ChangeStreams, type MainApiParts } from './change-streams.ts'
import { profileForm } from './profile.ts'

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
  const events = new ChangeStreams()
  const localized = localizedParts<MainApiParts>({
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
    events,
  })
  const { enableApprovals: approvals } = settings.given
  const forUsers = mainApiFor({ approvals, administrator: false })
  const forAdministrators = mainApiFor({ approvals, administrator: true })
  return {
    async handle(exchange) {
      const path = pathBelow('/main', exchange)
      requireLogin(exchange, path)
      const parts = localized(exchange.request)
      if (documentPath.test(path) && isRead(exchange)) return await showOwnDocument(parts, exchange, path)
      if (!path.startsWith('/admin/')) return varying(await forUsers.answer(parts, exchange, path), parts)
      await requireAdministrator(parts, exchange.subject)
      const response = await forAdministrators.answer(parts, exchange, path)
      return { ...response, headers: { ...response.headers, 'cache-control': 'no-store' } }
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
  return answer(api.document(path.slice(1), apiPlace(placeBelow('/main'), exchange)))
}

const isRead = ({ request: { method } }: Exchange): boolean => method === 'GET' || method === 'HEAD'

function requireLogin(exchange: Exchange, path: string): void {
  const { subject } = exchange
  if ((subject.level > 0 && !isAnonymousLogin(subject.uid)) || (isRead(exchange) && publicPaths.test(path))) return
  throw new GatewayError('AUTH_REQUIRED', `"${path}" is not for callers who did not log in`)
}

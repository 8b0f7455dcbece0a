import type { PersonNames } from '#features/portal/contract/person-names.ts'
import type { PortalHost } from '#features/portal/host.ts'
import { type LookUpNames, nameLookup, usersOfItem } from '#features/portal/runs/person-names.ts'
import { isUser } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inWrittenOrder } from '#kernel/text/one-line.ts'
import { readPageUrl } from '#sdk/api/page-url.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import { readForm } from '#sdk/http/read-form.ts'
import { isAnonymousLogin } from '#sdk/login/own-login.ts'
import { flag, parsed, wholeNumber } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import { translator } from '#sdk/page/configured-texts.ts'
import { html, htmlErrors, page } from '#sdk/page/page.ts'
import { languageOf, type TextKey, textsFor } from '#sdk/page/page-texts.ts'
import { runLabels, translatedWorkflow } from '#sdk/workflow/workflow-label.ts'
import type { OffersApprovalLinks } from '#workflows/approvals/approval-link.ts'
import { type ApprovalLinkClaims, approvalLinkKeys, readApprovalLink } from '#workflows/approvals/approval-link.ts'
import type { ApprovalView } from '#workflows/approvals/desk-requests.ts'
import { type ApprovalUser, approvalUser } from '#workflows/record/operator.ts'

const maxBody = 32 * 1024
const dayMillis = 24 * 3600_000

/** The page that messages about approvals link to: it shows the request, and its form decides. */
export default defineFilter({
  className: 'filters.ApprovalLink',
  ...withParameters({
    url: parsed('web address', readPageUrl, {
      about: 'The address of this page as approvers reach it, without a query; links in mails and channels lead there.',
      required: true,
    }),
    validDays: wholeNumber({ about: 'Days for which a link is valid.', fallback: 14, min: 1, max: 365 }),
    withoutLogin: flag({
      about:
        '`"true"`: anyone who has the link of an approver can decide, and channels get no links to decide; otherwise the approver must be logged in.',
    }),
  }),
  answers: true,
  errors: htmlErrors,
  takesForms: true,
  offers: ({ url = '', validDays, withoutLogin }): OffersApprovalLinks => ({
    approvalLinks: { url, validMillis: validDays * dayMillis, withoutLogin },
  }),
  summarize: ({ url = '' }) => [{ label: 'approval links', value: url }],
  create: ({ withoutLogin }, host: PortalHost) => new ApprovalLinkFilter(withoutLogin, host),
})

/** What became of a link that decides nothing. */
const notices = {
  used: [410, 'decide.usedTitle', 'decide.used'],
  moved: [410, 'decide.movedTitle', 'decide.moved'],
  expired: [410, 'decide.expiredTitle', 'decide.expired'],
  forged: [403, 'decide.forgedTitle', 'decide.forged'],
  notYours: [403, 'decide.notYoursTitle', 'decide.notYours'],
  tooLate: [422, 'decide.tooLateTitle', 'decide.tooLate'],
  foreign: [403, 'foreign.title', 'decide.foreign'],
  refused: [403, 'foreign.title', 'decide.refused'],
  noLogin: [403, 'decide.noLoginTitle', 'decide.noLogin'],
  commentTooLong: [400, 'decide.commentTooLongTitle', 'decide.commentTooLong'],
  exists: [409, 'decide.existsTitle', 'decide.exists'],
  commentMissing: [400, 'decide.commentMissingTitle', 'decide.commentMissing'],
} as const satisfies Readonly<Record<string, readonly [status: number, title: TextKey, text: TextKey]>>

/** A link that is valid now, with its approval. */
interface OpenLink {
  readonly claims: ApprovalLinkClaims
  readonly user: ApprovalUser
  readonly approval: ApprovalView
}

class ApprovalLinkFilter implements Filter {
  readonly #withoutLogin: boolean
  readonly #host: PortalHost
  readonly #names: LookUpNames

  constructor(withoutLogin: boolean, host: PortalHost) {
    this.#withoutLogin = withoutLogin
    this.#host = host
    const { directory, log } = host
    this.#names = nameLookup({ directory, loginAttribute: 'uid', nameAttribute: 'displayName', log })
  }

  async handle(exchange: Exchange): Promise<GatewayResponse> {
    const { request, mount, pathInfo } = exchange
    if (pathInfo !== '' && pathInfo !== '/') throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
    if (request.method === 'GET' || request.method === 'HEAD') {
      const token = request.query.get('token') ?? ''
      const opened = await this.#open(token, exchange)
      if (!('claims' in opened)) return opened
      const { claims, user, approval } = opened
      const { approver = user.login, approve } = claims
      const others = [{ login: approver, identity: user.identity }, { login: approval.onBehalfOf ?? '' }]
      const names = await this.#names([...usersOfItem(approval), ...others])
      const workflow = await this.#labelOf(approval, request)
      return confirmationPage({ approval, workflow, approver, approve, token, action: mount || '/', names }, request)
    }
    if (request.method === 'POST') return this.#decide(exchange)
    throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: 'GET, HEAD, POST' } })
  }

  /** The label of the workflow, in the language of the reader. */
  async #labelOf({ run }: ApprovalView, request: GatewayRequest): Promise<string> {
    const { portal, texts, runs } = this.#host
    const translate = translator(texts, languageOf(request))
    const label = await runLabels([run], {
      workflowOf: (wanted) =>
        translatedWorkflow(
          portal.workflows.find((one) => one.name === wanted),
          translate,
        ),
      parametersOf: (ids) => runs.parametersOf(ids),
    })
    return label(run)
  }

  /** Checks everything about a link before any decision. */
  async #open(token: string, { subject, request }: Exchange): Promise<OpenLink | GatewayResponse> {
    const { keys, clock, approvals } = this.#host
    const link = await readApprovalLink(token, await approvalLinkKeys(keys), clock())
    if (link.kind !== 'valid') return this.#notice(link.kind === 'expired' ? 'expired' : 'forged', request)
    const { claims } = link
    const anonymous = subject.level === 0
    const { identity, approver: login = '' } = claims
    if (anonymous && identity === undefined) return this.#notice('noLogin', request)
    if (anonymous && !this.#withoutLogin) return this.#notice('notYours', request)
    if (!anonymous && identity !== undefined && !isUser(identity, approvalUser(subject)))
      return this.#notice('notYours', request)
    const user = anonymous && identity !== undefined ? { identity, login } : approvalUser(subject)
    const approval = await approvals.get(user, claims.approval)
    if (approval === undefined) return this.#notice(identity === undefined ? 'refused' : 'moved', request)
    if (approval.state === 'approved' || approval.state === 'denied') return this.#notice('used', request)
    if (approval.state !== 'open' || approval.version !== claims.version) return this.#notice('moved', request)
    if (!approval.mayDecide) return this.#notice('refused', request)
    const hasEnded = approval.run.accessEnds !== undefined && approval.run.accessEnds <= clock()
    return claims.approve && hasEnded ? this.#notice('tooLate', request) : { claims, user, approval }
  }

  async #decide(exchange: Exchange): Promise<GatewayResponse> {
    const { request } = exchange
    if (!isOwnPage(request)) return this.#notice('foreign', request)
    const form = await readForm(request, maxBody)
    const token = form.get('token') ?? ''
    const opened = await this.#open(token, exchange)
    if (!('claims' in opened)) return opened
    const comment = (form.get('comment') ?? '').replaceAll('\r\n', '\n').trim()
    if (comment.length > maxCommentLength) return this.#notice('commentTooLong', request)
    const { claims, user, approval } = opened
    if (comment === '' && approval.commentRequired === true) return this.#notice('commentMissing', request)
    const { version, approve } = claims
    const vote = { approval: approval.id, version, approve, requestId: request.id }
    try {
      await this.#host.approvals.decide(user, comment === '' ? vote : { ...vote, comment })
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') return this.#failure(error, request)
      // Decided, reassigned or ended meanwhile: the link says which.
      const now = await this.#open(token, exchange)
      return 'claims' in now ? this.#notice('moved', request) : now
    }
    const t = textsFor(request)
    const name = nameIn(await this.#names(usersOfItem(approval)), approval.run.subject)
    const done = t(approve ? 'decide.approved' : 'decide.denied', { label: inWrittenOrder(approval.label), name })
    return this.#page(200, t('verify.thanks'), done, request)
  }

  #failure(error: unknown, request: GatewayRequest): GatewayResponse {
    if (error instanceof GatewayError) {
      if (error.code === 'NOT_FOUND' || error.code === 'VERSION_MISMATCH') return this.#notice('moved', request)
      if (error.code === 'ACCESS_DENIED') return this.#notice('refused', request)
      if (error.code === 'UNPROCESSABLE') return this.#notice('tooLate', request)
      if (error.code === 'ACCOUNT_EXISTS') return this.#notice('exists', request)
    }
    throw error
  }

  #notice(name: keyof typeof notices, request: GatewayRequest): GatewayResponse {
    const [status, title, text] = notices[name]
    const t = textsFor(request)
    return this.#page(status, t(title), t(text, { count: String(maxCommentLength) }), request)
  }

  /** A page that ends here: it leads on to the approvals in the portal. */
  #page(status: number, title: string, text: string, request: GatewayRequest): GatewayResponse {
    const { portalUrl } = this.#host
    const link = html`<p><a href="${`${portalUrl}/approvals`}">${textsFor(request)('decide.portal')}</a></p>`
    return page(status, title, html`<p>${text}</p>\n${portalUrl === undefined ? '' : link}`, { request })
  }
}

/**
 * Only the page that shows the request may decide, even with a valid link: no other site may press the button in
 * a user's browser. Clients other than browsers send no origin.
 */
function isOwnPage(request: GatewayRequest): boolean {
  const site = header(request, 'sec-fetch-site')
  if (site !== undefined) return site === 'same-origin'
  const origin = header(request, 'origin')
  return origin === undefined || origin === request.origin
}

const maxCommentLength = 2000

interface Confirmation {
  readonly approval: ApprovalView
  /** The label of the workflow. */
  readonly workflow: string
  readonly approver: string
  readonly approve: boolean
  readonly token: string
  /** The address that the form posts to. */
  readonly action: string
  readonly names: PersonNames
}

/** With the login, since the decision is about this user and no namesake. */
function nameIn(names: PersonNames, login: string): string {
  const name = Object.hasOwn(names, login) ? names[login] : undefined
  return inWrittenOrder(name === undefined || name === login ? login : `${name} (${login})`)
}

/** Shows the request and its requester and asks for confirmation: opening the link decides nothing. */
function confirmationPage(
  { approval, workflow, approver, approve, token, action, names }: Confirmation,
  request: GatewayRequest,
): GatewayResponse {
  const t = textsFor(request)
  const isRequired = approval.commentRequired === true
  const dates = new Intl.DateTimeFormat(languageOf(request), { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' })
  const timeText = (at: Date): string => `${dates.format(at)} UTC`
  const requester = isAnonymousLogin(approval.run.requester)
    ? t('decide.visitor')
    : nameIn(names, approval.run.requester)
  const rows: readonly (readonly [TextKey, string])[] = [
    ['decide.request', approval.label],
    ['decide.workflow', workflow],
    ['decide.for', nameIn(names, approval.run.subject)],
    ['decide.requester', requester],
    ['decide.caller', nameIn(names, approval.run.caller ?? '')],
    ['decide.reason', approval.run.reason ?? ''],
    ['decide.expiry', approval.run.accessEnds === undefined ? '' : timeText(approval.run.accessEnds)],
    ['decide.opened', timeText(approval.opened)],
    ['decide.approver', nameIn(names, approver)],
    ['decide.onBehalfOf', nameIn(names, approval.onBehalfOf ?? '')],
  ]
  const shown = rows.flatMap(([key, value]) =>
    value === '' ? [] : [html`<dt>${t(key)}</dt><dd>${inWrittenOrder(value)}</dd>\n`],
  )
  return page(
    200,
    t(approve ? 'decide.approveTitle' : 'decide.denyTitle'),
    html`<dl>
${shown}</dl>
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<label for="comment">${t(isRequired ? 'decide.comment' : 'decide.optionalComment')}</label>
<textarea id="comment" name="comment" rows="4" maxlength="${String(maxCommentLength)}"${isRequired ? html` required` : ''}></textarea>
<button type="submit">${t(approve ? 'decide.approve' : 'decide.deny')}</button>
</form>`,
    { request },
  )
}

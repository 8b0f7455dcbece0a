import type { PersonNames } from '#contract/person-names.ts'
import { isUser } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { readPageUrl } from '#modules/shared/http/page-url.ts'
import { isAnonymousLogin } from '#modules/shared/login/own-login.ts'
import { type LookUpNames, nameLookup, usersOfItem } from '#modules/shared/people/person-names.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/filter/http.ts'
import { html, htmlErrors, notice, page } from '#sdk/filter/page.ts'
import { readForm } from '#sdk/filter/read-form.ts'
import { flag, parsed, wholeNumber } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import { type ApprovalLinkClaims, approvalLinkKeys, readApprovalLink } from '#sdk/workflow/approval-link.ts'
import { type ApprovalUser, type ApprovalView, approvalUser } from '#sdk/workflow/approvals.ts'

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
  approvalLinks: ({ url = '', validDays, withoutLogin }) => ({ url, validMillis: validDays * dayMillis, withoutLogin }),
  summarize: ({ url = '' }) => [{ label: 'approval links', value: url }],
  create: ({ withoutLogin }, host) => new ApprovalLinkFilter(withoutLogin, host),
})

const used = () => notice(410, 'Already decided', 'This request has been decided. Nothing was changed.')
const moved = () =>
  notice(410, 'No longer valid', 'This request was given to others since the message was sent, or has ended.')
const expired = () => notice(410, 'Expired', 'This link is too old. Decide the request in the portal.')
const forged = () => notice(403, 'Not valid', 'This link is not valid. Make sure that it was copied as a whole.')
const notYours = () => notice(403, 'Not for you', 'This link belongs to another approver. Log in as that approver.')
const tooLate = () => notice(422, 'Too late', 'The requested expiry date has passed. You can only deny this request.')
const foreign = () => notice(403, 'Not allowed', 'Open the link of the message, and decide on the page that it shows.')
const refused = () => notice(403, 'Not allowed', 'You may not decide this request. Nothing was changed.')
const noLogin = () => notice(403, 'Log in first', 'Only approvers who are logged in can decide with this link.')

/** A link that is valid now, with its approval. */
interface OpenLink {
  readonly claims: ApprovalLinkClaims
  readonly user: ApprovalUser
  readonly approval: ApprovalView
}

class ApprovalLinkFilter implements Filter {
  readonly #withoutLogin: boolean
  readonly #host: FilterHost
  readonly #names: LookUpNames

  constructor(withoutLogin: boolean, host: FilterHost) {
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
      return confirmationPage({ approval, approver, approve, token, action: mount || '/', names })
    }
    if (request.method === 'POST') return this.#decide(exchange)
    throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: 'GET, HEAD, POST' } })
  }

  /** Checks everything about a link before any decision. */
  async #open(token: string, { subject }: Exchange): Promise<OpenLink | GatewayResponse> {
    const { keys, clock, approvals } = this.#host
    const link = await readApprovalLink(token, await approvalLinkKeys(keys), clock())
    if (link.kind !== 'valid') return link.kind === 'expired' ? expired() : forged()
    const { claims } = link
    const anonymous = subject.level === 0
    const { identity, approver: login = '' } = claims
    if (anonymous && identity === undefined) return noLogin()
    if (anonymous && !this.#withoutLogin) return notYours()
    if (!anonymous && identity !== undefined && !isUser(identity, approvalUser(subject))) return notYours()
    const user = anonymous && identity !== undefined ? { identity, login } : approvalUser(subject)
    const approval = await approvals.get(user, claims.approval)
    if (approval === undefined) return identity === undefined ? refused() : moved()
    if (approval.state === 'approved' || approval.state === 'denied') return used()
    if (approval.state !== 'open' || approval.version !== claims.version) return moved()
    if (!approval.mayDecide) return refused()
    const hasEnded = approval.accessEnds !== undefined && approval.accessEnds <= clock()
    return claims.approve && hasEnded ? tooLate() : { claims, user, approval }
  }

  async #decide(exchange: Exchange): Promise<GatewayResponse> {
    const { request } = exchange
    if (!isOwnPage(request)) return foreign()
    const form = await readForm(request, maxBody)
    const opened = await this.#open(form.get('token') ?? '', exchange)
    if (!('claims' in opened)) return opened
    const comment = (form.get('comment') ?? '').replaceAll('\r\n', '\n').trim()
    if (comment.length > maxCommentLength) {
      return notice(400, 'Comment too long', `A comment has at most ${maxCommentLength} characters.`)
    }
    const { claims, user, approval } = opened
    if (comment === '' && approval.commentRequired === true) {
      return notice(400, 'Comment missing', 'This decision needs a comment. Go back and add one.')
    }
    const { version, approve } = claims
    const vote = { approval: approval.id, version, approve, requestId: request.id }
    try {
      await this.#host.approvals.decide(user, comment === '' ? vote : { ...vote, comment })
    } catch (error) {
      return failurePage(error)
    }
    const word = approve ? 'approved' : 'denied'
    const who = nameIn(await this.#names(usersOfItem(approval)), approval.subject)
    return notice(200, 'Thank you', `The request "${approval.label}" for ${who} was ${word}.`)
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

function failurePage(error: unknown): GatewayResponse {
  if (error instanceof GatewayError) {
    if (error.code === 'CONFLICT') return used()
    if (error.code === 'NOT_FOUND' || error.code === 'VERSION_MISMATCH') return moved()
    if (error.code === 'ACCESS_DENIED') return refused()
    if (error.code === 'UNPROCESSABLE') return tooLate()
    if (error.code === 'ACCOUNT_EXISTS') return notice(409, 'The account exists already', error.publicText)
  }
  throw error
}

const maxCommentLength = 2000

const registering = 'a visitor who registered without signing in'

interface Confirmation {
  readonly approval: ApprovalView
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
  return name === undefined || name === login ? login : `${name} (${login})`
}

/** Shows the request and its requester and asks for confirmation: opening the link decides nothing. */
function confirmationPage({ approval, approver, approve, token, action, names }: Confirmation): GatewayResponse {
  const word = approve ? 'Approve' : 'Deny'
  const isRequired = approval.commentRequired === true
  const rows = [
    ['Request', approval.label],
    ['Workflow', approval.workflow],
    ['For', nameIn(names, approval.subject)],
    ['Requested by', isAnonymousLogin(approval.requestor) ? registering : nameIn(names, approval.requestor)],
    ['Submitted by', nameIn(names, approval.caller ?? '')],
    ['Reason', approval.reason ?? ''],
    ['Expiry date', approval.accessEnds === undefined ? '' : minuteOf(approval.accessEnds)],
    ['Open since', minuteOf(approval.opened)],
    ['You decide as', nameIn(names, approver)],
    ['On behalf of', nameIn(names, approval.onBehalfOf ?? '')],
  ] as const
  const shown = rows.flatMap(([name, value]) => (value === '' ? [] : [html`<dt>${name}</dt><dd>${value}</dd>\n`]))
  return page(
    200,
    `${word} this request?`,
    html`<dl>
${shown}</dl>
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<label for="comment">${isRequired ? 'Comment' : 'Comment (optional)'}</label>
<textarea id="comment" name="comment" rows="4" maxlength="${String(maxCommentLength)}"${isRequired ? html` required` : ''}></textarea>
<button type="submit">${word}</button>
</form>`,
  )
}

const minuteOf = (at: Date): string => at.toISOString().slice(0, 16).replace('T', ' ').concat(' UTC')

import type { ErrorCode, GatewayError } from '#kernel/errors.ts'
import { escapeHtml } from '#kernel/text/html.ts'
import type { ErrorFormat } from '#sdk/http/error-format.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import type { Theme } from '#sdk/http/page-look.ts'
import { sheetOf } from './page-style.ts'
import { languageOf, type PageReader, schemeOf, type TextKey, textsFor } from './page-texts.ts'

/** A piece of HTML, as opposed to text that has to be escaped. */
class Markup {
  readonly html: string

  constructor(html: string) {
    this.html = html
  }
}

export type { Markup }

/** HTML in which every value is escaped, unless it is already markup. */
export function html(
  strings: TemplateStringsArray,
  ...values: readonly (string | Markup | readonly Markup[])[]
): Markup {
  const text = (value: (typeof values)[number]): string => {
    if (typeof value === 'string') return escapeHtml(value)
    return value instanceof Markup ? value.html : value.map((part) => part.html).join('')
  }
  return new Markup(strings.reduce((made, part, i) => made + text(values[i - 1] ?? '') + part))
}

interface PageOptions {
  /** The request that the page answers: it has the reader's language and the look of the host. */
  readonly request?: Pick<GatewayRequest, 'headers' | 'look'> | undefined
  /** Replaces that of the host. */
  readonly theme?: Theme | undefined
  /** For a page with little on it, such as a login form. */
  readonly narrow?: boolean
  /** A script of this origin, by its path, for the few pages that need one. */
  readonly script?: string | undefined
  /** Where the page redirects: a path of this host. */
  readonly refresh?: string
  /** The response to a form may lead to another site, such as the application of a login. */
  readonly formsLeadAnywhere?: boolean
}

/**
 * A page for people. It loads and runs only what is named here, no other site may frame it, and other sites do not
 * see its URL. This site does: with `no-referrer` browsers would not say that a form is from here either.
 */
export function page(
  status: number,
  title: string,
  content: Markup,
  { request, theme, narrow = false, script, refresh, formsLeadAnywhere = false }: PageOptions = {},
): GatewayResponse & { readonly body: string } {
  const { name, logo, theme: usual } = request?.look ?? {}
  const { style, hash } = sheetOf(theme ?? usual)
  const scheme = schemeOf(request)
  const document = html`<!doctype html>
<html lang="${languageOf(request)}"${scheme === undefined ? '' : html` data-scheme="${scheme}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
${refresh === undefined ? '' : html`<meta http-equiv="refresh" content="0; url=${refresh}">`}
<title>${name === undefined || name === title ? title : `${title} · ${name}`}</title>
<style>${new Markup(style)}</style>
${script === undefined ? '' : html`<script src="${script}" defer></script>`}
</head>
<body>
${name === undefined && logo === undefined ? '' : banner(name ?? '', logo)}
<main${narrow ? html` class="narrow"` : ''}>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${hash}'`,
    ...(logo === undefined ? [] : [logo.startsWith('data:') ? 'img-src data:' : "img-src 'self'"]),
    ...(script === undefined ? [] : ["script-src 'self'", "connect-src 'self'"]),
    // Browsers apply this to every later redirect, and every value on the page is escaped.
    ...(formsLeadAnywhere ? [] : ["form-action 'self'"]),
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy.join('; '),
    'cache-control': 'no-store',
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
  }
  return { status, headers, body: document.html }
}

/** The name is beside the logo, so the image needs no text of its own. */
const banner = (name: string, logo: string | undefined): Markup =>
  html`<header>${logo === undefined ? '' : html`<img src="${logo}" alt="">`}<span>${name}</span></header>`

/** A page with one message. */
export const notice = (status: number, title: string, text: string, options: PageOptions = {}) =>
  page(status, title, html`<p>${text}</p>`, options)

/** Failures that people see most often, in their language. Others are in English. */
export const errorTexts: Partial<Readonly<Record<ErrorCode, TextKey>>> = {
  ACCOUNT_EXISTS: 'error.accountExists',
  ACCESS_DENIED: 'error.accessDenied',
  AUTH_REJECTED: 'error.authRejected',
  AUTH_REQUIRED: 'error.authRequired',
  BAD_REQUEST: 'error.badRequest',
  CONFLICT: 'error.conflict',
  INTERNAL: 'error.internal',
  NO_APPROVERS: 'error.noApprovers',
  NOT_FOUND: 'error.notFound',
  SHUTTING_DOWN: 'error.shuttingDown',
  TARGET_FAILED: 'error.targetFailed',
  TARGET_TIMEOUT: 'error.targetTimeout',
  TARGET_UNREACHABLE: 'error.targetUnreachable',
  TOO_MANY_REQUESTS: 'error.tooManyRequests',
  WORKFLOW_FAILED: 'error.workflowFailed',
}

/** The public text of a failure, in the reader's language if it is the usual one of its code. */
export function failureText(error: GatewayError, request?: PageReader): string {
  const key = error.ownText === undefined ? errorTexts[error.code] : undefined
  return key === undefined ? error.publicText : textsFor(request)(key)
}

/** Failures of the pipeline as a page, for filters that people use in a browser. */
export const htmlErrors: ErrorFormat = (error, requestId, request) =>
  notice(error.status, textsFor(request)('error.title'), `${failureText(error, request)} (${requestId})`, {
    request,
    narrow: true,
  })

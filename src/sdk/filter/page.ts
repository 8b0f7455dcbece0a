import { createHash } from 'node:crypto'
import { escapeHtml } from '#kernel/html.ts'
import type { ErrorFormat } from '#sdk/filter/error-format.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

/** The colours of the portal. `#rrggbb` or `#rgb`. */
export interface Theme {
  readonly main: string
  readonly dark: string
}

export const defaultTheme: Theme = { main: '#AC1622', dark: '#780f17' }

/** Throws an Error for anything but a colour, since it becomes part of a style sheet. */
export function parseColour(written: string): string {
  if (!/^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i.test(written)) throw new Error(`must be #rgb or #rrggbb, not "${written}"`)
  return written
}

const styleOf = ({ main, dark }: Theme): string => `
:root { color-scheme: light dark; background: Canvas; color: CanvasText; font: 1.1rem/1.5 system-ui, sans-serif; --main: ${main}; --dark: ${dark}; border-top: .4rem solid var(--main) }
body { max-width: 40rem; margin: 0 auto; padding: 1.5rem }
main.narrow { max-width: 24rem; margin: 0 auto }
dt, label { font-weight: 600 }
dd { margin: 0 0 .5rem; overflow-wrap: anywhere }
label, textarea, button, input { display: block; font: inherit }
label.check, label.check input { display: inline; font-weight: normal }
textarea, input:not([type=checkbox]):not([type=radio]) { box-sizing: border-box; width: 100%; margin: .25rem 0 1rem; padding: .5rem }
button { margin: .75rem 0; padding: .6rem 1.4rem; border: 0; border-radius: .3rem; background: var(--main); color: #fff; cursor: pointer }
button:hover, button:focus-visible { background: var(--dark) }
button:focus-visible, input:focus-visible, textarea:focus-visible, a:focus-visible { outline: .2rem solid currentColor; outline-offset: .15rem }
[role=alert] { margin: 0 0 1rem; padding: .6rem .8rem; border: .1rem solid var(--main); border-radius: .3rem }
code { overflow-wrap: anywhere }
`

interface Sheet {
  readonly style: string
  readonly hash: string
}

const sheets = new Map<string, Sheet>()

function sheetOf(theme: Theme): Sheet {
  const key = `${theme.main} ${theme.dark}`
  let sheet = sheets.get(key)
  if (sheet === undefined) {
    const style = styleOf({ main: parseColour(theme.main), dark: parseColour(theme.dark) })
    sheet = { style, hash: createHash('sha256').update(style).digest('base64') }
    sheets.set(key, sheet)
  }
  return sheet
}

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

export interface PageOptions {
  readonly theme?: Theme
  /** For a page with little on it, such as a login form. */
  readonly narrow?: boolean
  /** A script of this origin, by its path, for the few pages that need one. */
  readonly script?: string
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
  { theme = defaultTheme, narrow = false, script, refresh, formsLeadAnywhere = false }: PageOptions = {},
): GatewayResponse & { readonly body: string } {
  const { style, hash } = sheetOf(theme)
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
${refresh === undefined ? '' : html`<meta http-equiv="refresh" content="0; url=${refresh}">`}
<title>${title}</title>
<style>${new Markup(style)}</style>
${script === undefined ? '' : html`<script src="${script}" defer></script>`}
</head>
<body>
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

/** A page with one message. */
export const notice = (status: number, title: string, text: string, options: PageOptions = {}) =>
  page(status, title, html`<p>${text}</p>`, options)

/** Failures of the pipeline as a page, for filters that people use in a browser. */
export const htmlErrors: ErrorFormat = (error, requestId) =>
  notice(error.status, 'Something went wrong', `${error.publicText} (${requestId})`)

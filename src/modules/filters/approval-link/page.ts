import { createHash } from 'node:crypto'
import { escapeHtml } from '#kernel/html.ts'
import type { GatewayResponse } from '#sdk/http.ts'

const style = `
:root { color-scheme: light dark; font: 1.1rem/1.5 system-ui, sans-serif }
body { max-width: 40rem; margin: 0 auto; padding: 1.5rem }
dt { font-weight: 600 }
dd { margin: 0 0 .5rem; overflow-wrap: anywhere }
label, textarea, button { display: block; font: inherit }
textarea { box-sizing: border-box; width: 100%; margin: .25rem 0 1rem }
button { padding: .6rem 1.4rem }
`
const styleHash = createHash('sha256').update(style).digest('base64')

/**
 * Nothing is loaded, nothing is run, no other site may show the page, and the address with its token goes to no other.
 * To this one it may: with `no-referrer` browsers would not say either that the form is from here.
 */
const headers: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'cache-control': 'no-store',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
}

/** A piece of HTML, apart from text that has yet to be escaped. */
class Markup {
  readonly html: string

  constructor(html: string) {
    this.html = html
  }
}

/** HTML in which every value is escaped, unless it is markup already. */
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

export function page(status: number, title: string, content: Markup): GatewayResponse & { readonly body: string } {
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<style>${new Markup(style)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`
  return { status, headers, body: document.html }
}

/** A page that says one thing. */
export const notice = (status: number, title: string, text: string) => page(status, title, html`<p>${text}</p>`)

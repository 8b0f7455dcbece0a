import { addressOf, allPages, type Section, sections } from './contents.ts'
import { escapeHtml, type RenderedPage } from './render-page.ts'

export interface Version {
  /** Its folder in the site. */
  readonly name: string
  readonly about: string
  /** A released version keeps the pages of its release: builds of other commits leave it alone. */
  readonly released: boolean
}

/** Pages have no scripts or styles of their own, and nothing comes from another host. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'"

export interface PageContext {
  readonly page: string
  readonly version: Version
  readonly versions: readonly Version[]
  readonly rendered: RenderedPage
  titleOf(page: string): string
}

export function pageHtml({ page, version, versions, rendered, titleOf }: PageContext): string {
  const address = addressOf(page)
  const root = '../'.repeat(address.split('/').length - 1)
  const link = (to: string): string => root + to
  const isHome = address === 'index.html'
  const title = isHome ? 'Gatehouse documentation' : `${rendered.title} · Gatehouse ${version.name}`
  const linkTo = (other: string): string =>
    `<a href="${link(addressOf(other))}"${other === page ? ' aria-current="page"' : ''}>${escapeHtml(titleOf(other))}</a>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${link('assets/icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${link('assets/site.css')}">
<script src="${link('assets/theme.js')}"></script>
<script type="module" src="${link('assets/site.js')}"></script>
</head>
<body data-root="${root}">
<a class="skip" href="#content">Skip to content</a>
<header>
<button type="button" class="menu-button" popovertarget="menu">Menu</button>
<a class="brand" href="${link('index.html')}">Gatehouse</a>
<button type="button" id="open-search" aria-keyshortcuts="Control+K" hidden>Search <kbd class="long">Ctrl K</kbd></button>
<button type="button" id="theme" hidden><span class="long">Colors: <span id="theme-name">system</span></span><span class="short" aria-hidden="true">◐</span></button>
<button type="button" popovertarget="versions" aria-label="Version ${escapeHtml(version.name)}, choose another"><span class="long">Version </span>${escapeHtml(version.name)}</button>
<ul id="versions" popover aria-label="Versions">
${versions.map((one) => `<li><a href="${link(`../${one.name}/index.html`)}"${one.name === version.name ? ' aria-current="true"' : ''}>${escapeHtml(one.name)}</a> ${escapeHtml(one.about)}</li>`).join('\n')}
</ul>
</header>
<div class="columns">
<nav id="menu" popover aria-label="Pages">
${sections.map((section) => menuSection(section, page, linkTo)).join('\n')}
</nav>
<main id="content" tabindex="-1">
<article>
${rendered.html}</article>
${neighbors(page, linkTo)}
</main>
${tableOfContents(rendered)}
</div>
<dialog id="search" aria-label="Search the documentation">
<div role="search">
<input type="search" id="query" aria-label="Search" placeholder="Search the documentation" autocomplete="off" spellcheck="false" maxlength="200">
<button type="button" id="close-search">Close</button>
</div>
<p role="status" id="found"></p>
<ol id="results"></ol>
</dialog>
</body>
</html>
`
}

function menuSection({ title, pages, groups = [] }: Section, page: string, linkTo: (page: string) => string): string {
  const list = (items: readonly string[]): string =>
    items.length === 0 ? '' : `<ul>${items.map((one) => `<li>${linkTo(one)}</li>`).join('\n')}</ul>`
  const details = (name: string, opened: boolean, body: string): string =>
    `<details${opened ? ' open' : ''}><summary>${name}</summary>${body}</details>`
  const inGroups = groups.map((group) => details(group.title, group.pages.includes(page), list(group.pages)))
  const isHere = pages.includes(page) || groups.some((group) => group.pages.includes(page))
  return details(title, isHere, list(pages) + inGroups.join('\n'))
}

function tableOfContents({ headings }: RenderedPage): string {
  const shown = headings.filter(({ depth }) => depth === 2)
  if (shown.length < 2) return ''
  const items = shown.map(({ id, text }) => `<li><a href="#${id}">${escapeHtml(text)}</a></li>`)
  return `<nav class="toc" aria-label="On this page"><p>On this page</p><ul>${items.join('\n')}</ul></nav>`
}

function neighbors(page: string, linkTo: (page: string) => string): string {
  const index = allPages.indexOf(page)
  const [before, after] = [allPages[index - 1], allPages[index + 1]]
  const parts = [
    before === undefined ? '' : `<span>Previous: ${linkTo(before)}</span>`,
    after === undefined ? '' : `<span>Next: ${linkTo(after)}</span>`,
  ]
  return `<nav class="neighbors" aria-label="Neighboring pages">${parts.join('')}</nav>`
}

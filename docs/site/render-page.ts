import { posix } from 'node:path'
import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import ini from 'highlight.js/lib/languages/ini'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import nginx from 'highlight.js/lib/languages/nginx'
import sql from 'highlight.js/lib/languages/sql'
import yaml from 'highlight.js/lib/languages/yaml'
import { Marked, type Tokens } from 'marked'
import { addressOf } from './contents.ts'
import { drawSequence } from './sequence-diagram.ts'

hljs.registerLanguage('sh', bash)
hljs.registerLanguage('js', javascript)
hljs.registerLanguage('json', json)
hljs.registerLanguage('ini', ini)
hljs.registerLanguage('nginx', nginx)
hljs.registerLanguage('sql', sql)
hljs.registerLanguage('yaml', yaml)

export interface Heading {
  readonly id: string
  readonly depth: number
  /** Plain text. */
  readonly text: string
}

export interface RenderedPage {
  readonly title: string
  readonly html: string
  readonly headings: readonly Heading[]
  /** Paths of the images of the page, from the root of the repository. */
  readonly images: readonly string[]
}

export const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

/** The text of HTML that this module wrote. */
export const plainText = (html: string): string =>
  html.replace(/<[^>]*>/g, '').replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? '')

/** The anchors of GitHub, so that a link works there and in the site. */
function slugger(): (text: string) => string {
  const used = new Map<string, number>()
  return (text) => {
    const slug = text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
      .replaceAll(' ', '-')
    const count = used.get(slug) ?? 0
    used.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  }
}

/** `isPage` says which files of the repository are pages; a link to another file becomes text, since the site has none. */
export function renderPage(page: string, source: string, isPage: (path: string) => boolean): RenderedPage {
  const headings: Heading[] = []
  const images: string[] = []
  const slug = slugger()
  const pathOf = (href: string): string => posix.join(posix.dirname(page), href)
  const fromHere = (address: string): string => posix.relative(posix.dirname(addressOf(page)), address)
  const marked = new Marked({ gfm: true })
  marked.use({
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens)
        const text = plainText(html)
        const id = slug(text)
        headings.push({ id, depth, text })
        const anchor =
          depth === 1 ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to ${escapeHtml(text)}">#</a>`
        return `<h${depth} id="${id}">${html}${anchor}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const html = this.parser.parseInline(tokens)
        if (/^(?:https?:|mailto:)/.test(href)) return `<a href="${escapeHtml(href)}" rel="noopener">${html}</a>`
        const [file = '', anchor] = href.split('#')
        const hash = anchor === undefined ? '' : `#${anchor}`
        if (file === '') return `<a href="${escapeHtml(hash)}">${html}</a>`
        const path = pathOf(file)
        if (!isPage(path)) return `<span class="file" title="${escapeHtml(path)} in the repository">${html}</span>`
        return `<a href="${escapeHtml(fromHere(addressOf(path)) + hash)}">${html}</a>`
      },
      image({ href, text }) {
        const path = pathOf(href)
        images.push(path)
        return `<img src="${escapeHtml(fromHere(addressOf(path)))}" alt="${escapeHtml(text)}" loading="lazy">`
      },
      code({ text, lang = '' }) {
        if (lang === 'mermaid') return `<figure class="diagram" tabindex="0">${drawSequence(text)}</figure>\n`
        const name = lang === 'console' ? 'sh' : lang
        const known = hljs.getLanguage(name) !== undefined
        const html = known ? hljs.highlight(text, { language: name }).value : escapeHtml(text)
        return `<pre tabindex="0"><code>${html}\n</code></pre>\n`
      },
      html: ({ text }) => (text.startsWith('<!--') ? '' : escapeHtml(text)),
      table({ header, rows }) {
        const cells = (tag: string, row: readonly Tokens.TableCell[]): string =>
          `<tr>${row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`
        const body = rows.map((row) => cells('td', row)).join('\n')
        return `<div class="table" tabindex="0"><table><thead>${cells('th', header)}</thead><tbody>\n${body}\n</tbody></table></div>\n`
      },
    },
  })
  try {
    const html = marked.parse(source, { async: false })
    const title = headings.find(({ depth }) => depth === 1)?.text
    if (title === undefined) throw new Error('the page has no heading of level 1')
    return { title, html, headings, images }
  } catch (error) {
    throw new Error(`${page}: ${error instanceof Error ? error.message : error}`, { cause: error })
  }
}

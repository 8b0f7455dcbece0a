import { escapeHtml } from '#kernel/text/html.ts'

/** The text as HTML, line by line, with nothing in it read as markup. */
export const htmlOfText = (text: string): string => `<div style="white-space: pre-wrap">${escapeHtml(text)}</div>`

const lineEnds = new Set(['br', 'p', 'div', 'li', 'tr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'table', 'ul', 'ol'])
const silent = new Set(['style', 'script', 'head', 'title'])
const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  '#39': "'",
  nbsp: ' ',
}

/** The text of HTML, for readers of plain-text mail: drops tags, keeps the addresses of links. */
export function textOfHtml(html: string): string {
  let text = ''
  let at = 0
  let hidden: string | undefined
  while (at < html.length) {
    const open = html.indexOf('<', at)
    const end = open < 0 ? -1 : html.indexOf('>', open)
    const before = html.slice(at, end < 0 ? html.length : open)
    if (hidden === undefined) text += decoded(before.replace(/\s+/g, ' '))
    if (end < 0) break
    const [, slash = '', written = ''] = /^(\/?)([a-z][a-z0-9]*)/i.exec(html.slice(open + 1, end)) ?? []
    const tag = written.toLowerCase()
    if (silent.has(tag)) hidden = slash === '' ? tag : undefined
    else if (lineEnds.has(tag) && hidden === undefined) text += '\n'
    else if (tag === 'a' && slash === '' && hidden === undefined) text += linkTarget(html.slice(open, end))
    at = end + 1
  }
  return text
    .split('\n')
    .map((line) => line.trim())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

function linkTarget(tag: string): string {
  const address = /\shref\s*=\s*(?:"([^"]*)"|'([^']*)')/i.exec(tag)
  const target = decoded(address?.[1] ?? address?.[2] ?? '')
  return /^https?:/i.test(target) ? `<${target}> ` : ''
}

const decoded = (text: string): string =>
  text.replace(/&(#?\w{1,8});/g, (whole, name: string) => entities[name] ?? whole)

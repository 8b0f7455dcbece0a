/** A safe subset of Markdown: paragraphs, lists, bold, italic, code and links. Everything else, HTML included, is text. */

export type Inline =
  | string
  | { readonly kind: 'strong' | 'em'; readonly content: readonly Inline[] }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'link'; readonly address: string; readonly content: readonly Inline[] }

export type Block =
  | { readonly kind: 'paragraph'; readonly content: readonly Inline[] }
  | { readonly kind: 'ul' | 'ol'; readonly items: readonly (readonly Inline[])[] }

/** Longer texts are cut. */
const maxLength = 20_000
const maxDepth = 4

const item = /^\s{0,3}(?:([-*+])|\d{1,9}[.)])\s+(.*)$/

export function markdownBlocks(text: string): readonly Block[] {
  const blocks: Block[] = []
  let open: { kind: Block['kind']; texts: string[] } | undefined
  const close = (): void => {
    if (open !== undefined) blocks.push(toBlock(open))
    open = undefined
  }
  for (const line of text.slice(0, maxLength).split(/\r\n|\r|\n/)) {
    const [, bullet, content = ''] = item.exec(line) ?? []
    const kind = content === '' ? undefined : bullet === undefined ? 'ol' : 'ul'
    if (line.trim() === '') close()
    else if (kind !== undefined) {
      if (open?.kind !== kind) close()
      open ??= { kind, texts: [] }
      open.texts.push(content)
    } else {
      open ??= { kind: 'paragraph', texts: [''] }
      const last = open.texts.length - 1
      open.texts[last] = `${open.texts[last]} ${line.trim()}`.trim()
    }
  }
  close()
  return blocks
}

function toBlock({ kind, texts }: { readonly kind: Block['kind']; readonly texts: readonly string[] }): Block {
  const contents = texts.map((text) => inlines(text, 0))
  return kind === 'paragraph' ? { kind, content: contents[0] ?? [] } : { kind, items: contents }
}

interface Found {
  readonly inline: Inline
  /** Where the text after it begins. */
  readonly end: number
}

/** Marks, the longest first. */
const marks = [
  { mark: '**', kind: 'strong' },
  { mark: '__', kind: 'strong' },
  { mark: '*', kind: 'em' },
  { mark: '_', kind: 'em' },
] as const

function inlines(text: string, depth: number): readonly Inline[] {
  const found: Inline[] = []
  let plain = 0
  for (let at = 0; at < text.length; ) {
    const next = depth < maxDepth ? inlineAt(text, at, depth) : undefined
    if (next === undefined) {
      at++
      continue
    }
    if (at > plain) found.push(text.slice(plain, at))
    found.push(next.inline)
    at = plain = next.end
  }
  if (plain < text.length) found.push(text.slice(plain))
  return found
}

function inlineAt(text: string, at: number, depth: number): Found | undefined {
  const first = text[at]
  if (first === '`') return codeAt(text, at)
  if (first === '[') return linkAt(text, at, depth)
  if (first !== '*' && first !== '_') return undefined
  for (const { mark, kind } of marks) {
    const found = text.startsWith(mark, at) ? markedAt(text, at, mark, kind, depth) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

function codeAt(text: string, at: number): Found | undefined {
  const end = text.indexOf('`', at + 1)
  return end <= at + 1 ? undefined : { inline: { kind: 'code', text: text.slice(at + 1, end) }, end: end + 1 }
}

function linkAt(text: string, at: number, depth: number): Found | undefined {
  const middle = text.indexOf('](', at + 1)
  const end = middle < 0 ? -1 : text.indexOf(')', middle)
  if (end < 0 || middle === at + 1) return undefined
  const address = text.slice(middle + 2, end)
  if (address === '' || /\s/.test(address)) return undefined
  return { inline: { kind: 'link', address, content: inlines(text.slice(at + 1, middle), depth + 1) }, end: end + 1 }
}

/** Marks touch the marked text. An underscore within a word is text, since names have them. */
function markedAt(text: string, at: number, mark: string, kind: 'strong' | 'em', depth: number): Found | undefined {
  const start = at + mark.length
  const end = text.indexOf(mark, start + 1)
  if (end < 0 || /\s/.test(text[start] ?? ' ') || /\s/.test(text[end - 1] ?? ' ')) return undefined
  const isInWord = (place: number): boolean => /[\p{L}\p{N}]/u.test(text[place] ?? '')
  if (mark.startsWith('_') && (isInWord(at - 1) || isInWord(end + mark.length))) return undefined
  return { inline: { kind, content: inlines(text.slice(start, end), depth + 1) }, end: end + mark.length }
}

/** The text without marks, for places that have no room for elements. */
export const markdownText = (text: string): string =>
  markdownBlocks(text)
    .flatMap((block) => (block.kind === 'paragraph' ? [block.content] : block.items))
    .map(plainText)
    .join(' ')

const plainText = (content: readonly Inline[]): string =>
  content
    .map((inline) => {
      if (typeof inline === 'string') return inline
      return inline.kind === 'code' ? inline.text : plainText(inline.content)
    })
    .join('')

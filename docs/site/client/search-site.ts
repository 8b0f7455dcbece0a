import type MiniSearch from 'minisearch'
import type { SearchResult } from 'minisearch'
import { type SearchEntry, stem, wordsOf } from './search-options.ts'

export interface Hit {
  readonly address: string
  readonly title: string
  readonly heading: string
  /** A part of the text in which the words occur, in pieces. */
  readonly excerpt: readonly Piece[]
}

export interface Piece {
  readonly text: string
  readonly isFound: boolean
}

export interface Hits {
  readonly shown: readonly Hit[]
  readonly total: number
}

const mostResults = 20
/** A long page would fill the list alone. */
const mostResultsOfPage = 3
const excerptLength = 180

/** Words for one thing, of which a page may use another than the reader. */
const synonyms: readonly (readonly string[])[] = [
  ['postgres', 'postgresql'],
  ['proxy', 'nginx', 'ingress', 'haproxy', 'traefik'],
  ['rotate', 'rollover', 'renew'],
  ['approver', 'approval', 'approve'],
  ['disable', 'deactivate', 'suspend', 'offboard', 'block'],
  ['mfa', '2fa', 'totp', 'otp', 'factor', 'authenticator'],
  ['mail', 'email', 'smtp'],
  ['entra', 'aad', 'azuread'],
  ['kubernetes', 'k8s'],
  ['login', 'logon', 'signin', 'sso'],
  ['backup', 'dump', 'snapshot'],
  ['administrator', 'admin'],
  ['certificate', 'cert', 'tls', 'ssl'],
  ['down', 'away', 'outage', 'unavailable', 'unreachable', 'crash'],
  ['language', 'translation', 'locale', 'i18n'],
  ['theme', 'color', 'colour', 'branding', 'logo'],
  ['deputy', 'delegate', 'substitute', 'vacation'],
  ['expire', 'expiry', 'temporary'],
  ['systemd', 'unit', 'daemon'],
  ['lead', 'manager', 'boss', 'supervisor'],
  ['lost', 'lose', 'forgot', 'forgotten'],
  ['delete', 'remove'],
  ['error', 'fail', 'failure', 'problem', 'troubleshoot'],
  ['upgrade', 'update'],
  ['replica', 'scale', 'cluster'],
]

const stopWords = new Set(
  'a about an and any are as at be been but by can could do does for from had happen happens has have how i if in into is it its make may me must my of on or our should so than that the their them then there these they this to use was we what when where which who why will with would you your'.split(
    ' ',
  ),
)
/** They are in most questions, and say little about what is searched for. */
const weakTerms = new Set(['add', 'change', 'configure', 'connect', 'get', 'let', 'new', 'set', 'setup'].map(stem))

const synonymsOf = new Map<string, readonly string[]>()
for (const group of synonyms) {
  const stems = Array.from(new Set(group.map(stem)))
  for (const term of stems) synonymsOf.set(term, stems)
}

/** Histories and reasons name everything, and are seldom what a reader looks for. */
const weightOfPage: readonly (readonly [RegExp, number])[] = [
  // Its list has the words of all recipes.
  [/^how-do-i\.html$/, 0.3],
  [/^how-do-i\.html/, 1.5],
  [/^(?:CHANGELOG|CONTRIBUTING|specification|benchmarks|openunison)\.html|^decisions\//, 0.25],
  [/^(?:architecture|migration-from-openunison)\.html/, 0.6],
  [/^(?:reference|examples)\//, 0.8],
]
const weightOf = (address: string): number => weightOfPage.find(([pattern]) => pattern.test(address))?.[1] ?? 1

/** The words of a query, without those that every sentence has, unless there are no others. */
function askedWords(query: string): readonly string[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []
  const telling = words.filter((word) => !stopWords.has(word))
  return Array.from(new Set(telling.length > 0 ? telling : words))
}

/** The terms that do for a word: its own first. */
function variantsOf(word: string): readonly string[] {
  const term = stem(word)
  return [term, ...(synonymsOf.get(term) ?? []), ...wordsOf(word).map(stem)]
}

/**
 * Entries with any word of the query or a synonym of it, best first. Titles and headings count most, then how many of the words an
 * entry has.
 */
export function searchSite(index: MiniSearch<SearchEntry>, query: string): Hits {
  const variants = askedWords(query).map(variantsOf)
  const terms = variants.map(([term = '']) => term)
  const isAsked = new Set(terms)
  const results = index.search(variants.flat().join(' '), {
    tokenize: (words) => Array.from(new Set(words.split(' '))),
    combineWith: 'OR',
    boost: { title: 3, heading: 4 },
    prefix: (term) => term.length > 2 && isAsked.has(term),
    fuzzy: (term) => (term.length > 4 && isAsked.has(term) ? 0.15 : false),
    weights: { prefix: 0.3, fuzzy: 0.1 },
    boostTerm: (term) => (isAsked.has(term) ? 1 : 0.7) * (weakTerms.has(term) ? 0.3 : 1),
    boostDocument: (address) => weightOf(String(address)),
    // The terms are stems already.
    processTerm: (term) => term,
  })
  const weigh = (term: string): number => (weakTerms.has(term) ? 0.3 : 1)
  const all = terms.reduce((sum, term) => sum + weigh(term), 0)
  const scoreOf = (result: SearchResult): number => {
    const found = terms.filter((_, at) => variants[at]?.some((variant) => result.queryTerms.includes(variant)))
    return result.score * (found.reduce((sum, term) => sum + weigh(term), 0) / all) ** 2
  }
  const ranked = results
    .map((result) => ({ result, score: scoreOf(result) }))
    .sort((a, b) => b.score - a.score)
    .map(({ result }) => result)
  return { shown: bestOf(ranked).map(hitOf), total: results.length }
}

function bestOf(results: readonly SearchResult[]): readonly SearchResult[] {
  const counts = new Map<string, number>()
  const chosen = results.filter((result) => {
    const title = String(result['title'])
    const count = (counts.get(title) ?? 0) + 1
    counts.set(title, count)
    return count <= mostResultsOfPage
  })
  return chosen.slice(0, mostResults)
}

const hitOf = (result: SearchResult): Hit => ({
  address: String(result.id),
  title: String(result['title']),
  heading: String(result['heading']),
  excerpt: excerptOf(String(result['text']), new Set(result.terms)),
})

/** The part of a text in which the most of the terms occur, or its beginning. */
export function excerptOf(text: string, terms: ReadonlySet<string>): readonly Piece[] {
  const found = Array.from(text.matchAll(/[\p{L}\p{N}]+/gu)).flatMap(({ 0: word, index }) => {
    const term = stem(word)
    return terms.has(term) ? [{ from: index, to: index + word.length, term }] : []
  })
  let start = 0
  let most = 0
  for (const [at, { from }] of found.entries()) {
    const inside = new Set<string>()
    for (let other = at; (found[other]?.to ?? Infinity) - from <= excerptLength - 40; other += 1) {
      inside.add(found[other]?.term ?? '')
    }
    if (inside.size <= most) continue
    most = inside.size
    start = from
  }
  // A little before the first word, from the beginning of a word on, and never a short rest.
  const before = Math.min(start - 40, text.length - excerptLength)
  const from = before <= 0 ? 0 : text.indexOf(' ', before) + 1
  const end = text.lastIndexOf(' ', from + excerptLength)
  const to = text.length - from <= excerptLength ? text.length : end > from ? end : from + excerptLength
  const pieces: Piece[] = []
  let at = from
  const add = (until: number, isFound: boolean): void => {
    if (until > at) pieces.push({ text: text.slice(at, until), isFound })
    at = until
  }
  if (from > 0) pieces.push({ text: '… ', isFound: false })
  for (const one of found.filter((one) => one.from >= from && one.to <= to)) {
    add(one.from, false)
    add(one.to, true)
  }
  add(to, false)
  if (to < text.length) pieces.push({ text: ' …', isFound: false })
  return pieces
}

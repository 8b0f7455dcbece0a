import type { Options } from 'minisearch'

export interface SearchEntry {
  /** The address in the site, with the anchor of the heading. */
  readonly id: string
  readonly title: string
  readonly heading: string
  readonly text: string
}

/** The forms of an English word as one term: rotate, rotates, rotated, rotating and rotation are `rotat`. */
export function stem(word: string): string {
  let term = word.toLowerCase()
  if (term.length < 4 || /\d/.test(term)) return term
  if (term.endsWith('ies')) term = `${term.slice(0, -3)}y`
  else if (/[^sui]s$/.test(term)) term = term.slice(0, -1)
  if (term.length > 5) term = term.replace(/(?:ing|ed|ion)$/, '')
  if (term.length > 4) term = term.replace(/e$/, '')
  return term.replace(/([b-df-hj-np-rtv-z])\1$/, '$1')
}

/** The words of a text, and names such as SCHEMA_NEWER both as a whole and by their words. */
export const wordsOf = (text: string): string[] =>
  Array.from(text.matchAll(/[\p{L}\p{N}_]+/gu)).flatMap(([word]) => {
    const parts = word.split('_').filter((part) => part !== '')
    return parts.length > 1 ? [word, ...parts] : parts
  })

/** Shared by the build, which writes the index, and the page, which reads it. */
export const searchOptions: Options<SearchEntry> = {
  fields: ['title', 'heading', 'text'],
  storeFields: ['title', 'heading', 'text'],
  tokenize: wordsOf,
  processTerm: stem,
}

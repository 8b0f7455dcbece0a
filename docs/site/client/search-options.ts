import type { Options } from 'minisearch'

export interface SearchEntry {
  readonly id: string
  readonly title: string
  readonly heading: string
  readonly text: string
}

/** Shared by the build, which writes the index, and the page, which reads it. */
export const searchOptions: Options<SearchEntry> = {
  fields: ['title', 'heading', 'text'],
  storeFields: ['title', 'heading'],
  searchOptions: {
    boost: { title: 4, heading: 3 },
    prefix: (term) => term.length > 2,
    fuzzy: (term) => (term.length > 4 ? 0.15 : false),
  },
}

import MiniSearch from 'minisearch'
import { searchOptions } from './client/search-options.ts'
import { addressOf } from './contents.ts'
import { plainText, type RenderedPage } from './render-page.ts'

/** The index of the search, as JSON: an entry for each part of a page between two headings of level 1 to 3. */
export function searchIndex(pages: ReadonlyMap<string, RenderedPage>): string {
  const index = new MiniSearch(searchOptions)
  for (const [page, { title, html, headings }] of pages) {
    const parts = html.split(/(?=<h[1-3] id=")/).filter((part) => part.startsWith('<h'))
    for (const part of parts) {
      const id = /^<h[1-3] id="([^"]*)"/.exec(part)?.[1] ?? ''
      const heading = headings.find((one) => one.id === id)
      const address = addressOf(page) + (heading?.depth === 1 ? '' : `#${id}`)
      const words = part.replace(/^<h.*?<\/h[1-3]>/, '').replace(/<\/(?:td|th|p|li|pre|text|summary)>/g, ' ')
      const text = plainText(words).replaceAll(/\s+/g, ' ').trim()
      index.add({ id: address, title, heading: heading?.depth === 1 ? '' : (heading?.text ?? ''), text })
    }
  }
  return JSON.stringify(index)
}

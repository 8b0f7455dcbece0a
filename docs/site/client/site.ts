import MiniSearch from 'minisearch'
import { type SearchEntry, searchOptions } from './search-options.ts'
import { type Hit, searchSite } from './search-site.ts'

/** The way to the folder of this version: empty, or one or more `../`. */
const root = document.body.dataset['root'] ?? ''

function element<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id)
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} "${id}"`)
  return found
}

function setUpTheme(): void {
  const button = element('theme', HTMLButtonElement)
  const name = element('theme-name', HTMLSpanElement)
  const key = 'gatehouse-docs-theme'
  const themes = ['system', 'light', 'dark'] as const
  type Theme = (typeof themes)[number]
  const show = (theme: Theme): void => {
    button.setAttribute('aria-label', `Colors: ${theme}`)
    name.textContent = theme
    if (theme === 'system') delete document.documentElement.dataset['theme']
    else document.documentElement.dataset['theme'] = theme
  }
  let theme: Theme = themes.find((one) => one === localStorage.getItem(key)) ?? 'system'
  show(theme)
  button.addEventListener('click', () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'system'
    localStorage.setItem(key, theme)
    show(theme)
  })
  button.hidden = false
}

/** Older versions are not built again, so the menu reads the list that the newest build wrote. */
function setUpVersions(): void {
  const menu = element('versions', HTMLUListElement)
  menu.addEventListener('beforetoggle', async () => {
    const answer = await fetch(`${root}../versions.json`).catch(() => undefined)
    if (answer?.ok !== true) return
    const versions: readonly { readonly name: string; readonly about: string }[] = await answer.json()
    const current = menu.querySelector('[aria-current]')?.textContent
    menu.replaceChildren(
      ...versions.map(({ name, about }) => {
        const link = Object.assign(document.createElement('a'), {
          href: `${root}../${name}/index.html`,
          textContent: name,
        })
        if (name === current) link.setAttribute('aria-current', 'true')
        const item = document.createElement('li')
        item.append(link, ` ${about}`)
        return item
      }),
    )
  })
}

function setUpSearch(): void {
  const dialog = element('search', HTMLDialogElement)
  const query = element('query', HTMLInputElement)
  const results = element('results', HTMLOListElement)
  const found = element('found', HTMLParagraphElement)
  const opener = element('open-search', HTMLButtonElement)
  let loading: Promise<MiniSearch<SearchEntry>> | undefined

  async function load(): Promise<MiniSearch<SearchEntry>> {
    const answer = await fetch(`${root}assets/search.json`)
    if (!answer.ok) throw new Error(`the search index answered ${answer.status}`)
    return MiniSearch.loadJSON<SearchEntry>(await answer.text(), searchOptions)
  }

  async function search(): Promise<void> {
    const text = query.value.trim()
    loading ??= load()
    try {
      const index = await loading
      // A later input has its own search.
      if (text !== query.value.trim()) return
      const { shown, total } = searchSite(index, text)
      results.replaceChildren(...shown.map(resultItem))
      if (text === '') found.textContent = ''
      else if (total === 0) found.textContent = `No results for “${text}”`
      else if (total === 1) found.textContent = '1 result'
      else found.textContent = `${total} results${total > shown.length ? `, the best ${shown.length} are shown` : ''}`
    } catch {
      loading = undefined
      results.replaceChildren()
      found.textContent = "Search isn't available: the index could not be loaded. Try again later."
    }
  }

  function resultItem({ address, title, heading, excerpt }: Hit): HTMLLIElement {
    const item = document.createElement('li')
    const link = Object.assign(document.createElement('a'), { href: root + address })
    const page = Object.assign(document.createElement('strong'), { textContent: heading === '' ? title : heading })
    const place = Object.assign(document.createElement('span'), { textContent: heading === '' ? '' : title })
    const text = Object.assign(document.createElement('span'), { className: 'excerpt' })
    text.append(
      ...excerpt.map((piece) =>
        piece.isFound ? Object.assign(document.createElement('mark'), { textContent: piece.text }) : piece.text,
      ),
    )
    link.append(page, ' ', place, text)
    item.append(link)
    return item
  }

  function open(): void {
    if (dialog.open) return
    dialog.showModal()
    query.select()
    void search()
  }

  opener.addEventListener('click', open)
  element('close-search', HTMLButtonElement).addEventListener('click', () => dialog.close())
  // A result on the same page only scrolls.
  results.addEventListener('click', () => dialog.close())
  query.addEventListener('input', () => void search())
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLInputElement
    const isShortcut = (event.key === 'k' && (event.ctrlKey || event.metaKey)) || (event.key === '/' && !isTyping)
    if (!isShortcut) return
    event.preventDefault()
    open()
  })
  dialog.addEventListener('keydown', (event) => {
    const links = Array.from(results.querySelectorAll('a'))
    const { activeElement } = document
    const at = activeElement instanceof HTMLAnchorElement ? links.indexOf(activeElement) : -1
    if (event.key === 'ArrowDown') links[Math.min(at + 1, links.length - 1)]?.focus()
    else if (event.key === 'ArrowUp') (at > 0 ? links[at - 1] : query)?.focus()
    // In a search field Escape only clears the text.
    else if (event.key === 'Escape') dialog.close()
    else if (event.key === 'Enter' && activeElement === query) links[0]?.click()
    else return
    event.preventDefault()
  })
  opener.hidden = false
}

/** Only where the browser lets pages write to the clipboard: over HTTPS, or on this machine. */
function setUpCopying(): void {
  if (navigator.clipboard === undefined) return
  for (const block of document.querySelectorAll('pre')) {
    const button = Object.assign(document.createElement('button'), {
      type: 'button',
      textContent: 'Copy',
      className: 'copy',
    })
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(block.querySelector('code')?.textContent ?? '')
        button.textContent = 'Copied'
      } catch {
        button.textContent = "Can't copy"
      }
      setTimeout(() => {
        button.textContent = 'Copy'
      }, 2000)
    })
    const frame = Object.assign(document.createElement('div'), { className: 'code' })
    block.replaceWith(frame)
    frame.append(block, button)
  }
}

function showCurrentPage(): void {
  document.querySelector('#menu [aria-current]')?.scrollIntoView({ block: 'nearest' })
}

setUpTheme()
setUpVersions()
setUpSearch()
setUpCopying()
showCurrentPage()

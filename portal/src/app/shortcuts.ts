import type { MessageKey } from './messages.ts'
import type { PageEntry } from './pages.ts'

/** The pages that `g` and a letter open. */
export const pageKeys: readonly { readonly key: string; readonly id: PageEntry['id'] }[] = [
  { key: 'h', id: 'front-page' },
  { key: 'c', id: 'request-access' },
  { key: 'r', id: 'requests' },
  { key: 'm', id: 'access' },
  { key: 'a', id: 'approvals' },
  { key: 'p', id: 'user' },
  { key: 'd', id: 'dashboard' },
]

export type ShortcutAction = 'palette' | 'search' | 'help'

/** Keys with one meaning on every page. */
export const actionKeys: readonly {
  readonly key: string
  readonly action: ShortcutAction
  readonly text: MessageKey
}[] = [
  { key: '/', action: 'search', text: 'shortcuts.search' },
  { key: '?', action: 'help', text: 'shortcuts.help' },
]

/** What a key press means. `waiting` is true after `g`, when a letter follows. */
export type KeyMeaning =
  | { readonly kind: 'action'; readonly action: ShortcutAction }
  | { readonly kind: 'page'; readonly id: PageEntry['id'] }
  | { readonly kind: 'wait' }

export interface PressedKey {
  readonly key: string
  readonly ctrlKey: boolean
  readonly metaKey: boolean
  readonly altKey: boolean
}

/** Undefined if the key means nothing. Single characters mean something only if the user has not turned them off. */
export function meaningOf(pressed: PressedKey, waiting: boolean, areOn: boolean): KeyMeaning | undefined {
  const { ctrlKey, metaKey, altKey } = pressed
  const key = pressed.key.toLowerCase()
  if ((ctrlKey || metaKey) && !altKey && key === 'k') return { kind: 'action', action: 'palette' }
  if (ctrlKey || metaKey || altKey || !areOn) return undefined
  if (waiting) {
    const page = pageKeys.find((one) => one.key === key)
    return page && { kind: 'page', id: page.id }
  }
  if (key === 'g') return { kind: 'wait' }
  const found = actionKeys.find((one) => one.key === key)
  return found && { kind: 'action', action: found.action }
}

/** Whether the element takes typed text, so that keys are not shortcuts. */
export const takesText = (element: Pick<HTMLElement, 'tagName' | 'isContentEditable'>): boolean =>
  element.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(element.tagName)

/** The key of the palette as keyboards of the system show it. */
export const paletteKey = (platform: string): string => (/^(?:Mac|iP)/.test(platform) ? '⌘K' : 'Ctrl K')

import { useCallback, useSyncExternalStore } from 'react'
import { usePerson } from '../../app/config.tsx'
import { draftKey, keepDraft, readDraft } from '../../components/draft.ts'
import type { CartLine } from './cart.ts'

/** The cart of one user in this tab; it survives a reload, and ends with the tab. */

const listeners = new Set<() => void>()
const none: readonly CartLine[] = []
let kept: { readonly key: string; readonly lines: readonly CartLine[] } | undefined

/** False for a line of an older version. */
const isLine = (line: Partial<CartLine> | null): line is CartLine =>
  typeof line?.uuid === 'string' && typeof line.reason === 'string' && Array.isArray(line.subjects)

function linesOf(key: string): readonly CartLine[] {
  if (kept?.key !== key) kept = { key, lines: readDraft(sessionStorage, key, none).filter(isLine) }
  return kept.lines
}

function keep(key: string, lines: readonly CartLine[]): void {
  kept = { key, lines }
  keepDraft(sessionStorage, key, lines)
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export interface Cart {
  readonly lines: readonly CartLine[]
  add(line: CartLine): void
  remove(keys: readonly string[]): void
  change(key: string, change: Partial<CartLine>): void
}

export function useCart(): Cart {
  const key = draftKey(usePerson().login, 'cart')
  const lines = useSyncExternalStore(subscribe, () => linesOf(key))
  return {
    lines,
    add: useCallback((line) => keep(key, [...linesOf(key), line]), [key]),
    remove: useCallback(
      (keys) =>
        keep(
          key,
          linesOf(key).filter((line) => !keys.includes(line.key)),
        ),
      [key],
    ),
    change: useCallback(
      (of, change) =>
        keep(
          key,
          linesOf(key).map((line) => (line.key === of ? { ...line, ...change } : line)),
        ),
      [key],
    ),
  }
}

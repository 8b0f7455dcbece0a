import { useCallback, useState } from 'react'

const prefix = 'gatehouse.draft.'

/** Of one person, who is told apart from all others. */
export const draftKey = (owner: string, name: string): string => `${prefix}${encodeURIComponent(owner)}/${name}`

/**
 * State that outlives the page within this tab, so that nothing that was typed is lost when it is loaded again. It
 * belongs to one person: another who signs in here starts empty.
 */
export function useDraft<T>(owner: string, name: string, initial: T): [T, (next: T) => void, () => void] {
  const key = draftKey(owner, name)
  const [value, setValue] = useState<T>(() => readDraft(sessionStorage, key, initial))
  const change = useCallback(
    (next: T) => {
      setValue(next)
      keepDraft(sessionStorage, key, next)
    },
    [key],
  )
  const clear = useCallback(() => sessionStorage.removeItem(key), [key])
  return [value, change, clear]
}

/** What is no such value, since it is of an older version, is none; members that were unknown then are as they begin. */
export function readDraft<T>(storage: Pick<Storage, 'getItem'>, key: string, initial: T): T {
  const stored = parse(storage.getItem(key))
  if (typeof stored !== typeof initial || stored === null || Array.isArray(stored) !== Array.isArray(initial)) {
    return initial
  }
  return (typeof stored === 'object' && !Array.isArray(stored) ? { ...initial, ...stored } : stored) as T
}

function parse(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text)
  } catch {
    return null
  }
}

/** Where there is no more room, it lasts as long as the page. */
export function keepDraft(storage: Pick<Storage, 'setItem'>, key: string, value: unknown): void {
  try {
    storage.setItem(key, JSON.stringify(value))
  } catch {
    // The value itself is not lost: the page has it.
  }
}

/** What other people typed in this tab is none of this person's business. */
export function forgetOthers(storage: Pick<Storage, 'key' | 'length' | 'removeItem'>, login: string): void {
  const keys = Array.from({ length: storage.length }, (_, i) => storage.key(i) ?? '')
  for (const key of keys) if (key.startsWith(prefix) && !key.startsWith(draftKey(login, ''))) storage.removeItem(key)
}

import { useCallback, useState } from 'react'

const prefix = 'gatehouse.draft.'

/** The key of one user's draft, distinct from those of all others. */
export const draftKey = (owner: string, name: string): string => `${prefix}${encodeURIComponent(owner)}/${name}`

/**
 * State that survives a reload within this tab, so that no typed text is lost. It belongs to one user: another user who
 * signs in here starts empty.
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

/** An invalid value, for example of an older version, counts as absent; missing members get their initial values. */
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

/** Without room in the storage, it lasts as long as the page. */
export function keepDraft(storage: Pick<Storage, 'setItem'>, key: string, value: unknown): void {
  try {
    storage.setItem(key, JSON.stringify(value))
  } catch {
    // The page still has the value.
  }
}

/** Removes drafts of other users in this tab. */
export function forgetOthers(storage: Pick<Storage, 'key' | 'length' | 'removeItem'>, login: string): void {
  const keys = Array.from({ length: storage.length }, (_, i) => storage.key(i) ?? '')
  for (const key of keys) if (key.startsWith(prefix) && !key.startsWith(draftKey(login, ''))) storage.removeItem(key)
}

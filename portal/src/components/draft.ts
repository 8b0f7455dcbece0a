import { useCallback, useState } from 'react'

const prefix = 'gatehouse.draft.'

/**
 * State that outlives the page within this tab, so that nothing that was typed is lost when it is loaded again. It
 * belongs to one person: another who signs in here starts empty.
 */
export function useDraft<T>(owner: string, name: string, initial: T): [T, (next: T) => void, () => void] {
  const key = `${prefix}${owner}.${name}`
  const [value, setValue] = useState<T>(() => readDraft(sessionStorage, key, initial))
  const change = useCallback(
    (next: T) => {
      setValue(next)
      sessionStorage.setItem(key, JSON.stringify(next))
    },
    [key],
  )
  const clear = useCallback(() => sessionStorage.removeItem(key), [key])
  return [value, change, clear]
}

export function readDraft<T>(storage: Pick<Storage, 'getItem'>, key: string, initial: T): T {
  const stored = storage.getItem(key)
  if (stored === null) return initial
  try {
    return JSON.parse(stored) as T
  } catch {
    return initial
  }
}

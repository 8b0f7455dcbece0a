import { useEffect } from 'react'

/** Elements that come and go while the user scrolls long lists. */
const passing = '.virtual-row, tr'

/**
 * When the focused element disappears, such as a button with its row, the title of the page gets the focus, so that
 * screen readers do not start from the top.
 */
export function useKeptFocus(): void {
  useEffect(() => {
    let last: Element | undefined
    const note = ({ target }: FocusEvent): void => {
      last = target instanceof Element ? target : undefined
    }
    const observer = new MutationObserver(() => {
      if (last === undefined || last.isConnected || document.activeElement !== document.body) return
      const isPassing = last.closest(passing) !== null
      last = undefined
      if (!isPassing) document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true })
    })
    document.addEventListener('focusin', note)
    observer.observe(document.body, { childList: true, subtree: true })
    return () => {
      document.removeEventListener('focusin', note)
      observer.disconnect()
    }
  }, [])
}

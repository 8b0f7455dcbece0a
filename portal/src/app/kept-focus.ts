import { useEffect } from 'react'

/** Rows of long lists come and go while somebody scrolls. */
const passing = '.virtual-row, tr'

/**
 * When what has the focus goes, such as a button with the line that it removes, the title of the page gets it, so that
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

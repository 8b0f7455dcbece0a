import { useNavigate } from '@tanstack/react-router'
import { type ComponentType, type ReactNode, type RefObject, useCallback, useEffect, useRef, useState } from 'react'
import { useSay } from '../components/notices.tsx'
import { useFailureText } from '../components/states.tsx'
import { useConfig } from './config.tsx'
import { shownPages } from './pages.ts'
import { part } from './part.ts'
import { settings } from './settings.ts'
import { useShortcutSetting } from './shortcut-setting.ts'
import { meaningOf, type ShortcutAction, takesText } from './shortcuts.ts'

export interface OverlayProps {
  /** The focus returns to where it was, unless the user chose something that leads elsewhere. */
  readonly onClose: (how: 'dismissed' | 'chosen') => void
}

type OverlayName = Exclude<ShortcutAction, 'search'>

/** Loaded when they are first opened. */
const overlays: Readonly<Record<OverlayName, () => Promise<ComponentType<OverlayProps>>>> = {
  palette: part(async () => (await import('./palette/palette.tsx')).Palette),
  help: part(async () => (await import('./shortcut-sheet.tsx')).ShortcutSheet),
}

/** How long after `g` a letter belongs to it. */
const sequenceMillis = 1_500

/** The dialogs that belong to no page, and the keys that open them and the pages. */
export function useOverlays(): { readonly open: (name: OverlayName) => void; readonly overlay: ReactNode } {
  const say = useSay()
  const failureText = useFailureText()
  const [Overlay, setOverlay] = useState<ComponentType<OverlayProps>>()
  const before = useRef<Element | null>(null)
  /** What the user types while a dialog loads is meant for the dialog. */
  const isLoading = useRef(false)
  const open = useCallback(
    (name: OverlayName): void => {
      before.current = document.activeElement
      isLoading.current = true
      overlays[name]()
        .then(
          (loaded) => setOverlay(() => loaded),
          (error: Error) => say(failureText(error), 'bad'),
        )
        .finally(() => {
          isLoading.current = false
        })
    },
    [say, failureText],
  )
  const close = useCallback<OverlayProps['onClose']>((how) => {
    setOverlay(undefined)
    const last = before.current
    // After the dialog has left the page.
    if (how === 'dismissed' && last instanceof HTMLElement) setTimeout(() => last.focus())
  }, [])
  useShortcuts(open, isLoading)
  return { open, overlay: Overlay !== undefined && <Overlay onClose={close} /> }
}

function useShortcuts(open: (name: OverlayName) => void, isLoading: RefObject<boolean>): void {
  const config = useConfig()
  const navigate = useNavigate()
  const [areOn] = useShortcutSetting()
  useEffect(() => {
    const pages = shownPages(config, settings.apis)
    let waitsUntil = 0
    const act = (action: ShortcutAction): void => {
      const field = document.querySelector<HTMLElement>('main input[type="search"]')
      if (action !== 'search') open(action)
      else if (field === null) open('palette')
      else field.focus()
    }
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.isComposing || event.repeat || isLoading.current) return
      if (document.querySelector('[role="dialog"]') !== null) return
      const isTyping = event.target instanceof HTMLElement && takesText(event.target)
      const meaning = meaningOf(event, event.timeStamp < waitsUntil, areOn && !isTyping)
      waitsUntil = meaning?.kind === 'wait' ? event.timeStamp + sequenceMillis : 0
      if (meaning === undefined || meaning.kind === 'wait') return
      if (meaning.kind === 'action') {
        event.preventDefault()
        act(meaning.action)
        return
      }
      const page = pages.find(({ id }) => id === meaning.id)
      if (page === undefined) return
      event.preventDefault()
      void navigate({ to: page.to })
    }
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [config, navigate, areOn, open, isLoading])
}

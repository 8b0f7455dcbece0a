import { Button } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from '../app/i18n.tsx'

interface DialogFooterProps {
  /** No button to leave the dialog if absent. */
  readonly onCancel?: () => void
  /** Its text. */
  readonly cancel?: string
  /** Whether the button to leave the dialog has the focus first, as before an action that can't be undone. */
  readonly focusCancel?: boolean
  /** The main action. */
  readonly children?: ReactNode
}

/** The actions of a dialog: leaving it, then the main one, at the end of the line; on phones as wide as the dialog. */
export function DialogFooter({ onCancel, cancel, focusCancel = false, children }: DialogFooterProps) {
  const { t } = useTranslation()
  return (
    <div className="dialog-footer">
      {onCancel !== undefined && (
        <Button variant="default" onClick={onCancel} {...(focusCancel ? { 'data-autofocus': true } : {})}>
          {cancel ?? t('action.cancel')}
        </Button>
      )}
      {children}
    </div>
  )
}

import { Button, Modal, Text } from '@mantine/core'
import { createContext, type ReactNode, use, useCallback, useEffect, useState } from 'react'
import { stepUpAddress } from '../../api/account.ts'
import { ApiError } from '../../api/call.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { onSignedIn } from '../../app/session-channel.ts'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { useSay } from '../../components/notices.tsx'
import { useFailureText } from '../../components/states.tsx'

type Guarded = <T>(action: () => Promise<T>) => Promise<T>

const Context = createContext<Guarded>((action) => action())

/** Runs an action that requires a fresh login: if it is rejected, the user signs in again, and it runs then. */
export const useStepUp = (): Guarded => use(Context)

interface Waiting {
  readonly retry: () => void
  readonly giveUp: () => void
}

/** The user declined to sign in again. */
export class GivenUp extends Error {}

export function StepUpProvider({ children }: { readonly children: ReactNode }) {
  const { t } = useTranslation()
  const [waiting, setWaiting] = useState<Waiting>()
  const guarded = useCallback<Guarded>(async (action) => {
    for (;;) {
      try {
        return await action()
      } catch (error) {
        if (!(error instanceof ApiError) || !error.stepUp) throw error
        await new Promise<void>((retry, reject) => {
          setWaiting({ retry, giveUp: () => reject(new GivenUp('nobody signed in again')) })
        })
      }
    }
  }, [])
  const settle = useCallback(
    (how: keyof Waiting) => {
      setWaiting(undefined)
      waiting?.[how]()
    },
    [waiting],
  )
  useEffect(() => (waiting === undefined ? undefined : onSignedIn(() => settle('retry'))), [waiting, settle])
  useEffect(() => {
    document.documentElement.toggleAttribute('data-step-up', waiting !== undefined)
    return () => document.documentElement.removeAttribute('data-step-up')
  }, [waiting])
  return (
    <Context value={guarded}>
      {children}
      <Modal
        opened={waiting !== undefined}
        onClose={() => settle('giveUp')}
        zIndex={300}
        className="step-up"
        title={t('security.stepUpTitle')}
        closeButtonProps={{ 'aria-label': t('action.close') }}
      >
        <Text>{t('security.stepUpText')}</Text>
        <DialogFooter onCancel={() => settle('retry')} cancel={t('security.stepUpDone')}>
          <Button component="a" href={stepUpAddress()} target="_blank" data-autofocus>
            {t('security.stepUp')}
          </Button>
        </DialogFooter>
      </Modal>
    </Context>
  )
}

/** Shows an error, unless the user cancelled. */
export function useSayFailure(): (error: Error) => void {
  const say = useSay()
  const failureText = useFailureText()
  return (error) => {
    if (!(error instanceof GivenUp)) say(failureText(error), 'bad')
  }
}

import { Button, Group, Modal, Text } from '@mantine/core'
import { createContext, type ReactNode, use, useCallback, useEffect, useState } from 'react'
import { stepUpAddress } from '../../api/account.ts'
import { ApiError } from '../../api/call.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { onSignedIn } from '../../app/session-channel.ts'
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
  const goOn = useCallback(
    (how: keyof Waiting) => {
      setWaiting(undefined)
      waiting?.[how]()
    },
    [waiting],
  )
  useEffect(() => (waiting === undefined ? undefined : onSignedIn(() => goOn('retry'))), [waiting, goOn])
  return (
    <Context value={guarded}>
      {children}
      <Modal
        opened={waiting !== undefined}
        onClose={() => goOn('giveUp')}
        centered
        zIndex={300}
        title={t('security.stepUpTitle')}
        closeButtonProps={{ 'aria-label': t('action.close') }}
      >
        <Text mb="md">{t('security.stepUpText')}</Text>
        <Group>
          <Button component="a" href={stepUpAddress()} target="_blank" data-autofocus>
            {t('security.stepUp')}
          </Button>
          <Button variant="default" onClick={() => goOn('retry')}>
            {t('security.stepUpDone')}
          </Button>
        </Group>
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

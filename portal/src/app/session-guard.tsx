import { Button, Modal, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useState } from 'react'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import { ApiError, call } from '../api/call.ts'
import { extendSession, main } from '../api/main.ts'
import { reloadPage } from '../api/page-owner.ts'
import { isEndingSoon, minutesLeft } from '../api/session.ts'
import { resumeSession, useSessionState } from '../api/session-state.ts'
import { DialogFooter } from '../components/dialog-footer.tsx'
import { forgetOthers } from '../components/draft.ts'
import { useSay } from '../components/notices.tsx'
import { useFailureText } from '../components/states.tsx'
import { useTranslation } from './i18n.tsx'
import { announcePerson, onOtherPerson, onSignedIn, signInAddress } from './session-channel.ts'
import { settings } from './settings.ts'

interface SessionGuardProps {
  readonly warnMinutes: number
  /** The page's user; undefined until it is known. */
  readonly login: string | undefined
}

const checkMillis = 30_000

/** Warns before the session ends and then lets the user sign in without leaving the page. */
export function SessionGuard({ warnMinutes, login }: SessionGuardProps) {
  const state = useSessionState()
  const path = settings.apis.sessionCheck
  const left = useQuery({
    queryKey: ['minutes-left'],
    queryFn: () => minutesLeft(path ?? ''),
    enabled: path !== undefined && login !== undefined && state === 'there',
    refetchInterval: checkMillis,
    staleTime: 0,
    retry: false,
  })
  useEffect(() => {
    if (login === undefined) return undefined
    forgetOthers(sessionStorage, login)
    announcePerson(login)
    return onOtherPerson(login, () => void reloadPage())
  }, [login])
  const minutes = left.data
  // The gateway does not report how long a session lasts; using the page extends it.
  const [longest, setLongest] = useState(0)
  if (minutes !== undefined && minutes > longest) setLongest(minutes)
  const isSoon = minutes !== undefined && isEndingSoon(minutes, longest, warnMinutes)
  return (
    <>
      <SessionEnded opened={state === 'ended'} />
      {state === 'there' && isSoon && <SessionEnding minutes={minutes} onExtended={() => void left.refetch()} />}
    </>
  )
}

function SessionEnded({ opened }: { readonly opened: boolean }) {
  const { t } = useTranslation()
  const failureText = useFailureText()
  const client = useQueryClient()
  const [problem, setProblem] = useState<string>()
  const resume = useCallback(async () => {
    setProblem(undefined)
    try {
      // Reloads if another user has signed in.
      await call(main(mainRoutes.getUser), { now: true })
    } catch (error) {
      const isEnded = error instanceof ApiError && error.status === 401
      return setProblem(isEnded || !(error instanceof Error) ? t('session.notYet') : failureText(error))
    }
    resumeSession()
    await client.invalidateQueries()
  }, [client, t, failureText])
  useEffect(() => (opened ? onSignedIn(() => void resume()) : undefined), [opened, resume])
  return (
    <Modal
      opened={opened}
      onClose={() => undefined}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      title={t('session.endedTitle')}
      zIndex={1000}
    >
      <Text>{t('session.endedText')}</Text>
      {problem !== undefined && (
        <Text mt="sm" c="var(--mantine-color-error)" role="alert">
          {problem}
        </Text>
      )}
      <DialogFooter onCancel={() => void resume()} cancel={t('session.signedIn')}>
        <Button component="a" href={signInAddress} target="_blank" data-autofocus>
          {t('session.signIn')}
        </Button>
      </DialogFooter>
    </Modal>
  )
}

function SessionEnding({ minutes, onExtended }: { readonly minutes: number; readonly onExtended: () => void }) {
  const { t, tn } = useTranslation()
  const say = useSay()
  const failureText = useFailureText()
  const [isDismissed, setDismissed] = useState(false)
  const extend = (): void => {
    extendSession().then(onExtended, (error: Error) => say(failureText(error), 'bad'))
  }
  return (
    <Modal
      opened={!isDismissed}
      onClose={() => setDismissed(true)}
      title={t('session.endingTitle')}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <Text role="alert">{tn('session.ending', minutes)}</Text>
      <DialogFooter>
        <Button onClick={extend} data-autofocus>
          {t('session.stay')}
        </Button>
      </DialogFooter>
    </Modal>
  )
}

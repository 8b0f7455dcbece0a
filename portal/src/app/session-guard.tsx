import { Button, Group, Modal, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useState } from 'react'
import { mainPaths } from '#contract/main.ts'
import { ApiError, call } from '../api/call.ts'
import { extendSession, mainAddress } from '../api/main.ts'
import { startAnew } from '../api/page-owner.ts'
import { minutesLeft } from '../api/session.ts'
import { resumeSession, useSessionState } from '../api/session-state.ts'
import { forgetOthers } from '../components/draft.ts'
import { useSay } from '../components/notices.tsx'
import { useFailureText } from '../components/states.tsx'
import { useTranslation } from './i18n.tsx'
import { onOtherPerson, onSignedIn, signInAddress, tellPerson } from './session-channel.ts'
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
    tellPerson(login)
    return onOtherPerson(login, () => void startAnew())
  }, [login])
  const minutes = left.data
  const isSoon = minutes !== undefined && minutes >= 0 && minutes <= warnMinutes
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
      await call(mainAddress([mainPaths.user]), { now: true })
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
      centered
      title={t('session.endedTitle')}
      zIndex={1000}
    >
      <Text mb="md">{t('session.endedText')}</Text>
      <Group>
        <Button component="a" href={signInAddress} target="_blank" data-autofocus>
          {t('session.signIn')}
        </Button>
        <Button variant="default" onClick={() => void resume()}>
          {t('session.signedIn')}
        </Button>
      </Group>
      {problem !== undefined && (
        <Text mt="sm" c="var(--mantine-color-error)" role="alert">
          {problem}
        </Text>
      )}
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
      centered
      title={t('session.endingTitle')}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <Text mb="md" role="alert">
        {tn('session.ending', minutes)}
      </Text>
      <Button onClick={extend} data-autofocus>
        {t('session.stay')}
      </Button>
    </Modal>
  )
}

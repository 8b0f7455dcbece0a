import { Button, Group, Modal, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useState } from 'react'
import { mainPaths, type UserData } from '#contract/main.ts'
import { call } from '../api/call.ts'
import { extendSession, mainAddress } from '../api/main.ts'
import { minutesLeft } from '../api/session.ts'
import { resumeSession, useSessionState } from '../api/session-state.ts'
import { useSay } from '../components/notices.tsx'
import { useFailureText } from '../components/states.tsx'
import { useTranslation } from './i18n.tsx'
import { onSignedIn, signInAddress } from './session-channel.ts'
import { settings } from './settings.ts'

interface SessionGuardProps {
  readonly warnMinutes: number
  /** Whose page this is; undefined until that is known. */
  readonly login: string | undefined
}

const checkMillis = 30_000

/** Warns before the session ends and, when it has, helps to sign in without leaving the page. */
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
  const minutes = left.data
  const isSoon = minutes !== undefined && minutes >= 0 && minutes <= warnMinutes
  return (
    <>
      <SessionEnded opened={state === 'ended'} login={login} />
      {state === 'there' && isSoon && <SessionEnding minutes={minutes} onExtended={() => void left.refetch()} />}
    </>
  )
}

function SessionEnded({ opened, login }: { readonly opened: boolean; readonly login: string | undefined }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const resume = useCallback(async () => {
    const user = await call<UserData>(mainAddress([mainPaths.user]), { now: true })
    // What is on this page belongs to somebody else.
    if (login !== undefined && (user.uid ?? user.dn) !== login) return window.location.reload()
    resumeSession()
    await client.invalidateQueries()
  }, [client, login])
  useEffect(() => (opened ? onSignedIn(() => void resume().catch(() => undefined)) : undefined), [opened, resume])
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
        <Button variant="default" onClick={() => void resume().catch(() => undefined)}>
          {t('session.signedIn')}
        </Button>
      </Group>
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

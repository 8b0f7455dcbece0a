import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { RegisterConfig, SubmittedResponse } from '#features/registration/contract/register.ts'
import { invitationQuery } from '../../api/register.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { Icon } from '../../components/icon.tsx'
import { Empty } from '../../components/states.tsx'
import type { Invitation } from './entries.ts'
import { RegisterForm } from './register-form.tsx'
import './register.css'

interface RegisterViewProps {
  readonly config: RegisterConfig
  /** The signed-in user; empty if there is none. */
  readonly owner: string
  /** The token in the address; empty without one. */
  readonly token: string
}

/** The steps of a registration: the invitation if there is one, the form, and the confirmation. */
export function RegisterView({ config, owner, token }: RegisterViewProps) {
  const { t } = useTranslation()
  const offer = useQuery({ ...invitationQuery(token), enabled: token !== '' })
  if (token === '') {
    if (config.requireInvitation) {
      return <Empty icon="mail" title={t('register.onlyInvited')} text={t('register.onlyInvitedText')} />
    }
    return <Registration config={config} owner={owner} invitation={undefined} />
  }
  return (
    <Answer query={offer}>
      {(found) => <Registration config={config} owner={owner} invitation={{ ...found, token }} />}
    </Answer>
  )
}

interface RegistrationProps {
  readonly config: RegisterConfig
  readonly owner: string
  readonly invitation: Invitation | undefined
}

interface Done {
  readonly answer: SubmittedResponse
  readonly address: string
}

function Registration({ config, owner, invitation }: RegistrationProps) {
  const [done, setDone] = useState<Done>()
  const form = (
    <RegisterForm
      // Each registration starts with an empty form.
      key={done?.answer.workflowId ?? ''}
      config={config}
      owner={owner}
      invitation={invitation}
      onSubmitted={(answer, address) => setDone({ answer, address })}
    />
  )
  if (done === undefined) return form
  return (
    <Submitted config={config} {...done}>
      {form}
    </Submitted>
  )
}

interface SubmittedProps extends Done {
  readonly config: RegisterConfig
  /** The form for the next registration. */
  readonly children?: ReactNode
}

export function Submitted({ config, answer, address, children }: SubmittedProps) {
  const { t } = useTranslation()
  const isMailed = answer.verificationSent === true
  const title = t(isMailed ? 'register.mailSent' : 'register.submitted')
  const mailed = address === '' ? t('register.mailSentText') : t('register.mailSentTo', { address })
  const text = isMailed ? mailed : config.submittedText
  if (!answer.addNewUsers) return <Finished config={config} title={title} text={text} />
  return (
    <Stack>
      <Alert color="green" variant="outline" icon={<Icon name="check" />} title={title} role="status">
        <Text size="sm">{text}</Text>
        <Text size="sm">{t('register.another')}</Text>
      </Alert>
      {children}
    </Stack>
  )
}

interface FinishedProps {
  readonly config: RegisterConfig
  readonly title: string
  readonly text: string
}

function Finished({ config, title, text }: FinishedProps) {
  const { t } = useTranslation()
  return (
    <div role="status">
      <Empty icon="check" title={title} text={text}>
        <Group mt="md">
          <Button component="a" variant="default" href={config.homeURL}>
            {t('register.home')}
          </Button>
        </Group>
      </Empty>
    </div>
  )
}

import { Button, Group, NativeSelect, Paper, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { ChosenNotifications, NotificationSettingsView } from '#features/portal/contract/main-notifications.ts'
import { languages } from '#sdk/page/languages.ts'
import { notificationSettingsQuery, useSaveNotificationSettings } from '../../api/notifications.ts'
import { useTranslation } from '../../app/i18n.tsx'
import type { MessageKey } from '../../app/messages.ts'
import { Answer } from '../../components/answer.tsx'
import { Icon } from '../../components/icon.tsx'
import { useSay } from '../../components/notices.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, Failure } from '../../components/states.tsx'

type Mail = NotificationSettingsView['mails'][number]

const kindTexts: Readonly<Record<Mail['kind'], MessageKey>> = {
  approval: 'notificationSettings.approval',
  request: 'notificationSettings.request',
  question: 'notificationSettings.question',
  access: 'notificationSettings.access',
}

const timeTexts: Readonly<Record<Mail['mail'], MessageKey>> = {
  now: 'notificationSettings.now',
  digest: 'notificationSettings.digest',
  never: 'notificationSettings.never',
}

/** What the user is mailed about, besides the inbox. */
export function NotificationSettingsPage() {
  const { t } = useTranslation()
  const query = useQuery(notificationSettingsQuery)
  return (
    <Page
      title={t('notificationSettings.title')}
      intro={t('notificationSettings.intro')}
      actions={
        <Button
          variant="default"
          leftSection={<Icon name="back" size={18} />}
          renderRoot={(props) => <Link to="/notifications" {...props} />}
        >
          {t('page.notifications')}
        </Button>
      }
    >
      <Answer query={query} shape="facts">
        {(settings) =>
          settings.sendsMail ? (
            <SettingsForm settings={settings} />
          ) : (
            <Empty icon="mail" title={t('notificationSettings.noMail')} text={t('notificationSettings.noMailText')} />
          )
        }
      </Answer>
    </Page>
  )
}

const nothingChosen: ChosenNotifications['mails'] = {}

function SettingsForm({ settings }: { readonly settings: NotificationSettingsView }) {
  const { t, language: shown } = useTranslation()
  const say = useSay()
  const [mails, setMails] = useState(nothingChosen)
  const [chosenLanguage, setLanguage] = useState<string>()
  const language = chosenLanguage ?? settings.language ?? shown
  const isChanged = settings.mails.some(({ kind, mail }) => (mails[kind] ?? mail) !== mail)
  const offered = settings.mails.filter(({ choices }) => choices.length > 1)
  const save = useSaveNotificationSettings(() => {
    setMails(nothingChosen)
    setLanguage(undefined)
    say(t('notificationSettings.saved'))
  })
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault()
    save.mutate({ mails, language })
  }
  return (
    <Paper withBorder p="md" maw={640}>
      <form onSubmit={onSubmit}>
        <Stack gap="sm">
          {offered.map(({ kind, mail, choices }) => (
            <NativeSelect
              key={kind}
              label={t(kindTexts[kind])}
              value={mails[kind] ?? mail}
              onChange={({ currentTarget: { value } }) => {
                const chosen = choices.find((time) => time === value)
                if (chosen !== undefined) setMails({ ...mails, [kind]: chosen })
              }}
              data={choices.map((time) => ({ value: time, label: t(timeTexts[time]) }))}
            />
          ))}
          <NativeSelect
            label={t('notificationSettings.language')}
            value={language}
            onChange={({ currentTarget: { value } }) => setLanguage(value)}
            data={Object.entries(languages).map(([value, label]) => ({ value, label }))}
          />
          <Text size="sm" c="dimmed">
            {t('notificationSettings.note')}
          </Text>
          {save.error !== null && <Failure error={save.error} />}
          <Group>
            <Button
              type="submit"
              disabled={!isChanged && language === (settings.language ?? shown)}
              loading={save.isPending}
            >
              {t('profile.save')}
            </Button>
          </Group>
        </Stack>
      </form>
    </Paper>
  )
}

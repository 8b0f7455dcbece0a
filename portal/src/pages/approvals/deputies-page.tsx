import { ActionIcon, Alert, Button, Group, Paper, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { DelegationList, DelegationPeriod } from '#features/portal/contract/main-requests.ts'
import { addDelegation, delegationsQuery, endDelegation } from '../../api/approvals.ts'
import { usePerson } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { Answer } from '../../components/answer.tsx'
import { useDraft } from '../../components/draft.ts'
import { fieldValue } from '../../components/field-time.ts'
import { Icon } from '../../components/icon.tsx'
import { useSay } from '../../components/notices.tsx'
import { Page } from '../../components/page.tsx'
import { Names, namesIn, useNames } from '../../components/person-names.tsx'
import { PersonPicker } from '../../components/person-picker.tsx'
import { Failure, useFailureText } from '../../components/states.tsx'
import { type PeriodDraft, periodProblem } from './period.ts'

const week = 7 * 24 * 60 * 60_000

/** The user's deputies during an absence. */
export function DeputiesPage() {
  const { t } = useTranslation()
  const query = useQuery(delegationsQuery)
  return (
    <Page
      title={t('deputies.title')}
      intro={t('deputies.intro')}
      actions={
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/approvals" {...props} />}
          leftSection={<Icon name="back" size={18} />}
        >
          {t('page.approvals')}
        </Button>
      }
    >
      <Answer query={query}>
        {(known) => (
          <Names of={[known]}>
            <Deputies {...known} />
          </Names>
        )}
      </Answer>
      <NewPeriod />
    </Page>
  )
}

function Deputies({ delegations, represents }: DelegationList) {
  const { t } = useTranslation()
  const nameOf = useNames()
  return (
    <Stack>
      {represents.length > 0 && (
        <Alert variant="outline" color="gray" icon={<Icon name="people" />}>
          {t('deputies.represents', { who: represents.map((login) => nameOf(login)).join(', ') })}
        </Alert>
      )}
      {delegations.length === 0 && <Text c="dimmed">{t('deputies.none')}</Text>}
      {delegations.map((period) => (
        <Period key={period.id} period={period} />
      ))}
    </Stack>
  )
}

function Period({ period }: { readonly period: DelegationPeriod }) {
  const { t, dateTime } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const failureText = useFailureText()
  const deputy = useNames()(period.deputy)
  const end = useMutation({
    mutationFn: () => endDelegation(period.id),
    onError: (error) => say(failureText(error), 'bad'),
    onSettled: () => client.invalidateQueries({ queryKey: delegationsQuery.queryKey }),
  })
  return (
    <Group className="card" justify="space-between" wrap="nowrap">
      <div>
        <Text fw={600}>{isolated(deputy)}</Text>
        <Text size="sm" c="dimmed">
          {t('deputies.period', { starts: dateTime(period.starts), ends: dateTime(period.ends) })}
        </Text>
      </div>
      <ActionIcon
        variant="subtle"
        color="gray"
        loading={end.isPending}
        aria-label={t('deputies.end', { deputy })}
        onClick={() => end.mutate()}
      >
        <Icon name="trash" size={18} />
      </ActionIcon>
    </Group>
  )
}

function NewPeriod() {
  const { t } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const [draft, setDraft, clearDraft] = useDraft<PeriodDraft>(usePerson().login, 'deputy', emptyPeriod())
  const [isChecked, setChecked] = useState(false)
  const problem = isChecked ? periodProblem(draft) : undefined
  const add = useMutation({
    mutationFn: ({ deputy, starts, ends }: PeriodDraft) =>
      addDelegation({ deputy, starts: new Date(starts).toISOString(), ends: new Date(ends).toISOString() }),
    onSuccess: async ({ deputy }) => {
      setDraft(emptyPeriod())
      clearDraft()
      setChecked(false)
      // The list names the new deputy.
      await client.invalidateQueries({ queryKey: delegationsQuery.queryKey })
      const known = client.getQueryData(delegationsQuery.queryKey)
      say(t('deputies.added', { deputy: namesIn(known === undefined ? [] : [known])(deputy) }))
    },
  })
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    setChecked(true)
    if (periodProblem(draft) === undefined) add.mutate(draft)
  }
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="new-deputy">
      <Title order={2} size="h5" id="new-deputy" mb="xs">
        {t('deputies.new')}
      </Title>
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          <PersonPicker
            label={t('deputies.who')}
            single
            value={draft.deputy === '' ? [] : [draft.deputy]}
            onChange={([deputy = '']) => setDraft({ ...draft, deputy })}
            error={problem === 'deputies.whoRequired' ? t(problem) : undefined}
          />
          <Group grow align="start">
            <TextInput
              type="datetime-local"
              label={t('deputies.starts')}
              value={draft.starts}
              onChange={(event) => setDraft({ ...draft, starts: event.currentTarget.value })}
              error={problem === 'deputies.timeRequired' ? t(problem) : undefined}
            />
            <TextInput
              type="datetime-local"
              label={t('deputies.ends')}
              value={draft.ends}
              onChange={(event) => setDraft({ ...draft, ends: event.currentTarget.value })}
              error={problem === 'deputies.endsBeforeStart' ? t(problem) : undefined}
            />
          </Group>
          {add.error !== null && <Failure error={add.error} />}
          <Button type="submit" w="fit-content" loading={add.isPending}>
            {t('deputies.add')}
          </Button>
        </Stack>
      </form>
    </Paper>
  )
}

const emptyPeriod = (): PeriodDraft => ({
  deputy: '',
  starts: fieldValue(new Date()),
  ends: fieldValue(new Date(Date.now() + week)),
})

import { Button, Group, Paper, Stack, Title } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { UserData } from '#features/portal/contract/main.ts'
import { saveProfile, userQuery } from '../../api/main.ts'
import { useConfig, usePerson } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { useDraft } from '../../components/draft.ts'
import { Groups } from '../../components/groups.tsx'
import { useSay } from '../../components/notices.tsx'
import { Page } from '../../components/page.tsx'
import { Failure } from '../../components/states.tsx'
import { ProfileField } from './profile-field.tsx'
import { changeOf, type FieldValues, fieldProblem, fieldsOf, valuesOf } from './profile-form.ts'

/** The user's profile, with the fields that the user may change. On wide screens the groups are beside them. */
export function ProfilePage() {
  const { t } = useTranslation()
  const { groupsAreJson } = useConfig()
  const user = useQuery(userQuery)
  return (
    <Page title={t('page.profile')}>
      <Answer query={user} shape="facts">
        {(data) => (
          // A table of groups needs the whole width.
          <div className={groupsAreJson ? 'details details-below' : 'details'}>
            <ProfileForm user={data} />
            <section className="details-facts" aria-labelledby="groups">
              <Title order={2} size="h4" id="groups" mb="sm">
                {t('profile.groups')}
              </Title>
              <Groups groups={data.groups} size="lg" />
            </section>
          </div>
        )}
      </Answer>
    </Page>
  )
}

const noDraft: FieldValues = {}

function ProfileForm({ user }: { readonly user: UserData }) {
  const { t } = useTranslation()
  const config = useConfig()
  const client = useQueryClient()
  const say = useSay()
  const fields = fieldsOf(config)
  const before = valuesOf(user)
  const [draft, setDraft, clearDraft] = useDraft(usePerson().login, 'profile', noDraft)
  const [isChecked, setChecked] = useState(false)
  const now = { ...before, ...draft }
  const change = changeOf(fields, before, now)
  const isChanged = Object.keys(change).length > 0
  const problem = (field: (typeof fields)[number]): string | undefined => {
    const found = field.readOnly ? undefined : fieldProblem(field, now[field.name] ?? '')
    return found === undefined ? undefined : t(found.key, found.values)
  }
  const reset = (): void => {
    setDraft(noDraft)
    clearDraft()
    setChecked(false)
  }
  const save = useMutation({
    mutationFn: saveProfile,
    onSuccess: (saved) => {
      const pending = fields.some(({ name }) => change[name] !== undefined && valuesOf(saved)[name] !== now[name])
      client.setQueryData(userQuery.queryKey, saved)
      reset()
      say(t(pending ? 'profile.savedLater' : 'profile.saved'))
    },
  })
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    setChecked(true)
    if (isChanged && fields.every((field) => problem(field) === undefined)) save.mutate(change)
  }
  return (
    <Paper withBorder p="md" maw={640}>
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          {fields.map((field) => (
            <ProfileField
              key={field.name}
              field={field}
              value={now[field.name] ?? ''}
              onChange={(value) => setDraft({ ...draft, [field.name]: value })}
              error={isChecked || draft[field.name] !== undefined ? problem(field) : undefined}
            />
          ))}
          {save.error !== null && <Failure error={save.error} />}
          {fields.some(({ readOnly }) => !readOnly) && (
            <Group>
              <Button type="submit" disabled={!isChanged} loading={save.isPending}>
                {t('profile.save')}
              </Button>
              {isChanged && (
                <Button variant="default" onClick={reset}>
                  {t('profile.discard')}
                </Button>
              )}
            </Group>
          )}
        </Stack>
      </form>
    </Paper>
  )
}

import { Button, Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import type { OwnAccess, TimedAccess } from '#features/portal/contract/main-access.ts'
import { accessQuery } from '../../api/access.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { useLive } from '../../components/live.ts'
import { Page } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import { EndedRow, GroupRow, TimedRow } from './access-rows.tsx'
import { isChanging } from './access-states.ts'
import { GiveBackDialog } from './give-back-dialog.tsx'

const changingMillis = 3_000

/** What the user has and had: since when, until when, and through which request. */
export function AccessPage() {
  const { t } = useTranslation()
  const every = useLive(changingMillis)
  const access = useQuery({
    ...accessQuery,
    // A request may have ended since another page read it.
    refetchOnMount: 'always',
    refetchInterval: ({ state }) => (state.data !== undefined && isChanging(state.data) ? every : false),
  })
  return (
    <Page title={t('page.access')} intro={t('access.intro')}>
      <Answer query={access}>{(data) => <Lists own={data} />}</Answer>
    </Page>
  )
}

function Lists({ own: { access, groups, ended } }: { readonly own: OwnAccess }) {
  const { t } = useTranslation()
  const [returning, setReturning] = useState<TimedAccess>()
  if (access.length + groups.length + ended.length === 0) {
    return (
      <Empty icon="card" title={t('access.none')} text={t('access.noneText')}>
        <Button renderRoot={(props) => <Link to="/request" {...props} />}>{t('page.request')}</Button>
      </Empty>
    )
  }
  return (
    <>
      <Section id="timed" title={t('access.timed')} isEmpty={access.length === 0}>
        {access.map((one) => (
          <TimedRow key={one.id} access={one} onGiveBack={() => setReturning(one)} />
        ))}
      </Section>
      <Section id="groups" title={t('access.groups')} isEmpty={groups.length === 0}>
        {groups.map((group) => (
          <GroupRow key={group.name} group={group} />
        ))}
      </Section>
      <Section id="ended" title={t('access.ended')} isEmpty={ended.length === 0}>
        {ended.map((one) => (
          <EndedRow key={one.id} access={one} />
        ))}
      </Section>
      {returning !== undefined && <GiveBackDialog access={returning} onClose={() => setReturning(undefined)} />}
    </>
  )
}

interface SectionProps {
  readonly id: string
  readonly title: string
  readonly isEmpty: boolean
  readonly children: ReactNode
}

function Section({ id, title, isEmpty, children }: SectionProps) {
  if (isEmpty) return null
  return (
    <section aria-labelledby={id}>
      <Title order={2} size="h4" id={id} mb="sm">
        {title}
      </Title>
      <Stack component="ul" gap="xs" className="bare-list">
        {children}
      </Stack>
    </section>
  )
}

import { Button, Group, Stack, Tabs, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import type { ConsolePersonDetails } from '#features/portal/contract/console-people.ts'
import { deactivate, personQuery } from '../../../api/people.ts'
import { useConfig } from '../../../app/config.tsx'
import { useTranslation } from '../../../app/i18n.tsx'
import type { MessageKey } from '../../../app/messages.ts'
import { Answer } from '../../../components/answer.tsx'
import { Icon } from '../../../components/icon.tsx'
import { ReasonDialog } from '../../../components/reason-dialog.tsx'
import { ConsolePage } from '../console-page.tsx'
import { EntryFacts } from '../entry-facts.tsx'
import { PersonFactors } from './person-factors.tsx'
import { PersonAudit, PersonGroups, PersonRuns } from './person-lists.tsx'
import { nameOf, type PersonPart } from './person-part.ts'
import { PersonSessions } from './person-sessions.tsx'
import { PersonState } from './person-state.tsx'
import { PersonSystems } from './person-systems.tsx'

const route = getRouteApi('/console/people/$id')

const tabs = {
  entry: { title: 'users.entry', show: ({ person }) => <EntryFacts {...person} /> },
  groups: { title: 'page.groups', show: ({ person }) => <PersonGroups id={person.id} /> },
  systems: { title: 'systems.title', show: ({ person }) => <PersonSystems id={person.id} /> },
  sessions: { title: 'security.sessions', show: (part) => <PersonSessions {...part} /> },
  factors: { title: 'security.factors', show: (part) => <PersonFactors {...part} /> },
  runs: { title: 'page.runs', show: ({ person }) => <PersonRuns id={person.id} /> },
  audit: { title: 'audit.title', show: ({ person }) => <PersonAudit login={person.login} /> },
} satisfies Record<string, { readonly title: MessageKey; readonly show: (part: PersonPart) => ReactNode }>

/** One user: the entry, and what the gateway knows about it. */
export function PersonPage() {
  const { t } = useTranslation()
  const { operator } = useConfig()
  const { id } = route.useParams()
  const person = useQuery(personQuery(id))
  const mayChange = operator && person.data !== undefined && !person.data.own
  return (
    <ConsolePage
      title={person.data === undefined ? t('page.users') : nameOf(person.data)}
      actions={mayChange && person.data.canDeactivate ? <Deactivate person={person.data} /> : undefined}
    >
      <Answer query={person}>{(known) => <Person person={known} mayChange={mayChange} />}</Answer>
    </ConsolePage>
  )
}

function Person({ person, mayChange }: PersonPart) {
  const { t } = useTranslation()
  const { operator } = useConfig()
  const { tab } = route.useSearch()
  const navigate = route.useNavigate()
  const shown = Object.keys(tabs).find((name) => name === tab) ?? 'entry'
  return (
    <Stack>
      <Group gap="md">
        <Text>{person.login}</Text>
        <PersonState person={person} />
      </Group>
      {operator && person.own && <Text c="dimmed">{t('users.own')}</Text>}
      <Tabs
        value={shown}
        onChange={(next) => void navigate({ search: next === null || next === 'entry' ? {} : { tab: next } })}
        keepMounted={false}
      >
        <Tabs.List aria-label={t('users.tabs')}>
          {Object.entries(tabs).map(([name, { title }]) => (
            <Tabs.Tab key={name} value={name}>
              {t(title)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {Object.entries(tabs).map(([name, { show }]) => (
          <Tabs.Panel key={name} value={name} pt="md">
            {show({ person, mayChange })}
          </Tabs.Panel>
        ))}
      </Tabs>
    </Stack>
  )
}

function Deactivate({ person }: { readonly person: ConsolePersonDetails }) {
  const { t } = useTranslation()
  const [isOpen, setOpen] = useState(false)
  const name = nameOf(person)
  return (
    <>
      <Button variant="default" leftSection={<Icon name="close" size={18} />} onClick={() => setOpen(true)}>
        {t('users.deactivate')}
      </Button>
      {isOpen && (
        <ReasonDialog
          title={t('users.deactivate')}
          text={t('users.deactivateText', { name })}
          isHarmful
          send={(reason) => deactivate(person.id, reason)}
          done={() => t('users.deactivateStarted', { name })}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  )
}

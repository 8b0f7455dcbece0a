import { Code, Modal, Stack, Text, UnstyledButton } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import type { AuditEntryView } from '#features/portal/contract/console-audit.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { consolePath } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { type Fact, Facts } from '../../../components/facts.tsx'
import { type NameOf, PersonName, useNames } from '../../../components/person-names.tsx'
import { Preline } from '../../../components/preline.tsx'
import { ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'
import { FilterForm, filled, shownTime } from '../filter-form.tsx'
import { changeText } from './change-text.ts'
import { reasonText } from './reason-text.ts'
import { Verification } from './verification.tsx'

const route = getRouteApi('/console/audit')

/** Every change and decision, and whether the records are as they were written. */
export function AuditPage() {
  const { t } = useTranslation()
  const { from, until, ...texts } = route.useSearch()
  const navigate = route.useNavigate()
  const [opened, setOpened] = useState<Opened>()
  const filter = { ...texts, from: shownTime(from), until: shownTime(until) }
  return (
    <ConsolePage title={t('audit.title')} intro={t('audit.intro')}>
      <Verification />
      <ConsoleList<AuditEntryView>
        label={t('audit.title')}
        path={consolePath(consoleRoutes.listAudit)}
        filter={filter}
        empty={t('audit.none')}
        columns={[
          {
            key: 'time',
            name: t('dashboard.time'),
            width: 10,
            cell: (entry) => <OpenEntry entry={entry} onOpen={setOpened} />,
          },
          {
            key: 'requestor',
            name: t('audit.requestor'),
            width: 9,
            cell: ({ requestor }) => <PersonName login={requestor} />,
          },
          {
            key: 'subject',
            name: t('audit.subject'),
            width: 11,
            cell: ({ subject }) => <PersonName login={subject} />,
          },
          { key: 'change', name: t('audit.change'), width: 16, cell: (entry) => isolated(changeText(entry, t)) },
          { key: 'target', name: t('audit.target'), width: 8, cell: ({ target }) => isolated(target) },
          { key: 'workflow', name: t('audit.workflow'), width: 9, cell: ({ workflow }) => isolated(workflow.name) },
        ]}
      >
        <FilterForm
          fields={[
            { name: 'subject', label: t('audit.subject') },
            { name: 'requestor', label: t('audit.requestor') },
            { name: 'target', label: t('audit.target') },
            { name: 'workflow', label: t('audit.run') },
            { name: 'requestId', label: t('dashboard.requestId') },
            { name: 'from', label: t('audit.from'), kind: 'time' },
            { name: 'until', label: t('audit.until'), kind: 'time' },
          ]}
          values={filter}
          onApply={(next) => void navigate({ search: filled(next) })}
        />
      </ConsoleList>
      <Stack gap={4}>
        <Text size="sm" c="dimmed">
          {t('audit.exact')} {t('audit.names')} {t('audit.exportHint')}
        </Text>
        <Code block tabIndex={0}>
          gatehouse audit export --data DATA-FOLDER &gt; audit.jsonl
        </Code>
      </Stack>
      {opened !== undefined && <EntryDetails {...opened} onClose={() => setOpened(undefined)} />}
    </ConsolePage>
  )
}

/** An entry, and how its row names users. */
interface Opened {
  readonly entry: AuditEntryView
  readonly nameOf: NameOf
}

function OpenEntry({ entry, onOpen }: { readonly entry: AuditEntryView; readonly onOpen: (opened: Opened) => void }) {
  const { exactTime } = useTranslation()
  const nameOf = useNames()
  return (
    <UnstyledButton className="table-open" onClick={() => onOpen({ entry, nameOf })}>
      {exactTime(entry.time)}
    </UnstyledButton>
  )
}

function EntryDetails({ entry, nameOf, onClose }: Opened & { readonly onClose: () => void }) {
  const { t, exactTime } = useTranslation()
  const details: readonly (readonly [string, string | undefined])[] = [
    [t('dashboard.time'), exactTime(entry.time)],
    [t('audit.requestor'), nameOf(entry.requestor)],
    [t('audit.caller'), entry.caller && nameOf(entry.caller)],
    [t('audit.subject'), nameOf(entry.subject)],
    [t('audit.target'), entry.target],
    [t('audit.workflow'), entry.workflow.name],
    [t('audit.run'), entry.workflow.id],
    [t('audit.approval'), entry.approval],
    [t('dashboard.requestId'), entry.requestId],
    [t('audit.entry'), entry.id],
  ]
  const long: readonly (readonly [string, string | undefined])[] = [
    [t('audit.value'), entry.value],
    [t('dashboard.reason'), entry.reason && reasonText(entry.reason)],
  ]
  const facts: readonly Fact[] = [
    ...details.flatMap(([name, value]) => (value === undefined || value === '' ? [] : [{ name, value }])),
    ...long.flatMap(([name, value]) => (value === undefined ? [] : [{ name, value: <Preline text={value} /> }])),
  ]
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={isolated(changeText(entry, t))}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <Facts facts={facts} />
    </Modal>
  )
}

import { Button, Group, Text } from '@mantine/core'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import type { AdminAction, AdminRun } from '#features/portal/contract/main-admin.ts'
import { useConfig } from '../app/config.tsx'
import { useTranslation } from '../app/i18n.tsx'
import type { MessageKey } from '../app/messages.ts'
import { part } from '../app/part.ts'
import { Icon, type IconName } from './icon.tsx'
import { useNames } from './person-names.tsx'

/** Loaded when it is first opened, since few visits need it. */
const InterventionDialog = lazy(
  part(async () => ({ default: (await import('./intervention-dialog.tsx')).InterventionDialog })),
)

interface RunAction {
  readonly action: AdminAction
  readonly label: MessageKey
  readonly icon: IconName
  /** The states of runs that it is for. */
  readonly states: readonly AdminRun['state'][]
}

const actions: readonly RunAction[] = [
  { action: 'retry', label: 'dashboard.retry', icon: 'refresh', states: ['incident'] },
  { action: 'skip', label: 'dashboard.skip', icon: 'skip', states: ['incident'] },
  { action: 'cancel', label: 'dashboard.cancel', icon: 'close', states: ['ready', 'running', 'waiting', 'incident'] },
]

type Ask = (run: AdminRun, action: AdminAction) => void

/** The dialog is a part of the page, so that it stays open when its run leaves a list. */
export function useIntervention(): { readonly ask: Ask; readonly dialog: ReactNode } {
  const [asked, setAsked] = useState<{ readonly run: AdminRun; readonly action: AdminAction }>()
  return {
    ask: (run, action) => setAsked({ run, action }),
    dialog: asked !== undefined && (
      <Suspense>
        <InterventionDialog {...asked} onClose={() => setAsked(undefined)} />
      </Suspense>
    ),
  }
}

/** What operators can do with a run in its present state, and why not. Others see nothing. */
export function RunActions({ run, onAsk }: { readonly run: AdminRun; readonly onAsk: Ask }) {
  const { t } = useTranslation()
  const { operator } = useConfig()
  const { name, state, cancel } = run
  const subject = useNames()(run.subject)
  const possible = operator && cancel === undefined ? actions.filter(({ states }) => states.includes(state)) : []
  if (possible.length === 0) return null
  if (run.involvesCaller) return <Hint text={t('dashboard.ownRun')} />
  const maySkip = run.incident?.maySkip
  const offered = possible.filter(({ action }) => action !== 'skip' || maySkip === true)
  return (
    <Group gap="xs">
      {maySkip === false && <Hint text={t('dashboard.noSkip')} />}
      {offered.map(({ action, label, icon }) => (
        <Button
          key={action}
          size="xs"
          variant={action === 'retry' ? 'filled' : 'default'}
          leftSection={<Icon name={icon} size={16} />}
          aria-label={`${t(label)}: ${t('dashboard.incidentOf', { name, subject })}`}
          onClick={() => onAsk(run, action)}
        >
          {t(label)}
        </Button>
      ))}
    </Group>
  )
}

const Hint = ({ text }: { readonly text: string }) => (
  <Text size="sm" c="dimmed">
    {text}
  </Text>
)

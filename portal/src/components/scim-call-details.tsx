import { Modal } from '@mantine/core'
import type { ScimCall } from '#features/scim/contract/journal.ts'
import { useTranslation } from '../app/i18n.tsx'
import { isolated } from '../app/isolated.ts'
import { type Fact, Facts } from './facts.tsx'
import './scim-call.css'

interface CallDetailsProps {
  readonly call: ScimCall
  readonly onClose: () => void
}

/** Everything that the journal has about one call. */
export function CallDetails({ call, onClose }: CallDetailsProps) {
  const { t, exactTime, number } = useTranslation()
  const { operations } = call
  const details: readonly (readonly [string, string | undefined])[] = [
    [t('dashboard.time'), exactTime(call.time)],
    [t('dashboard.gateway'), call.gateway],
    [t('dashboard.client'), call.caller],
    [t('dashboard.status'), String(call.status)],
    [t('dashboard.dryRun'), call.dryRun === undefined ? undefined : t('dashboard.dryRunDone')],
    [t('dashboard.error'), errorOf(call)],
    [t('dashboard.millis'), number(call.millis)],
    [t('dashboard.requestId'), call.requestId],
    [t('dashboard.workflowRuns'), call.workflows.join(', ')],
  ]
  const facts: readonly Fact[] = [
    ...details.flatMap(([name, value]) => (value === undefined || value === '' ? [] : [{ name, value }])),
    ...(operations === undefined
      ? []
      : [
          {
            name: t('dashboard.change'),
            value: <pre className="journal-change">{isolated(JSON.stringify(operations, null, 2))}</pre>,
          },
        ]),
  ]
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={isolated(`${call.method} ${call.path}`)}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <Facts facts={facts} />
    </Modal>
  )
}

/** Why a call failed; empty if it did not. */
export const errorOf = ({ error, scimType }: ScimCall): string =>
  [scimType, error].filter((part) => part !== undefined).join(': ')

import { Text } from '@mantine/core'
import type { ConsoleReconciliation } from '#features/portal/contract/console-reconciliations.ts'
import { differenceKinds } from '#features/reconciliation/contract/plan-words.ts'
import { useTranslation } from '../app/i18n.tsx'
import { kindTexts } from './row-texts.ts'
import { Status } from './status.tsx'

/** What the last comparison found, and when; never more than that it compared. */
export function DriftText({ drift, differsSince }: Pick<ConsoleReconciliation, 'drift' | 'differsSince'>) {
  const { t, number, dateTime, relative } = useTranslation()
  if (drift === undefined) return <Status tone="plain" icon="dot" text={t('drift.never')} />
  const found = differenceKinds.flatMap((kind) =>
    drift[kind] === 0 ? [] : [`${t(kindTexts[kind])} ${number(drift[kind])}`],
  )
  const differs = found.length > 0
  return (
    <>
      <Status
        tone={differs ? 'waiting' : 'good'}
        icon={differs ? 'warning' : 'check'}
        text={t(differs ? 'drift.differs' : 'drift.agrees')}
      />
      <Text size="sm">{[`${t('drift.agree')} ${number(drift.agree)}`, ...found].join(' · ')}</Text>
      <Text size="sm" c="dimmed" title={dateTime(drift.at)}>
        {t('drift.compared', { when: relative(drift.at) })}
        {differsSince !== undefined && ` · ${t('drift.since', { when: dateTime(differsSince) })}`}
      </Text>
    </>
  )
}

import { Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ConsoleReconciliation, DriftReport } from '#features/portal/contract/console-reconciliations.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { differenceKinds } from '#features/reconciliation/contract/plan-words.ts'
import { consolePath, listQuery } from '../../api/console.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { DriftText } from '../../components/drift-text.tsx'
import { useLive } from '../../components/live.ts'
import { Failure } from '../../components/states.tsx'

const path = consolePath(consoleRoutes.listReconciliations)
const mostShown = 6

/** How far systems agree: those that differ longest first. Nothing if none are compared. */
export function Drift() {
  const { t } = useTranslation()
  const list = useInfiniteQuery({
    ...listQuery<ConsoleReconciliation>(path, path, {}),
    refetchInterval: useLive(60_000),
  })
  const rows = list.data?.pages.flatMap((page) => page.rows)
  if (rows === undefined) {
    return list.error === null ? null : <Failure error={list.error} onRetry={() => void list.refetch()} />
  }
  if (rows.length === 0) return null
  const shown = rows.toSorted((a, b) => rankOf(a).localeCompare(rankOf(b))).slice(0, mostShown)
  return (
    <Stack component="section" aria-label={t('page.reconciliations')} gap="sm">
      <Title order={2} size="h4">
        {t('page.reconciliations')}
      </Title>
      {shown.map((row) => (
        <SystemsDrift key={row.name} row={row} />
      ))}
      {(rows.length > shown.length || list.hasNextPage) && (
        <Link className="text-link" to="/console/reconciliations">
          {t('drift.showAll')}
        </Link>
      )}
    </Stack>
  )
}

/** Times begin with digits, which are before letters. */
const rankOf = ({ differsSince, drift }: ConsoleReconciliation): string =>
  differsSince ?? (drift === undefined ? 'not compared' : 'that agree')

function SystemsDrift({ row }: { readonly row: ConsoleReconciliation }) {
  const { name, source, target, trend } = row
  return (
    <Paper withBorder p="md" component="article" aria-label={name}>
      <Group justify="space-between" align="start" gap="sm">
        <div className="drift-name">
          <Link to="/console/reconciliations/$name" params={{ name }} className="text-link incident-link">
            {isolated(name)}
          </Link>
          <Text size="sm" c="dimmed">{`${isolated(source)} → ${isolated(target)}`}</Text>
        </div>
        <div className="incident-text">
          <DriftText {...row} />
        </div>
        {trend.length > 1 && <Trend reports={trend} />}
      </Group>
    </Paper>
  )
}

const differencesOf = (report: DriftReport): number => differenceKinds.reduce((sum, kind) => sum + report[kind], 0)

/** A bar for each comparison, as high as its differences. */
function Trend({ reports }: { readonly reports: readonly DriftReport[] }) {
  const { t, number } = useTranslation()
  const counts = reports.map(differencesOf)
  const most = Math.max(1, ...counts)
  const text = t('drift.latest', { numbers: counts.map(number).join(', ') })
  return (
    <div className="drift-trend" role="img" aria-label={text} title={text}>
      {counts.map((count, i) => (
        <span key={reports[i]?.plan} style={{ height: `${(100 * count) / most}%` }} />
      ))}
    </div>
  )
}

import { Paper, SimpleGrid, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { AdminRun, ScimCall } from '#contract/main-admin.ts'
import { recentCallsQuery, recentRunsQuery, type Sample } from '../../api/admin.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { localeOf } from '../../app/language.ts'
import { Answer } from '../../components/answer.tsx'
import { LazyBars } from '../../components/lazy-bars.tsx'
import { bucketsOf, countsBy } from './buckets.ts'
import { callOutcome, callOutcomes, callSeries, runOutcome, runOutcomes, runSeries } from './outcomes.ts'
import { type Period, periods } from './periods.ts'

const maxNames = 8

/** What happened lately: requests, and calls of SCIM clients. */
export function Pictures({ period }: { readonly period: Period }) {
  const runs = useQuery(recentRunsQuery(period, periods[period].millis))
  const calls = useQuery(recentCallsQuery(period))
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }}>
      <Answer query={runs} rows={1}>
        {(sample) => <Runs sample={sample} period={period} />}
      </Answer>
      <Answer query={calls} rows={1}>
        {(sample) => <Calls sample={sample} period={period} />}
      </Answer>
    </SimpleGrid>
  )
}

function Runs({ sample, period }: { readonly sample: Sample<AdminRun>; readonly period: Period }) {
  const { t } = useTranslation()
  const when = usePartLabel(period)
  const series = runSeries.map((one) => ({ ...one, label: t(one.label) }))
  const buckets = bucketsOf(
    sample.items,
    runOutcomes,
    ({ created, state }) => ({ at: created, kind: runOutcome(state) }),
    { now: Date.now(), ...periods[period] },
  )
  const names = countsBy(sample.items, runOutcomes, ({ name, state }) => ({ name, kind: runOutcome(state) }), maxNames)
  return (
    <>
      <Picture title={t('dashboard.runs')} count={sample.items.length} whole={sample.whole}>
        <LazyBars
          label={t('dashboard.runs')}
          series={series}
          data={buckets.map(({ from, counts }) => ({ label: when(from), ...counts }))}
        />
      </Picture>
      <Picture title={t('dashboard.runsByWorkflow')} count={sample.items.length} whole={sample.whole}>
        <LazyBars
          label={t('dashboard.runsByWorkflow')}
          series={series}
          data={names.map(({ name, counts }) => ({ label: name, ...counts }))}
          lying
        />
      </Picture>
    </>
  )
}

function Calls({ sample, period }: { readonly sample: Sample<ScimCall>; readonly period: Period }) {
  const { t } = useTranslation()
  const when = usePartLabel(period)
  const series = callSeries.map((one) => ({ ...one, label: t(one.label) }))
  const buckets = bucketsOf(sample.items, callOutcomes, (call) => ({ at: call.time, kind: callOutcome(call) }), {
    now: Date.now(),
    ...periods[period],
  })
  const callers = countsBy(
    sample.items,
    callOutcomes,
    (call) => ({ name: call.caller, kind: callOutcome(call) }),
    maxNames,
  )
  return (
    <>
      <Picture title={t('dashboard.calls')} count={sample.items.length} whole={sample.whole}>
        <LazyBars
          label={t('dashboard.calls')}
          series={series}
          data={buckets.map(({ from, counts }) => ({ label: when(from), ...counts }))}
        />
      </Picture>
      <Picture title={t('dashboard.callsByClient')} count={sample.items.length} whole={sample.whole}>
        <LazyBars
          label={t('dashboard.callsByClient')}
          series={series}
          data={callers.map(({ name, counts }) => ({ label: name, ...counts }))}
          lying
        />
      </Picture>
    </>
  )
}

interface PictureProps {
  readonly title: string
  readonly count: number
  /** Nothing of the time was left out. */
  readonly whole: boolean
  readonly children: ReactNode
}

function Picture({ title, count, whole, children }: PictureProps) {
  const { t, tn } = useTranslation()
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Title order={3} size="h5">
        {title}
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        {tn('dashboard.count', count)}
        {!whole && ` ${t('dashboard.latestOnly')}`}
      </Text>
      {count === 0 ? <Text c="dimmed">{t('dashboard.nothing')}</Text> : children}
    </Paper>
  )
}

/** When a part of the period begins: by the hour for days, by the day for more. */
function usePartLabel(period: Period): (from: number) => string {
  const { language } = useTranslation()
  const format = new Intl.DateTimeFormat(
    localeOf(language, navigator.languages),
    period === '30d' ? { day: 'numeric', month: 'short' } : { weekday: 'short', hour: '2-digit', minute: '2-digit' },
  )
  return (from) => format.format(from)
}

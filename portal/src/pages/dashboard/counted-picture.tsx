import { Link, useNavigate } from '@tanstack/react-router'
import { Fragment } from 'react'
import { useTranslation } from '../../app/i18n.tsx'
import { LazyBars } from '../../components/lazy-bars.tsx'
import type { RunFilter } from '../../components/run-filter.ts'
import { type Series, totals } from './outcomes.ts'
import { Picture } from './picture.tsx'

interface CountedPictureProps<K extends string> {
  readonly title: string
  readonly hint?: string
  readonly series: readonly Series<K>[]
  readonly points: readonly { readonly label: string; readonly counts: Readonly<Record<K, number>> }[]
  /** `over-time`: stacked. `side-by-side`: not stacked. `by-name`: horizontal bars. */
  readonly form: 'over-time' | 'side-by-side' | 'by-name'
  /** The runs behind a series: of one point, or of all. Without it, bars and totals lead nowhere. */
  readonly runsOf?: (series: K, point?: number) => RunFilter
}

/** A chart of the number of each kind, with the totals as text. */
export function CountedPicture<K extends string>(props: CountedPictureProps<K>) {
  const { title, hint, series, points, form, runsOf } = props
  const { t, number } = useTranslation()
  const navigate = useNavigate()
  const sums = totals(
    points.map(({ counts }) => counts),
    series,
  )
  const named = series.map((one) => ({ ...one, label: t(one.label) }))
  const seriesOf = (name: string): K | undefined => series.find((one) => one.name === name)?.name
  const drillDown = runsOf && {
    onBar: (name: string, point: number) => {
      const kind = seriesOf(name)
      if (kind !== undefined) void navigate({ to: '/console/runs', search: runsOf(kind, point) })
    },
    cell: (name: string, point: number, text: string) => {
      const kind = seriesOf(name)
      const shown = points[point]
      if (kind === undefined || shown === undefined || shown.counts[kind] === 0) return text
      const what = `${shown.label}, ${named.find((one) => one.name === kind)?.label ?? kind}`
      return (
        <Link
          className="text-link"
          to="/console/runs"
          search={runsOf(kind, point)}
          aria-label={`${text}. ${t('dashboard.showRuns', { what })}`}
        >
          {text}
        </Link>
      )
    },
  }
  const words = named.map(({ name, label }, i) => {
    const text = `${label} ${number(sums[i] ?? 0)}`
    return (
      <Fragment key={name}>
        {i > 0 && ' · '}
        {runsOf === undefined || sums[i] === 0 ? (
          text
        ) : (
          <Link className="text-link" to="/console/runs" search={runsOf(name)}>
            {text}
          </Link>
        )}
      </Fragment>
    )
  })
  return (
    <Picture
      title={title}
      text={form === 'by-name' ? undefined : words}
      {...(hint === undefined ? {} : { hint })}
      isEmpty={sums.every((sum) => sum === 0)}
    >
      <LazyBars
        label={title}
        series={named}
        data={points.map(({ label, counts }) => ({ label, ...counts }))}
        lying={form === 'by-name'}
        beside={form === 'side-by-side'}
        {...(drillDown === undefined ? {} : { drillDown })}
      />
    </Picture>
  )
}

import { useTranslation } from '../../app/i18n.tsx'
import { LazyBars } from '../../components/lazy-bars.tsx'
import { type Series, totals } from './outcomes.ts'
import { Picture } from './picture.tsx'

interface CountedPictureProps<K extends string> {
  readonly title: string
  readonly hint?: string
  readonly series: readonly Series<K>[]
  readonly points: readonly { readonly label: string; readonly counts: Readonly<Record<K, number>> }[]
  /** `over-time`: stacked. `side-by-side`: not stacked. `by-name`: horizontal bars. */
  readonly form: 'over-time' | 'side-by-side' | 'by-name'
}

/** A chart of the number of each kind, with the totals as text. */
export function CountedPicture<K extends string>({ title, hint, series, points, form }: CountedPictureProps<K>) {
  const { t, number } = useTranslation()
  const sums = totals(
    points.map(({ counts }) => counts),
    series,
  )
  const named = series.map((one) => ({ ...one, label: t(one.label) }))
  return (
    <Picture
      title={title}
      text={
        form === 'by-name' ? undefined : named.map(({ label }, i) => `${label} ${number(sums[i] ?? 0)}`).join(' · ')
      }
      {...(hint === undefined ? {} : { hint })}
      isEmpty={sums.every((sum) => sum === 0)}
    >
      <LazyBars
        label={title}
        series={named}
        data={points.map(({ label, counts }) => ({ label, ...counts }))}
        lying={form === 'by-name'}
        beside={form === 'side-by-side'}
      />
    </Picture>
  )
}

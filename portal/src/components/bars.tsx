import '@mantine/charts/styles.css'
import { BarChart } from '@mantine/charts'
import { getThemeColor, useMantineTheme, VisuallyHidden } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from '../app/i18n.tsx'
import { type BarPoint, highestValue, roundTicks, valueText } from './bar-point.ts'

export interface BarSeries {
  readonly name: string
  readonly label: string
  readonly color: string
}

export interface BarsProps {
  readonly label: string
  readonly data: readonly BarPoint[]
  readonly series: readonly BarSeries[]
  /** Horizontal bars, for labels that are words. */
  readonly lying?: boolean
  /** Side by side instead of stacked, for values that do not add up. */
  readonly beside?: boolean
  /** The format of values that are not whole numbers. */
  readonly format?: (value: number) => string
  /** Leads to what a bar counts. The numbers are then a table that anyone can open, since keys can't reach bars. */
  readonly drillDown?: {
    readonly onBar: (series: string, point: number) => void
    /** A number of the table, which may be a link. */
    readonly cell: (series: string, point: number, text: string) => ReactNode
  }
}

const lyingHeight = (bars: number): number => 60 + bars * 42
/** The most rows for a screen reader. */
const maxTextRows = 60

/** A bar chart, with a table of its numbers, for screen readers if nothing else needs it. Loaded on first use. */
export function Bars({ label, data, series, lying = false, beside = false, format, drillDown }: BarsProps) {
  const { t, number } = useTranslation()
  const written = format ?? number
  const names = series.map(({ name }) => name)
  const ticks = [...roundTicks(highestValue(data, names, !beside), format === undefined)]
  const steps = {
    ticks,
    domain: [0, ticks.at(-1) ?? 1],
    // Every tick has a label and a grid line.
    interval: 0,
    ...(format === undefined ? { allowDecimals: false } : { width: 72 }),
  } as const
  const numbers = <Numbers label={label} data={data} series={series} drillDown={drillDown} write={written} />
  return (
    <figure className="bars" aria-label={label}>
      <div aria-hidden="true">
        {series.length > 1 && <Legend series={series} />}
        <BarChart
          h={lying ? lyingHeight(data.length) : 240}
          data={data.map((point) => ({ ...point }))}
          dataKey="label"
          type={beside ? 'default' : 'stacked'}
          orientation={lying ? 'vertical' : 'horizontal'}
          series={series.map((one) => ({ ...one }))}
          withTooltip
          tooltipAnimationDuration={0}
          // The axis that a pointer moves along: horizontal bars use another, which is not detected automatically.
          {...(lying ? { tooltipProps: { axisId: 'left' } } : {})}
          valueFormatter={written}
          gridAxis={lying ? 'y' : 'x'}
          {...(lying ? { yAxisProps: { width: 140 }, xAxisProps: steps } : { yAxisProps: steps })}
          // They would grow from zero again at every new answer and every rotation of a phone.
          barProps={({ name }) => ({
            isAnimationActive: false,
            maxBarSize: 48,
            ...(drillDown === undefined
              ? {}
              : { cursor: 'pointer', onClick: (_: unknown, point: number) => drillDown.onBar(name, point) }),
          })}
          // A gap of a fixed width leaves no room for many bars.
          barChartProps={{ accessibilityLayer: false, barGap: 0 }}
        />
      </div>
      {drillDown === undefined ? (
        <VisuallyHidden>{numbers}</VisuallyHidden>
      ) : (
        <details className="bars-numbers">
          <summary>{t('dashboard.details')}</summary>
          {numbers}
        </details>
      )}
    </figure>
  )
}

interface NumbersProps extends Pick<BarsProps, 'label' | 'data' | 'series'> {
  readonly drillDown: BarsProps['drillDown'] | undefined
  readonly write: (value: number) => string
}

function Numbers({ label, data, series, drillDown, write }: NumbersProps) {
  return (
    <table>
      <caption>{label}</caption>
      <thead>
        <tr>
          <th>{label}</th>
          {series.map((one) => (
            <th key={one.name}>{one.label}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {data.slice(0, maxTextRows).map((point, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: labels may be alike, such as an hour that clocks repeat
          <tr key={i}>
            <th>{point.label}</th>
            {series.map(({ name }) => (
              <td key={name}>
                {drillDown === undefined
                  ? valueText(point[name], write)
                  : drillDown.cell(name, i, valueText(point[name], write))}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Above the chart rather than in it, so that several lines of it cover nothing. */
function Legend({ series }: Pick<BarsProps, 'series'>) {
  const theme = useMantineTheme()
  return (
    <ul className="bars-legend">
      {series.map(({ name, label, color }) => (
        <li key={name}>
          <span className="bars-color" style={{ background: getThemeColor(color, theme) }} />
          {label}
        </li>
      ))}
    </ul>
  )
}

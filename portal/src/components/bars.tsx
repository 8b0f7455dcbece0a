import '@mantine/charts/styles.css'
import { BarChart } from '@mantine/charts'
import { VisuallyHidden } from '@mantine/core'
import { useReducedMotion } from '@mantine/hooks'
import { useTranslation } from '../app/i18n.tsx'

export interface BarSeries {
  readonly name: string
  readonly label: string
  readonly color: string
}

export interface BarsProps {
  readonly label: string
  readonly data: readonly Readonly<Record<string, string | number>>[]
  readonly series: readonly BarSeries[]
  /** Lying bars, for labels that are words. */
  readonly lying?: boolean
}

const lyingHeight = (bars: number): number => 120 + bars * 34
/** A screen reader gets as many as can be listened to. */
const maxTold = 60

/** A picture of numbers, which are told as a table to those who do not see it. Loaded when there is one to show. */
export function Bars({ label, data, series, lying = false }: BarsProps) {
  const { number } = useTranslation()
  const isStill = useReducedMotion()
  return (
    <figure className="bars" aria-label={label}>
      <div aria-hidden="true">
        <BarChart
          h={lying ? lyingHeight(data.length) : 280}
          data={data.map((point) => ({ ...point }))}
          dataKey="label"
          type="stacked"
          orientation={lying ? 'vertical' : 'horizontal'}
          series={series.map((one) => ({ ...one }))}
          withLegend={series.length > 1}
          withTooltip
          tooltipAnimationDuration={0}
          valueFormatter={number}
          gridAxis={lying ? 'y' : 'x'}
          {...(lying
            ? { yAxisProps: { width: 140 }, xAxisProps: { allowDecimals: false } }
            : { yAxisProps: { allowDecimals: false } })}
          barProps={{ isAnimationActive: isStill !== true, maxBarSize: 48 }}
          barChartProps={{ accessibilityLayer: false }}
        />
      </div>
      <VisuallyHidden>
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
            {data.slice(0, maxTold).map((point) => (
              <tr key={String(point['label'])}>
                <th>{point['label']}</th>
                {series.map((one) => (
                  <td key={one.name}>{number(Number(point[one.name] ?? 0))}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </VisuallyHidden>
    </figure>
  )
}

import '@mantine/charts/styles.css'
import { BarChart } from '@mantine/charts'
import { getThemeColor, useMantineTheme, VisuallyHidden } from '@mantine/core'
import { useTranslation } from '../app/i18n.tsx'
import { type BarPoint, valueText } from './bar-point.ts'

export interface BarSeries {
  readonly name: string
  readonly label: string
  readonly color: string
}

export interface BarsProps {
  readonly label: string
  readonly data: readonly BarPoint[]
  readonly series: readonly BarSeries[]
  /** Lying bars, for labels that are words. */
  readonly lying?: boolean
  /** Side by side instead of on top of each other, for what does not add up. */
  readonly beside?: boolean
  /** How a value is written, where it is not a whole number. */
  readonly format?: (value: number) => string
}

const lyingHeight = (bars: number): number => 60 + bars * 42
/** A screen reader gets as many as can be listened to. */
const maxTold = 60

/** A picture of numbers, which are told as a table to those who do not see it. Loaded when there is one to show. */
export function Bars({ label, data, series, lying = false, beside = false, format }: BarsProps) {
  const { number } = useTranslation()
  const written = format ?? number
  const steps = format === undefined ? { allowDecimals: false } : { width: 72 }
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
          // The axis that a pointer moves along: lying bars have another, which is not found by itself.
          {...(lying ? { tooltipProps: { axisId: 'left' } } : {})}
          valueFormatter={written}
          gridAxis={lying ? 'y' : 'x'}
          {...(lying ? { yAxisProps: { width: 140 }, xAxisProps: steps } : { yAxisProps: steps })}
          // They would grow from nothing again at every new answer and every turn of a phone.
          barProps={{ isAnimationActive: false, maxBarSize: 48 }}
          // A gap of a fixed width leaves nothing for the bars where there are many of them.
          barChartProps={{ accessibilityLayer: false, barGap: 0 }}
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
            {data.slice(0, maxTold).map((point, i) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: labels may be alike, such as an hour that clocks repeat
              <tr key={i}>
                <th>{point.label}</th>
                {series.map(({ name }) => (
                  <td key={name}>{valueText(point[name], written)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </VisuallyHidden>
    </figure>
  )
}

/** Above the picture rather than in it: however many lines it takes, it covers nothing. */
function Legend({ series }: Pick<BarsProps, 'series'>) {
  const theme = useMantineTheme()
  return (
    <ul className="bars-legend">
      {series.map(({ name, label, color }) => (
        <li key={name}>
          <span className="bars-colour" style={{ background: getThemeColor(color, theme) }} />
          {label}
        </li>
      ))}
    </ul>
  )
}

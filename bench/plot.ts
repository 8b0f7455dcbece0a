export interface Series {
  readonly title: string
  readonly unit: string
  /** One value for each time. */
  readonly values: readonly number[]
}

const width = 800
const panelHeight = 120
const margin = { left: 90, right: 20, top: 26, bottom: 14 }

const escapeXml = (text: string): string => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
const short = (value: number): string => Number(value.toPrecision(4)).toLocaleString('en')

/** An SVG with a panel for each series over the same times, in minutes. Every panel starts at zero, so flat looks flat. */
export function plot(title: string, minutes: readonly number[], series: readonly Series[]): string {
  const height = 60 + series.length * panelHeight
  const last = Math.max(minutes.at(-1) ?? 0, Number.MIN_VALUE)
  const inner = width - margin.left - margin.right
  const panels = series.map(({ title: name, unit, values }, i) => {
    const top = 40 + i * panelHeight + margin.top
    const bottom = 40 + (i + 1) * panelHeight - margin.bottom
    const most = Math.max(...values, Number.MIN_VALUE)
    const x = (minute: number): string => (margin.left + (minute / last) * inner).toFixed(1)
    const y = (value: number): string => (bottom - (value / most) * (bottom - top)).toFixed(1)
    const points = values.map((value, n) => `${x(minutes[n] ?? 0)},${y(value)}`).join(' ')
    return [
      `<text x="${margin.left}" y="${top - 8}" font-weight="bold">${escapeXml(name)}</text>`,
      `<text x="${margin.left - 8}" y="${top + 5}" text-anchor="end">${short(most)} ${escapeXml(unit)}</text>`,
      `<text x="${margin.left - 8}" y="${bottom}" text-anchor="end">0</text>`,
      `<path d="M${margin.left} ${top}V${bottom}H${width - margin.right}" fill="none" stroke="#868e96"/>`,
      `<polyline points="${points}" fill="none" stroke="#1971c2" stroke-width="1.5"/>`,
    ].join('\n')
  })
  const axis = `<text x="${width - margin.right}" y="${height - 6}" text-anchor="end">${short(last)} minutes</text>`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">
<rect width="${width}" height="${height}" fill="#fff"/>
<text x="${margin.left}" y="24" font-size="16">${escapeXml(title)}</text>
${panels.join('\n')}
${axis}
</svg>
`
}

import { median } from './median.ts'
import { formatTable, number, type Row } from './table.ts'

/** A number with the text around it. */
export interface Figure {
  readonly before: string
  readonly value: number
  readonly after: string
  /** Microseconds per request. */
  readonly cpu?: number
}

/** Reads a figure of a table: `1,234/s, 56 µs CPU` is a rate of 1,234 and a cost of 56 µs. Undefined without a number. */
export function parseFigure(text: string): Figure | undefined {
  const [, before = '', digits, rest = ''] = /^(.*?)(?<!\w)(\d[\d,]*(?:\.\d+)?)(.*)$/.exec(text) ?? []
  if (digits === undefined) return undefined
  const cpu = /, (\d[\d,]*) µs CPU$/.exec(rest)
  const value = numberOf(digits)
  if (cpu === null) return { before, value, after: rest }
  return { before, value, after: rest.slice(0, cpu.index), cpu: numberOf(cpu[1] ?? '') }
}

const numberOf = (digits: string): number => Number(digits.replaceAll(',', ''))

/** A table of the medians over all turns: before, after, and after as a multiple of before. */
export function compare(before: readonly (readonly Row[])[], after: readonly (readonly Row[])[]): string {
  const [old, current] = [mediansOf(before), mediansOf(after)]
  const lines: Row[] = [['', 'before', 'after', 'ratio']]
  for (const label of new Set([...old.keys(), ...current.keys()])) {
    const [was, is] = [old.get(label), current.get(label)]
    const ratio = was === undefined || is === undefined || was.value === 0 ? '' : (is.value / was.value).toFixed(2)
    lines.push([label, show(was), show(is), ratio])
  }
  return formatTable(lines)
}

function show(figure: Figure | undefined): string {
  if (figure === undefined) return 'not measured'
  const { before, value, after } = figure
  return `${before}${value >= 100 ? number(value) : String(Number(value.toFixed(2)))}${after}`
}

function mediansOf(turns: readonly (readonly Row[])[]): Map<string, Figure> {
  const figures = new Map<string, Figure[]>()
  const add = (label: string, figure: Figure): void => {
    figures.set(label, [...(figures.get(label) ?? []), figure])
  }
  for (const [label = '', text = ''] of turns.flat()) {
    const figure = parseFigure(text)
    if (figure === undefined) continue
    add(label, figure)
    if (figure.cpu !== undefined) add(`${label}, CPU`, { before: '', value: figure.cpu, after: ' µs' })
  }
  const middle = (all: readonly Figure[]): Figure => {
    const [{ before, after } = { before: '', after: '' }] = all
    return { before, value: median(all.map(({ value }) => value)), after }
  }
  return new Map([...figures].map(([label, all]) => [label, middle(all)]))
}

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

/** A table of the medians over all turns: before, after, after as a multiple of before, and the budget. */
export function compare(before: readonly (readonly Row[])[], after: readonly (readonly Row[])[]): string {
  const [old, current] = [mediansOf(before), mediansOf(after)]
  const lines: Row[] = [['', 'before', 'after', 'ratio', 'budget']]
  for (const label of new Set([...old.keys(), ...current.keys()])) {
    const [was, is] = [old.get(label), current.get(label)]
    const ratio = was === undefined || is === undefined || was.value === 0 ? '' : (is.value / was.value).toFixed(2)
    lines.push([label, show(was), show(is), ratio, (is ?? was)?.budget ?? ''])
  }
  return formatTable(lines)
}

function show(figure: Figure | undefined): string {
  if (figure === undefined) return 'not measured'
  const { before, value, after } = figure
  return `${before}${value >= 100 ? number(value) : String(Number(value.toFixed(2)))}${after}`
}

interface Budgeted extends Figure {
  readonly budget: string
}

/**
 * The CPU time and the share of a line have lines of their own, since both sides of a share were measured at the same time: it
 * changes less with the speed of the machine than the rate.
 */
function* figuresOf([label = '', text = '', comparison = '', budget = '']: Row): Generator<[string, Budgeted]> {
  const figure = parseFigure(text)
  if (figure === undefined) return
  const [, share, unit, of] = /^([\d.]+)( %| times) (?:of )?(.+)$/.exec(comparison) ?? []
  const ofShare = share !== undefined && budget.endsWith(unit ?? '')
  yield [label, { ...figure, budget: ofShare ? '' : budget }]
  if (figure.cpu !== undefined) yield [`${label}, CPU`, { before: '', value: figure.cpu, after: ' µs', budget: '' }]
  if (share === undefined || unit === undefined) return
  yield [`${label}, beside ${of}`, { before: '', value: Number(share), after: unit, budget: ofShare ? budget : '' }]
}

function mediansOf(turns: readonly (readonly Row[])[]): Map<string, Budgeted> {
  const figures = new Map<string, Budgeted[]>()
  for (const [label, figure] of turns.flat().flatMap((row) => [...figuresOf(row)])) {
    figures.set(label, [...(figures.get(label) ?? []), figure])
  }
  const middle = (all: readonly Budgeted[]): Budgeted => {
    const [{ before, after, budget } = { before: '', after: '', budget: '' }] = all
    return { before, value: median(all.map(({ value }) => value)), after, budget }
  }
  return new Map([...figures].map(([label, all]) => [label, middle(all)]))
}

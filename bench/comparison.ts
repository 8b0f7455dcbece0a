import { median } from './median.ts'
import { formatTable, number, type Row } from './table.ts'

/** The numbers of a figure: `1,234/s, 56 µs CPU` is a rate of 1,234 and a cost of 56 µs. */
export function parseFigure(text: string): { readonly value: number; readonly unit: string; readonly cpu?: number } {
  const [, before = '', digits = '', after = ''] = /^(.*?)(?<!\w)(\d[\d,]*(?:\.\d+)?)(.*)$/.exec(text) ?? []
  const cpu = /, (\d[\d,]*) µs CPU$/.exec(after)
  const unit = before + (cpu === null ? after : after.slice(0, cpu.index))
  const value = digits === '' ? Number.NaN : Number(digits.replaceAll(',', ''))
  return cpu === null ? { value, unit } : { value, unit, cpu: Number((cpu[1] ?? '').replaceAll(',', '')) }
}

/** A table of the medians over all turns: before, after, and after as a multiple of before. */
export function compare(before: readonly (readonly Row[])[], after: readonly (readonly Row[])[]): string {
  const [old, current] = [mediansOf(before), mediansOf(after)]
  const lines: Row[] = [['', 'before', 'after', 'ratio']]
  for (const label of new Set([...old.keys(), ...current.keys()])) {
    const [was, is] = [old.get(label), current.get(label)]
    const show = (one: typeof was): string => (one === undefined ? 'not measured' : `${shown(one.value)}${one.unit}`)
    const ratio = was === undefined || is === undefined || was.value === 0 ? '' : (is.value / was.value).toFixed(2)
    lines.push([label, show(was), show(is), ratio])
  }
  return formatTable(lines)
}

const shown = (value: number): string => (value >= 100 ? number(value) : String(Number(value.toFixed(2))))

function mediansOf(turns: readonly (readonly Row[])[]): Map<string, { readonly value: number; readonly unit: string }> {
  const values = new Map<string, { readonly unit: string; readonly all: number[] }>()
  const add = (label: string, unit: string, value: number): void => {
    if (Number.isNaN(value)) return
    const known = values.get(label) ?? { unit, all: [] }
    known.all.push(value)
    values.set(label, known)
  }
  for (const [label = '', figure = ''] of turns.flat()) {
    const { value, unit, cpu } = parseFigure(figure)
    add(label, unit, value)
    if (cpu !== undefined) add(`${label}, CPU`, ' µs', cpu)
  }
  return new Map([...values].map(([label, { unit, all }]) => [label, { unit, value: median(all) }]))
}

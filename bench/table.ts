import { writeFileSync } from 'node:fs'

/** Label, figure, comparison, budget. */
export type Row = readonly string[]

const rows: Row[] = []

export const number = (n: number): string => Math.round(n).toLocaleString('en')
/** With the CPU time of one request where it is known. */
export const rate = (n: number, cpuMicros?: number): string =>
  `${number(n)}/s${cpuMicros === undefined ? '' : `, ${number(cpuMicros)} µs CPU`}`
export const percent = (n: number): string => `${(n * 100).toFixed(1)} %`
export const millis = (n: number): string => `${n.toFixed(1)} ms`
export const say = (line: string): void => console.log(line)

/** Printed at once, and again in the table at the end. */
export function row(...cells: string[]): void {
  rows.push(cells)
  say(cells.join('  '))
}

export const printTable = (): void => say(`\n${formatTable(rows)}`)

/** For a comparison by another process. */
export const writeRows = (file: string): void => writeFileSync(file, JSON.stringify(rows))

export function formatTable(lines: readonly Row[]): string {
  const columns = Math.max(0, ...lines.map(({ length }) => length))
  const widths = Array.from({ length: columns }, (_, i) => Math.max(...lines.map((cells) => cells[i]?.length ?? 0)))
  const format = (cells: Row): string => cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')
  return lines.map((cells) => format(cells).trimEnd()).join('\n')
}

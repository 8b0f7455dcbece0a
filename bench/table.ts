const rows: string[][] = []

export const number = (n: number): string => Math.round(n).toLocaleString('en')
export const rate = (n: number): string => `${number(n)}/s`
export const percent = (n: number): string => `${(n * 100).toFixed(1)} %`
export const millis = (n: number): string => `${n.toFixed(1)} ms`
export const say = (line: string): void => console.log(line)

/** Printed at once, and again in the table at the end. */
export function row(...cells: string[]): void {
  rows.push(cells)
  say(cells.join('  '))
}

export function printTable(): void {
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)))
  say('')
  for (const cells of rows)
    say(
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}

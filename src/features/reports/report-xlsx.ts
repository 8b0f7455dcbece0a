import { Worker } from 'node:worker_threads'
import { GatewayError } from '#kernel/errors.ts'
import type { ReportTable, ServedReport } from './report.ts'
import { leftOut } from './report-csv.ts'

export interface SheetLine {
  readonly cells: readonly string[]
  readonly bold: boolean
}

const maxCharacters = 16_000_000
const memoryMegabytes = 384

/** A workbook has to fit in memory, so it has a limited number of rows, and a separate thread writes it. */
export async function reportXlsx(report: ServedReport, table: ReportTable, timeoutMillis: number): Promise<Buffer> {
  const started = performance.now()
  const lines = await sheetLines(report, table)
  return await write(lines, timeoutMillis - (performance.now() - started))
}

/**
 * OpenUnison's layout: the report's name and description at the top; then each group's fields, one below the other,
 * and its rows.
 */
async function sheetLines(report: ServedReport, table: ReportTable): Promise<SheetLine[]> {
  const { name, description, headerFields, dataFields, groupBy } = report
  const plain = (cells: readonly (string | null)[]): SheetLine => ({ cells: cells.map(clean), bold: false })
  const titles: SheetLine = { cells: dataFields.map(clean), bold: true }
  const lines: SheetLine[] = [{ cells: [clean(name)], bold: true }, plain([description]), plain([])]
  if (groupBy === undefined) lines.push(titles)
  let characters = 0
  for (let rows = await table.next(); rows !== undefined; rows = await table.next()) {
    for (const { opens, header, data } of rows) {
      if (opens) {
        if (lines.length > 3) lines.push(plain([]))
        lines.push(...header.map((value, i) => plain([headerFields[i] ?? '', value])), titles)
      }
      lines.push(plain(data))
      for (const value of data) characters += value?.length ?? 0
    }
    if (characters > maxCharacters) {
      throw new GatewayError('UNPROCESSABLE', `the report "${name}" is too large for a workbook`, {
        publicText: 'The report is too large for a workbook. Ask for format=csv.',
      })
    }
  }
  if (table.count === 0) lines.push(plain(['There is no data for this report']))
  if (table.truncated) lines.push(plain([]), plain([leftOut(table.count)]))
  return lines
}

/** The maximum length of a cell. */
const maxCell = 32_767
/** Characters that XML does not allow. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to be removed
const notInXml = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g

const clean = (text: string | null): string => (text ?? '').slice(0, maxCell).toWellFormed().replaceAll(notInXml, '')

async function write(lines: readonly SheetLine[], timeoutMillis: number): Promise<Buffer> {
  const worker = new Worker(new URL('./xlsx-thread.ts', import.meta.url), {
    workerData: lines,
    resourceLimits: { maxOldGenerationSizeMb: memoryMegabytes },
    stderr: true,
  })
  const written = Promise.withResolvers<Uint8Array>()
  const tooSlow = (): void =>
    written.reject(new GatewayError('TARGET_TIMEOUT', 'a workbook took too long', { retryAfter: 60 }))
  const timer = setTimeout(tooSlow, timeoutMillis)
  worker.once('message', (bytes: Uint8Array) => written.resolve(bytes))
  worker.once('error', (cause) => {
    written.reject(new GatewayError('INTERNAL', 'a workbook could not be written', { cause }))
  })
  worker.once('exit', () => written.reject(new GatewayError('INTERNAL', 'the thread of a workbook ended early')))
  try {
    return Buffer.from(await written.promise)
  } finally {
    clearTimeout(timer)
    await worker.terminate()
  }
}

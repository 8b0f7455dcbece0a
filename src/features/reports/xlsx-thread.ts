import { parentPort, workerData } from 'node:worker_threads'
import writeXlsxFile from 'write-excel-file/node'
import type { SheetLine } from './report-xlsx.ts'

/** The program of the thread that writes a workbook. Every cell is a text, so that none is evaluated. */

const narrowest = 10
const widest = 60

const lines = workerData as readonly SheetLine[]
const widths: number[] = []
const rows = lines.map(({ cells, bold }) =>
  cells.map((value, i) => {
    // A cell alone in its row may overflow into those beside it.
    if (cells.length > 1) widths[i] = Math.max(widths[i] ?? narrowest, Math.min(value.length + 2, widest))
    return value === '' ? null : { value, type: String, ...(bold ? { fontWeight: 'bold' as const } : {}) }
  }),
)
const columns = Array.from(widths, (width) => ({ width: width ?? narrowest }))
const workbook = writeXlsxFile(rows, { sheet: 'Report', columns })
parentPort?.postMessage(await workbook.toBuffer())

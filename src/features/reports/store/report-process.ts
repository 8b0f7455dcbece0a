import { writeSync } from 'node:fs'
import process from 'node:process'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { openReportFile, type ReportMessage, type ReportTask } from './report-file.ts'

/**
 * The program of the process that reads one report from an SQLite file. In the gateway itself a report would block all
 * requests and could not be stopped. A thread reads, and waits until its output is read; the main thread kills the
 * process when the gateway has exited, or when the process uses too much memory, for which SQLite has no limit.
 */

const rowsAtOnce = 200
const charactersAtOnce = 64 * 1024
const memoryBytes = 512 * 1024 * 1024
const lookEveryMillis = 50

if (isMainThread) watch()
else answer(workerData as string)

/** The input is one line, the task. Its end means that the gateway has exited. */
function watch(): void {
  let line = ''
  let thread: Worker | undefined
  process.stdin.setEncoding('utf8')
  process.stdin.on('data', (text: string) => {
    line += text
    if (thread !== undefined || !line.endsWith('\n')) return
    thread = new Worker(new URL(import.meta.url), { workerData: line })
    thread.once('exit', () => process.exit())
  })
  const end = (): boolean => process.kill(process.pid, 'SIGKILL')
  process.stdin.once('close', end)
  setInterval(() => process.memoryUsage.rss() > memoryBytes && end(), lookEveryMillis)
}

function answer(task: string): void {
  try {
    read(JSON.parse(task) as ReportTask)
  } catch (error) {
    write({ failed: error instanceof Error ? error.message : String(error) })
  }
}

function read({ file, sql, values, limit }: ReportTask): void {
  const statement = openReportFile(file).prepare(sql)
  statement.setReadBigInts(true)
  statement.setReturnArrays(true)
  write({ columns: statement.columns().map(({ name }) => name) })
  let rows: (string | null)[][] = []
  let characters = 0
  let count = 0
  for (const found of statement.iterate(...values)) {
    if (++count > limit) break
    const row = (found as unknown as unknown[]).map(toText)
    rows.push(row)
    for (const text of row) characters += text?.length ?? 0
    // The first row is written at once, so that a failure before it can be reported instead.
    if (count > 1 && rows.length < rowsAtOnce && characters < charactersAtOnce) continue
    write({ rows })
    rows = []
    characters = 0
  }
  if (rows.length > 0) write({ rows })
  write({ end: true })
}

function toText(value: unknown): string | null {
  if (value === null || value === undefined) return null
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value)
}

function write(message: ReportMessage): void {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`)
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(1, bytes, done)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
    }
  }
}

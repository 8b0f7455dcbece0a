import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { inParallel } from '#kernel/in-parallel.ts'
import { reportVariable, type TrialReport } from '#testing/hostile-meter.ts'
import { type HostileRow, places } from './rows.ts'

const usage = `Usage: npm run hostile -- [--values N] [--at-once N] [PART OF A ROW'S NAME]...`
const progressMillis = 30_000

const { values: options, positionals } = parseArgs({
  options: {
    values: { type: 'string', default: '10000' },
    'at-once': { type: 'string', default: '2' },
    help: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const all = Object.keys(places) as HostileRow[]
const isWanted = (row: string): boolean =>
  positionals.length === 0 || positionals.some((part) => row.toLowerCase().includes(part.toLowerCase()))
const rows = all.filter(isWanted)
const [values, atOnce] = [Number(options.values), Number(options['at-once'])]
if (options.help || rows.length === 0 || !(values >= 1) || !(atOnce >= 1)) {
  console.error(`${usage}\nRows:\n${all.map((row) => `  ${row}`).join('\n')}`)
  process.exit(2)
}

interface Outcome {
  readonly row: HostileRow
  readonly passed: boolean
  readonly seconds: number
  readonly operations: NonNullable<TrialReport['operations']>
}

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-hostile-'))

/** The trial of one row as a test run of its own. It passed if it says what it did; a test that was not found says nothing. */
async function tryRow(row: HostileRow, i: number): Promise<Outcome> {
  const { tier, file, test } = places[row]
  const reports = join(folder, `${i}.jsonl`)
  writeFileSync(reports, '')
  const started = performance.now()
  const seconds = (): number => (performance.now() - started) / 1000
  const last = (): TrialReport | undefined => {
    const line = readFileSync(reports, 'utf8').trimEnd().split('\n').at(-1)
    return line === undefined || line === '' ? undefined : (JSON.parse(line) as TrialReport)
  }
  console.log(`${row}: begins`)
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--project', tier, file, '--testNamePattern', test]
  const child = spawn(process.execPath, args, {
    env: { ...process.env, HOSTILE_VALUES: String(values), [reportVariable]: reports },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-20_000)
    })
  }
  const progress = setInterval(() => {
    console.log(`${row}: ${last()?.values ?? 0} of ${values} values, ${seconds().toFixed(0)} s`)
  }, progressMillis)
  const [code] = await once(child, 'close')
  clearInterval(progress)
  const end = last()
  const passed = code === 0 && end?.row === row && end.operations !== undefined
  console.log(`${row}: ${passed ? 'passed' : 'FAILED'}, ${seconds().toFixed(0)} s`)
  if (!passed) console.log(output)
  return { row, passed, seconds: seconds(), operations: passed ? (end.operations ?? []) : [] }
}

const outcomes = await inParallel(rows, atOnce, tryRow)
rmSync(folder, { recursive: true })

console.log('\nrow | operation | values | seconds\n--- | --- | ---: | ---:')
for (const { row, passed, seconds, operations } of outcomes) {
  for (const [operation, count, spent] of operations)
    console.log(`${row} | ${operation} | ${count} | ${spent.toFixed(1)}`)
  console.log(`${row} | ${passed ? 'all' : 'FAILED'} | ${passed ? values : 0} | ${seconds.toFixed(1)}`)
}
const failed = outcomes.filter(({ passed }) => !passed).length
console.log(`\n${outcomes.length - failed} rows passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, globSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { availableParallelism, freemem, tmpdir } from 'node:os'
import { join, matchesGlob, resolve } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { suggestion } from '#kernel/suggest.ts'
import { bundle, bundledProgram } from '#testing/run/bundle-setup.ts'
import { onlyNpmVariable } from '#testing/run/missing-part.ts'
import { judgesPython } from '#testing/run/python-setup.ts'
import { counted, type ReportLine, readReport, reportFile } from '#testing/run/run-report.ts'
import { type Tier, tiers } from './tiers.ts'

const usage = `Usage: npm test [-- [--all] [--slowest N] [TIER ...] [FILE ... [-t TITLE] [-u]]]

Without arguments: the tiers that need nothing but npm. With --all (npm run test:all): every tier.
A tier:  ${tiers.map(({ name }) => name).join(', ')}
A file:  a part of the path of test files, such as src/kernel or login.test.ts. With -t, only the tests whose full title contains the text; with -u, they write the files that they compare with.
--slowest N lists the N slowest files at the end.`

const options = {
  all: { type: 'boolean', default: false },
  title: { type: 'string', short: 't' },
  update: { type: 'boolean', short: 'u', default: false },
  slowest: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const

/** At most this many failed tests are named again at the end. */
const mostNamed = 20

/** A tier of this run, with the files of it that were requested; all of them if undefined. */
interface Job {
  readonly tier: Tier
  readonly files?: readonly string[]
}

interface Result {
  readonly name: string
  readonly passed: boolean
  readonly seconds: number
}

const tierNames = tiers.map(({ name }) => name)
const { values, positionals } = readArguments()
const isSelection = positionals.length > 0
const isCore = !values.all && !isSelection
const jobs = isSelection ? selected(positionals) : tiers.map((tier) => ({ tier })).filter(({ tier }) => isPart(tier))
const started = performance.now()
const folder = mkdtempSync(join(memoryFolder() ?? tmpdir(), 'gatehouse-run-'))
// PostgreSQL runs as another user if this is root.
chmodSync(folder, 0o755)
const reported = join(folder, 'report')
writeFileSync(reported, '')
const env: NodeJS.ProcessEnv = {
  // Test workers keep compiled code where `bin/gatehouse` does, so that each of them starts in half the time.
  NODE_COMPILE_CACHE: resolve('node_modules/.cache/gatehouse'),
  ...(process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}),
  ...process.env,
  TMPDIR: folder,
  [reportFile]: reported,
  ...(isCore ? { [onlyNpmVariable]: 'true', PATH: `${process.env['PATH']}:${resolve('test/support/stand-ins')}` } : {}),
}

// They are needed by later tiers, and made while the first ones run. A tier that lacks one of them reports it.
const programsBuilt = jobs.some(({ tier }) => tier.usesBuiltPrograms) ? buildPrograms() : Promise.resolve()
const bundled = jobs.some(({ tier }) => tier.usesBundle) ? bundle() : Promise.resolve(undefined)
/** Other tiers use the bundle if it is there, and don't wait for it. */
let readyBundle: string | undefined
bundled.then(
  (program) => {
    readyBundle = program
  },
  () => {},
)
const python = jobs.some(({ tier }) => tier.usesPython) ? judgesPython() : Promise.resolve(undefined)
for (const made of [bundled, python]) made.catch(() => {})

const results: Result[] = []
try {
  results.push(...(await runAll()))
} finally {
  const lines = readReport(reported)
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  summarize(lines)
}

function readArguments() {
  try {
    const read = parseArgs({ options, allowPositionals: true })
    if (read.values.help) {
      console.log(usage)
      process.exit(0)
    }
    if (!/^\d{1,4}$/.test(read.values.slowest ?? '0')) throw new Error('--slowest takes a number')
    if (read.values.title !== undefined && read.positionals.length === 0) {
      throw new Error('-t needs a file or a tier before it: npm test -- unit -t TITLE')
    }
    if (read.values.update && read.positionals.length === 0) throw new Error('-u needs a file before it')
    return read
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

function refuse(problem: string): never {
  console.error(`${problem}\n\n${usage}`)
  return process.exit(2)
}

/** `core` is a part of `stories`, so a run of all tiers does not need it. */
function isPart(tier: Tier): boolean {
  return values.all ? tier.partOf === undefined : tier.isCore
}

/** The tiers with these names, and those of the files whose paths contain one of the other words. */
function selected(words: readonly string[]): Job[] {
  const names = words.filter((word) => tierNames.includes(word))
  const checks = tiers.find(({ name, program }) => program !== undefined && names.includes(name))
  const option = values.title !== undefined ? '-t' : values.update ? '-u' : undefined
  if (option !== undefined && checks !== undefined) {
    refuse(`${option} is for tests, and the tier ${checks.name} has none: run it without ${option}`)
  }
  const parts = words.filter((word) => !names.includes(word)).map((word) => word.replace(/^\.\//, ''))
  const matching = tiers.map((tier): Job => {
    if (tier.include === undefined || names.includes(tier.name)) return { tier, files: [] }
    const isExcluded = (file: string) => tier.exclude?.some((pattern) => matchesGlob(file, pattern)) === true
    const files = globSync([...tier.include], { exclude: ['**/node_modules/**'] }).filter((file) => !isExcluded(file))
    return { tier, files: files.filter((file) => parts.some((part) => file.includes(part))) }
  })
  const unknown = parts.filter((part) => !matching.some(({ files = [] }) => files.some((file) => file.includes(part))))
  if (unknown.length > 0) {
    refuse(unknown.map((word) => `no tier and no test file: ${word}${suggestion(word, tierNames)}`).join('\n'))
  }
  return [
    ...tiers.filter(({ name }) => names.includes(name)).map((tier) => ({ tier })),
    ...matching.filter(({ files = [] }) => files.length > 0),
  ]
}

/** Runs the tiers in their order, two at a time: one mostly waits while the other one computes. */
async function runAll(): Promise<Result[]> {
  const waiting = [...jobs]
  const done: Result[] = []
  const lane = async (): Promise<void> => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      if (job.tier.usesBuiltPrograms) await programsBuilt
      if (job.tier.usesPython) await python.catch(() => undefined)
      const result = await run(job)
      done.push(result)
      const left = jobs.length - done.length
      console.log(
        `\n== ${result.passed ? 'passed' : 'FAILED'} ${result.name} in ${result.seconds.toFixed(0)} s${left > 0 ? `, ${left} to go` : ''} ==\n`,
      )
    }
  }
  // While programs are built, which takes as much as a tier, a single tier runs.
  await Promise.all([lane(), programsBuilt.then(lane)])
  return jobs.flatMap(({ tier }) => done.filter(({ name }) => name === tier.name))
}

async function run({ tier, files }: Job): Promise<Result> {
  const begun = performance.now()
  const result = (passed: boolean): Result => ({
    name: tier.name,
    passed,
    seconds: (performance.now() - begun) / 1000,
  })
  console.log(`== ${tier.name} ==`)
  const program = tier.usesBundle ? await bundled : readyBundle
  const bundleEnv = program === undefined ? {} : { [bundledProgram]: program }
  const child = spawn(process.execPath, commandOf(tier, files), {
    stdio: jobs.length === 1 ? 'inherit' : ['ignore', 'pipe', 'pipe'],
    env: { ...env, ...bundleEnv },
  })
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface({ input: stream }).on('line', (line) => console.log(`${tier.name.padEnd(12)} ${line}`))
  }
  const [status] = await once(child, 'close')
  return result(status === 0)
}

function commandOf(tier: Tier, files: readonly string[] = tier.partOf?.files ?? []): string[] {
  if (tier.program !== undefined) return [...tier.program]
  const words = ['node_modules/vitest/vitest.mjs', 'run', '--project', tier.partOf?.project ?? tier.name, ...files]
  if (tier.isNative) words.push('--experimental.viteModuleRunner=false')
  if (tier.workers !== undefined) words.push('--maxWorkers', workersOf(tier.workers))
  if (values.title !== undefined) words.push('-t', RegExp.escape(values.title))
  if (values.update) words.push('-u')
  return words
}

/** At least two: with a single worker one slow file delays all others. */
function workersOf(share: string): string {
  return String(Math.max(2, Math.round((availableParallelism() * Number.parseInt(share, 10)) / 100)))
}

/** The API server, helm and Vault. */
async function buildPrograms(): Promise<void> {
  const child = spawn(process.execPath, ['test/kube/build.ts'], { stdio: ['ignore', 'pipe', 'pipe'], env })
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => console.log(`${'programs'.padEnd(12)} ${line}`))
  }
  await once(child, 'close')
}

function summarize(lines: readonly ReportLine[]): void {
  const failures = lines.filter((line) => line.kind === 'failed')
  const files = lines.filter((line) => line.kind === 'file')
  const slowest = files
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, Number(values.slowest ?? (isSelection ? 0 : 10)))
  if (slowest.length > 0) {
    console.log('\n== slowest files ==')
    for (const { file, tests, seconds } of slowest)
      console.log(`${seconds.toFixed(1).padStart(6)} s  ${file} (${counted(tests, 'test')})`)
  }
  console.log('\n== tiers ==')
  for (const { name, passed, seconds } of results) {
    console.log(`${passed ? 'passed' : 'FAILED'}  ${name.padEnd(12)} ${seconds.toFixed(1).padStart(6)} s`)
  }
  for (const part of new Set(lines.filter((line) => line.kind === 'missing').map(({ part }) => part))) {
    console.log(`skipped ${part}`)
  }
  for (const { file, test, reason } of failures.slice(0, mostNamed)) {
    console.log(`FAILED  ${[file, test, reason].filter(Boolean).join(' > ')}`)
    if (file !== undefined) console.log(`        npm test -- ${file}${test === undefined ? '' : ` -t ${quoted(test)}`}`)
  }
  if (failures.length > mostNamed) console.log(`        and ${failures.length - mostNamed} more, see above`)
  const failed = results.filter((result) => !result.passed)
  for (const { name } of failed.filter(({ name }) => tiers.some((tier) => tier.name === name && tier.program))) {
    console.log(`        npm test -- ${name}`)
  }
  const tests = files.reduce((sum, file) => sum + file.tests, 0)
  const isNothing = values.title !== undefined && tests === 0
  if (isNothing) console.log(`no test has a title with ${quoted(values.title ?? '')}`)
  const minutes = ((performance.now() - started) / 60_000).toFixed(1)
  console.log(
    `${counted(results.length - failed.length, 'tier')} passed, ${failed.length} failed: ${counted(tests, 'test')} in ${minutes} min`,
  )
  process.exitCode = failed.length === 0 && results.length === jobs.length && !isNothing ? 0 : 1
  if (isCore) nameOthers()
}

function nameOthers(): void {
  console.log('\nLeft out, with the Debian packages that they need:')
  console.log('  LDAP         slapd and ldap-utils (parts of conformance)')
  for (const { name, needs } of tiers.filter((tier) => !tier.isCore)) console.log(`  ${name.padEnd(12)} ${needs}`)
  console.log('Run every tier: npm run test:all')
}

/** As one word of a shell. Vitest compares with the titles of suites and test, separated by spaces. */
function quoted(title: string): string {
  return `'${title.replaceAll(' > ', ' ').replaceAll("'", String.raw`'\''`)}'`
}

/**
 * A folder in memory with much free space, in which programs may run. SQLite, PostgreSQL and etcd wait for the disk at each
 * commit, which on a disk takes up to half of a tier's time.
 */
function memoryFolder(): string | undefined {
  const memory = '/dev/shm'
  const leastBytes = 4 * 2 ** 30
  try {
    const { bavail, bsize } = statfsSync(memory)
    if (bavail * bsize < leastBytes || freemem() < 2 * leastBytes) return undefined
    const probe = mkdtempSync(join(memory, 'gatehouse-probe-'))
    const script = join(probe, 'script')
    writeFileSync(script, '#!/bin/sh\n', { mode: 0o755 })
    const { status } = spawnSync(script)
    rmSync(probe, { recursive: true })
    return status === 0 ? memory : undefined
  } catch {
    return undefined
  }
}

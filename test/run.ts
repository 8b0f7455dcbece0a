import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { freemem, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { failedTestsFile } from '#testing/run/failed-tests.ts'
import { missingPartsFile } from '#testing/run/missing-part.ts'

interface Tier {
  readonly name: string
  readonly command: readonly string[]
  /** In CI it runs together with this tier if both are requested, and its output follows afterwards. */
  readonly beside?: string
}

const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--project'] as const
/** Node.js loads the files itself, which takes a fifth less time than Vite. The portal's tests need Vite. */
const native = '--experimental.viteModuleRunner=false'

/** The tiers of `npm test`, cheapest first. A tier without its real server says so, and fails in CI. */
const tiers: readonly Tier[] = [
  { name: 'types', command: ['node_modules/typescript/bin/tsc', '--noEmit'] },
  { name: 'portal-types', command: ['node_modules/typescript/bin/tsc', '--noEmit', '-p', 'portal'] },
  { name: 'lint', command: ['node_modules/@biomejs/biome/bin/biome', 'check', '.'] },
  // One worker mostly waits for the sidecar.
  { name: 'unit', command: [...vitest, 'unit', '--maxWorkers', '150%'] },
  { name: 'conformance', command: [...vitest, 'conformance', native, '--maxWorkers', '100%'] },
  // It mostly waits for a rotation of keys.
  { name: 'kube', command: [...vitest, 'kube', native, '--maxWorkers', '100%'], beside: 'conformance' },
  { name: 'stories', command: [...vitest, 'stories', native, '--maxWorkers', '200%'] },
  { name: 'release', command: [...vitest, 'release', native] },
  { name: 'browser', command: [...vitest, 'browser', native, '--maxWorkers', '150%'] },
  { name: 'chaos', command: ['test/chaos/run.ts', '--short'] },
]

/** At most this many failed tests are named again at the end. */
const mostNamed = 20

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !tiers.some((tier) => tier.name === name))
if (unknown.length > 0) {
  console.error(`no such tier: ${unknown.join(', ')}; there are ${tiers.map((tier) => tier.name).join(', ')}`)
  process.exit(2)
}

const isCi = process.env['CI'] === 'true'
const folder = mkdtempSync(join((isCi ? memoryFolder() : undefined) ?? tmpdir(), 'gatehouse-run-'))
// PostgreSQL runs as another user if this is root.
chmodSync(folder, 0o755)
const missing = join(folder, 'missing-parts')
const failures = join(folder, 'failed-tests')
for (const file of [missing, failures]) writeFileSync(file, '')
/** Test workers keep compiled code where `bin/gatehouse` does, so that each of them starts in half the time. */
const compiled = resolve('node_modules/.cache/gatehouse')
const env = {
  NODE_COMPILE_CACHE: compiled,
  ...process.env,
  TMPDIR: folder,
  [missingPartsFile]: missing,
  [failedTestsFile]: failures,
}
const linesOf = (file: string): readonly string[] => readFileSync(file, 'utf8').split('\n').filter(Boolean)

const chosen = tiers.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
const companionsOf = (tier: Tier): readonly Tier[] => (isCi ? chosen.filter(({ beside }) => beside === tier.name) : [])

async function run({ name, command: [program = '', ...args] }: Tier, output: 'inherit' | number) {
  const started = performance.now()
  const child = spawn(process.execPath, [program, ...args], { stdio: ['inherit', output, output], env })
  const [status] = await once(child, 'close')
  return { name, passed: status === 0, seconds: (performance.now() - started) / 1000 }
}

const results: Awaited<ReturnType<typeof run>>[] = []
const companions = new Set(chosen.flatMap(companionsOf))
for (const tier of chosen.filter((one) => !companions.has(one))) {
  console.log(`\n== ${tier.name} ==`)
  const beside = companionsOf(tier).map((one) => ({ one, output: join(folder, one.name) }))
  const running = [run(tier, 'inherit'), ...beside.map(({ one, output }) => run(one, openSync(output, 'w')))]
  results.push(...(await Promise.all(running)))
  for (const { one, output } of beside) console.log(`\n== ${one.name} ==\n${readFileSync(output, 'utf8')}`)
}

console.log('\n== tiers ==')
for (const { name, passed, seconds } of results) {
  console.log(`${passed ? 'passed' : 'FAILED'}  ${name.padEnd(12)} ${seconds.toFixed(1)} s`)
}
for (const part of new Set(linesOf(missing))) console.log(`skipped ${part}`)
for (const test of linesOf(failures).slice(0, mostNamed)) console.log(`FAILED  ${test}`)
rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
const failed = results.filter((result) => !result.passed).length
console.log(`${results.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

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

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { missingPartsFile } from '#testing/missing-part.ts'

interface Tier {
  readonly name: string
  readonly command: readonly string[]
}

const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--project'] as const

/** The tiers of `npm test`, cheapest first. A tier whose real part is missing says so itself, and fails in CI. */
const tiers: readonly Tier[] = [
  { name: 'types', command: ['node_modules/typescript/bin/tsc', '--noEmit'] },
  { name: 'portal-types', command: ['node_modules/typescript/bin/tsc', '--noEmit', '-p', 'portal'] },
  { name: 'lint', command: ['node_modules/@biomejs/biome/bin/biome', 'check', '.'] },
  { name: 'unit', command: [...vitest, 'unit', '--maxWorkers', '100%'] },
  { name: 'conformance', command: [...vitest, 'conformance', '--maxWorkers', '100%'] },
  { name: 'kube', command: [...vitest, 'kube', '--maxWorkers', '100%'] },
  { name: 'stories', command: [...vitest, 'stories', '--maxWorkers', '150%'] },
  { name: 'browser', command: [...vitest, 'browser', '--maxWorkers', '100%'] },
  { name: 'chaos', command: ['test/chaos/run.ts', '--short'] },
]

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !tiers.some((tier) => tier.name === name))
if (unknown.length > 0) {
  console.error(`no such tier: ${unknown.join(', ')}; there are ${tiers.map((tier) => tier.name).join(', ')}`)
  process.exit(2)
}

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-run-'))
const missing = join(folder, 'missing-parts')
writeFileSync(missing, '')
const env = { ...process.env, [missingPartsFile]: missing }

const results = tiers
  .filter((tier) => wanted.length === 0 || wanted.includes(tier.name))
  .map(({ name, command: [program = '', ...args] }) => {
    console.log(`\n== ${name} ==`)
    const started = performance.now()
    const { status } = spawnSync(process.execPath, [program, ...args], { stdio: 'inherit', env })
    return { name, passed: status === 0, seconds: (performance.now() - started) / 1000 }
  })

console.log('\n== tiers ==')
for (const { name, passed, seconds } of results) {
  console.log(`${passed ? 'passed' : 'FAILED'}  ${name.padEnd(12)} ${seconds.toFixed(1)} s`)
}
for (const part of new Set(readFileSync(missing, 'utf8').split('\n').filter(Boolean))) console.log(`skipped ${part}`)
rmSync(folder, { recursive: true })
const failed = results.filter((result) => !result.passed).length
console.log(`${results.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

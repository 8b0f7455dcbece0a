import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import process from 'node:process'
import { parseArgs } from 'node:util'

/** Files that put a sample of hostile or random values through something. */
const withSamples = globSync('src/**/*.test.ts').filter((file) =>
  /#testing\/hostile\/(?:sample|hostile-trial|hostile-insert-trial)\.ts/.test(readFileSync(file, 'utf8')),
)

/** The full form of tests that try a part in each run: the projects of each, and its files. */
const sieges = {
  connections: { projects: ['stories'], files: ['test/stories/hostile/connections.test.ts'] },
  requests: { projects: ['stories'], files: ['test/stories/hostile/fuzzed-requests.test.ts'] },
  registrations: { projects: ['stories'], files: ['test/stories/registration.test.ts'] },
  reload: { projects: ['stories'], files: ['test/stories/reload.test.ts'] },
  people: { projects: ['stories'], files: ['test/stories/scim-clients/delta-aggregation.test.ts'] },
  worst: { projects: ['stories'], files: ['test/stories/hostile/worst-requests.test.ts'] },
  races: { projects: ['stories'], files: ['test/stories/scim-clients/clients'] },
  lists: { projects: ['browser'], files: ['test/browser/console-scale', 'test/browser/portal-scale'] },
  values: { projects: ['unit', 'conformance'], files: withSamples },
} as const
type Siege = keyof typeof sieges

const usage = `Usage: npm run siege -- [--seconds N] [--requests N] [--values N] [--seed N] [${Object.keys(sieges).join('] [')}]`

const { values, positionals } = parseArgs({
  options: {
    seconds: { type: 'string', default: '90' },
    requests: { type: 'string', default: '20000' },
    values: { type: 'string', default: '10000' },
    seed: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const all = Object.keys(sieges) as Siege[]
const wanted = positionals.length === 0 ? all : all.filter((name) => positionals.includes(name))
const numbers = [values.seconds, values.requests, values.values, values.seed ?? '1']
const isKnown = positionals.every((name) => all.includes(name as Siege))
if (values.help || !isKnown || !numbers.every((text) => /^[1-9]\d{0,8}$/.test(text))) {
  console.error(usage)
  process.exit(2)
}

const seed = values.seed ?? String(Math.floor(Math.random() * 2 ** 31))
console.log(`seed ${seed}`)
for (const { projects, files } of wanted.map((name) => sieges[name])) {
  const chosen = projects.flatMap((project) => ['--project', project])
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...chosen, ...files], {
    stdio: 'inherit',
    env: {
      ...process.env,
      SIEGE_SECONDS: values.seconds,
      SIEGE_REQUESTS: values.requests,
      SIEGE_REGISTRATIONS: '1000',
      SIEGE_ROUNDS: '48',
      SIEGE_PEOPLE: '100000',
      SIEGE_RACES: '50',
      SIEGE_LISTS: 'true',
      SIEGE_SEED: seed,
      HOSTILE_VALUES: values.values,
      HOSTILE_SEED: seed,
    },
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) process.exitCode = 1
}

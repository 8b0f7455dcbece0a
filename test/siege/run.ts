import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { parseArgs } from 'node:util'

const usage = `Usage: npm run siege -- [--seconds N] [--requests N] [--seed N] [connections] [requests] [registrations] [reload]`

const stories = {
  connections: 'test/stories/hostile/connections.test.ts',
  requests: 'test/stories/hostile/fuzzed-requests.test.ts',
  registrations: 'test/stories/registration.test.ts',
  reload: 'test/stories/reload.test.ts',
} as const
type Story = keyof typeof stories

const { values, positionals } = parseArgs({
  options: {
    seconds: { type: 'string', default: '90' },
    requests: { type: 'string', default: '20000' },
    seed: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const all = Object.keys(stories) as Story[]
const wanted = positionals.length === 0 ? all : all.filter((name) => positionals.includes(name))
const numbers = [values.seconds, values.requests, values.seed ?? '1']
if (values.help || wanted.length === 0 || !numbers.every((text) => /^[1-9]\d{0,8}$/.test(text))) {
  console.error(usage)
  process.exit(2)
}

const args = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'stories', ...wanted.map((name) => stories[name])]
const child = spawn(process.execPath, args, {
  stdio: 'inherit',
  env: {
    ...process.env,
    SIEGE_SECONDS: values.seconds,
    SIEGE_REQUESTS: values.requests,
    SIEGE_REGISTRATIONS: '1000',
    SIEGE_ROUNDS: '48',
    SIEGE_SEED: values.seed ?? String(Math.floor(Math.random() * 2 ** 31)),
  },
})
const [code] = await once(child, 'exit')
process.exit(typeof code === 'number' ? code : 1)

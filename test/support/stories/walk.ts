import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { expect } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { blocksOf, shellBlocksOf, type Walk } from '#testing/stories/documented-commands.ts'

/** The ports of the pages and examples, which other tests may use at the same time. */
const documentedPorts = ['8080', '8081', '8090', '8091', '2525', '9090', '3890']

/** What the pages leave to the reader: another terminal, waiting, and copying from the output. */
const helpers = `
pids=
stop() { if [ -n "$pids" ]; then kill $pids 2>/dev/null || true; wait $pids || true; pids=; fi; }
trap stop EXIT
attempts=600
ready() {
  for _ in $(seq $attempts); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  cat serve.log
  return 1
}
field() { grep -o "\\"$1\\":\\"[^\\"]*\\"" | head -n 1 | cut -d '"' -f 4; }
curl() {
  code=0
  command curl --fail-with-body -sS --max-time 60 "$@" > answer || code=$?
  cat answer
  return $code
}
`

/** A folder like a checkout, with other ports. */
function makeCheckout(ports: ReadonlyMap<string, number>): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-commands-'))
  mkdirSync(join(folder, 'bin'))
  symlinkSync(resolve(process.env['GATEHOUSE_PROGRAM'] ?? 'bin/gatehouse'), join(folder, 'bin/gatehouse'))
  symlinkSync(resolve('bin/node'), join(folder, 'bin/node'))
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  cpSync('package.json', join(folder, 'package.json'))
  cpSync('examples', join(folder, 'examples'), { recursive: true })
  for (const file of globSync('examples/**/*.{yaml,js,ts,conf}', { cwd: folder })) {
    const text = readFileSync(join(folder, file), 'utf8')
    writeFileSync(join(folder, file), withPorts(text, ports))
  }
  return folder
}

const withPorts = (text: string, ports: ReadonlyMap<string, number>): string =>
  text.replaceAll(new RegExp(`\\b(?:${documentedPorts.join('|')})\\b`, 'g'), (port) => String(ports.get(port)))

const portIn = (line: string, option: string): string | undefined =>
  new RegExp(`--${option} \\S+:(\\d+)`).exec(line)?.[1]

/** A program that runs until it is stopped, and the check that it is ready; undefined for other commands. */
function background(line: string): string | undefined {
  const command = line.replace(/\s+#.*$/, '')
  const run = (complete: string, ...check: string[]): string =>
    `${complete} >>serve.log 2>&1 &\npids="$pids $!"\nready ${check.join(' ')}`
  const connects = (port: string): string =>
    `bin/node -e "require('node:net').connect(${port}, '127.0.0.1').on('error', () => process.exit(1)).on('connect', () => process.exit(0))"`
  if (/^(?:bin\/)?gatehouse serve /.test(command)) {
    const listen = portIn(command, 'listen') === undefined ? ' --listen 127.0.0.1:8080' : ''
    const metrics = portIn(command, 'metrics') === undefined ? ' --metrics 127.0.0.1:8081' : ''
    const complete = `${command}${listen}${metrics}`
    return run(complete, `curl http://127.0.0.1:${portIn(complete, 'metrics')}/ready`)
  }
  if (command.startsWith('bin/node examples/approvals/mailbox.js')) return run(`${command} 2525`, connects('2525'))
  if (command.startsWith('bin/node examples/webhook-target/app')) return run(command, connects('9090'))
  if (command.startsWith('/usr/sbin/slapd')) return run(command, connects('3890'))
  return undefined
}

function scriptOf({ page, first = '', blocks, before = {} }: Walk): string {
  const all = shellBlocksOf(page)
  const chosen = blocks ?? all.map((_, index) => index)
  const commands = [first, ...chosen.flatMap((index) => [before[index] ?? '', all[index] ?? ''])].join('\n')
  return (
    commands
      .replaceAll(/\\\n\s*/g, '')
      .replaceAll(/ && (?=bin\/gatehouse serve)/g, '\n')
      .replaceAll(
        /^block (\S+) (\w+) (\d+) > (\S+)$/gm,
        (_, from: string, language: string, index: string, to: string) =>
          `cat > ${to} <<'END_OF_BLOCK'\n${blocksOf(from, language)[Number(index)]}END_OF_BLOCK`,
      )
      .split('\n')
      .map((line) => background(line) ?? line)
      .join('\n')
      // The id that a page shows is that of the last answer.
      .replaceAll('0199a0c1-b4aa-7f10-8b21-1a2b3c4d5e6f', '$(field workflowId < answer)')
      .replaceAll('0.0.0.0:443', '127.0.0.1:8080')
      .replaceAll('/var/lib/gatehouse', '.gatehouse')
      .replaceAll(/token mint (?=--subject)/g, 'token mint --issuer http://127.0.0.1:8080/dev-issuer ')
  )
}

/** Runs the commands of a page in a folder like a checkout, as a reader would. */
export async function walkThrough(walk: Walk): Promise<void> {
  const ports = new Map<string, number>()
  for (const port of documentedPorts) ports.set(port, await freePort())
  const folder = makeCheckout(ports)
  try {
    const script = withPorts(scriptOf(walk), ports)
    // It ends every program that the commands left running, too.
    const child = spawn('timeout', ['110', 'sh', '-eu', '-c', `${helpers}\n${script}\nstop`], {
      cwd: folder,
      env: { ...process.env, PATH: `${join(folder, 'bin')}:${process.env['PATH']}`, GATEHOUSE_URL: undefined },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const [code] = await once(child, 'close')
    expect(code, `${output}\n${script}`).toBe(0)
    for (const text of walk.prints) expect(output).toContain(text)
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

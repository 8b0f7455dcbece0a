import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { gatehouse, until } from '#testing/gateway/gateway-process.ts'
import { tokenMechanism } from '#testing/stories/story-documents.ts'

/** What a gateway writes to standard output around one request, on a terminal (made by `script`) or in a pipe. */
async function outputOf(
  isTerminal: boolean,
  args = '',
  variables: Readonly<Record<string, string>> = {},
): Promise<string> {
  return (await streamsOf(isTerminal, args, variables)).output
}

/** Both streams; a terminal has only the first. */
async function streamsOf(
  isTerminal: boolean,
  args: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<{ readonly output: string; readonly errors: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-log-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'config'))
  writeFileSync(join(folder, 'config/mechanism.yaml'), tokenMechanism)
  const port = await freePort()
  const command = `exec ${gatehouse} serve --config ${folder}/config --data ${folder}/data --listen 127.0.0.1:${port} --metrics off ${args}`
  const [program, words] = isTerminal ? ['script', ['-qec', command, '/dev/null']] : ['sh', ['-c', command]]
  const { NO_COLOR: _, ...inherited } = process.env
  const child = spawn(program, words, {
    env: { ...inherited, TERM: 'xterm', ...variables },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let [output, errors] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const ended = once(child, 'close')
  try {
    const url = `http://127.0.0.1:${port}/nothing/%1b%5b2J%0aFAKE`
    await until(async () => (await fetch(url).catch(() => undefined)) !== undefined, 60_000)
    await until(async () => output.includes('FAKE'), 20_000)
  } finally {
    child.kill('SIGTERM')
    await ended
  }
  return { output, errors }
}

const esc = '\u001b'

test('on a terminal, the log is short colored lines', async () => {
  const output = await outputOf(true)
  expect(output).toMatch(/\d\d:\d\d:\d\d.*INFO .*request refused: GET 404 127\.0\.0\.1\/nothing/)
  expect(output).toContain(`${esc}[32mINFO `)
  expect(output).not.toContain(`${esc}[2J`)
  expect(output).not.toMatch(/^FAKE/m)
  expect(output).not.toContain('"level":"info"')
})

test('with NO_COLOR the lines have no colors', async () => {
  const output = await outputOf(true, '', { NO_COLOR: '1' })
  expect(output).toMatch(/^\d\d:\d\d:\d\d INFO /m)
  expect(output).not.toContain(esc)
})

test('in a pipe, the log is JSON, unless text is requested', async () => {
  expect(await outputOf(false)).toMatch(/^\{"level":"info","time":"20\d\d-[\d-]{5}T[\d:.]{12}Z",.*"path":"\/nothing/m)
  const text = await outputOf(false, '--log-format text')
  expect(text).toMatch(/^\d\d:\d\d:\d\d INFO /m)
  expect(text).not.toContain(esc)
  expect(await outputOf(true, '--log-format json')).toMatch(
    /^\{"level":"info","time":"20\d\d-[\d-]{5}T[\d:.]{12}Z",.*"path":"\/nothing/m,
  )
})

test('in a pipe, standard output has nothing but the log, and the texts for people are on standard error', async () => {
  const { output, errors } = await streamsOf(false, '')
  const lines = output.trimEnd().split('\n')
  const read = lines.map((line) => JSON.parse(line) as { readonly level: unknown; readonly time: string })
  for (const { level, time } of read) {
    expect(level).toMatch(/^(?:info|warn|error)$/)
    expect(new Date(time).toISOString()).toBe(time)
  }
  expect(errors).toMatch(/^Listening on http:\/\/127\.0\.0\.1:\d+\nClient addresses [^\n]+\nShutting down: [^\n]+\n$/)
})

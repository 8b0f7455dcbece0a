import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { commands } from '#cli/commands.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { type CommandDescription, defineCommand, describeCommand } from './command-line.ts'
import { outputOption } from './options.ts'

/** What they print is a log, a script or a plug-in's own tests. */
const withoutOutput = ['serve', 'completion']

test('every command has --output with json', async () => {
  const lacking: string[] = []
  const look = ({ name, options, actions }: CommandDescription): void => {
    const output = options.find((option) => option.name === 'output')
    if (actions.length === 0 && output?.choices?.includes('json') !== true) lacking.push(name)
    actions.forEach(look)
  }
  for (const [name, command] of Object.entries(commands)) {
    if (!withoutOutput.includes(name)) look(await describeCommand(await command.load()))
  }
  expect(lacking).toEqual([])
})

test('no command has another option for it', async () => {
  for (const [name, command] of Object.entries(commands)) {
    const { options } = await describeCommand(await command.load())
    expect([name, options.filter((one) => ['json', 'format'].includes(one.name))]).toEqual([name, []])
  }
})

const printed = async (run: Parameters<typeof defineCommand>[0], ...args: string[]) => {
  const [out, errors]: [string[], string[]] = [[], []]
  const io = { stdout: (line: string) => void out.push(line), stderr: (line: string) => void errors.push(line) }
  return { code: await defineCommand(run)(args, io), out: out.join('\n'), errors }
}
const base = { name: 'x', about: '', usage: '', options: outputOption, examples: [] } as const

describe('with --output json', () => {
  test('lines of text give way to the result, and to messages without one', async () => {
    const spec = {
      ...base,
      run: async (_: unknown, __: unknown, io: { stdout(line: string): void; stderr(line: string): void }) => {
        io.stdout('done')
        io.stderr('note')
      },
    }
    expect(await printed(spec, '--output', 'json')).toEqual({
      code: 0,
      out: JSON.stringify({ messages: ['done'] }, null, 2),
      errors: ['note'],
    })
    expect(await printed(spec)).toMatchObject({ out: 'done' })
  })

  test('a list is one array, also if it is empty', async () => {
    const of = (items: readonly number[]) =>
      printed(
        {
          ...base,
          run: async (_, __, io) =>
            void (await io.list(items, { lines: (n) => [`n ${n}`], json: (n) => ({ n }), noun: 'numbers' })),
        },
        '--output=json',
      )
    expect((await of([])).out).toBe('[]')
    expect((await of([1, 2])).out).toBe('[\n{"n":1},\n{"n":2}\n]')
  })

  test('what was said before a failure is on standard error', async () => {
    const run = async (_: unknown, __: unknown, io: { stdout(line: string): void }): Promise<void> => {
      io.stdout('first half')
      throw new Error('no disk')
    }
    expect(await printed({ ...base, run }, '--output', 'json')).toEqual({
      code: 1,
      out: '',
      errors: ['first half', 'gatehouse x: no disk'],
    })
  })

  test('another value is a wrong usage', async () => {
    const { code, errors } = await printed({ ...base, run: async () => {} }, '--output', 'jsn')
    expect([code, errors[0]]).toEqual([2, 'gatehouse x: --output must be one of text, json (did you mean "json"?)'])
  })
})

const data = (): string => mkdtempSync(join(tmpdir(), 'output-'))
test.each([
  [['examples', '--config', 'examples/quickstart'], { text: expect.stringContaining('curl') }],
  [['token', 'mint', '--subject', 'ada', '--data', data()], { token: expect.stringMatching(/^eyJ/), expiresIn: 3600 }],
  [
    ['explain', '--config', 'examples/quickstart', 'GET', 'http://nowhere.example.com/x'],
    {
      allowed: false,
      details: expect.arrayContaining([
        { about: 'application', text: 'none: 404', more: ['hosts that are served: 127.0.0.1, localhost'] },
      ]),
    },
  ],
  [['schema', '--kind', 'Org'], { allOf: [{ $ref: '#/definitions/Org' }] }],
])('gatehouse %j', async (args, document) => {
  const { stdout, stderr } = await runCommand([...args, '--output', 'json'])
  expect([JSON.parse(stdout), stderr]).toMatchObject([document, expect.any(String)])
})

const hostileText = 'a\u001b[31m\u009b31m\u202e\u2028\u{e0041} ü 日本\n'

test('lines have no characters that a terminal obeys, wherever a command prints them', async () => {
  const lines: string[] = []
  const io = { stdout: (line: string) => void lines.push(line), stderr: (line: string) => void lines.push(line) }
  const list = { lines: (text: string) => [text], noun: `names in ${hostileText}` }
  const run = defineCommand({
    ...base,
    run: async (_, __, output) => {
      output.stdout(hostileText)
      output.stderr(hostileText)
      output.item(hostileText, list)
      await output.list([hostileText], list)
      await output.list([], list)
      throw new Error(hostileText)
    },
  })
  expect(await run([], io)).toBe(1)
  expect(lines.join('')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  expect(lines[0]).toBe('a\\u001b[31m\\u009b31m\\u202e\\u2028\\udb40\\udc41 ü 日本\\u000a')
})

test('JSON has no characters that a terminal obeys', async () => {
  const lines: string[] = []
  const hostile = { name: hostileText, 'key\u0085': 1 }
  const run = defineCommand({
    name: 'x',
    about: '',
    usage: '',
    options: outputOption,
    examples: [],
    run: async (_, __, io) => {
      io.result(hostile)
      await io.list([hostile, hostile], { lines: () => [], noun: 'names' })
      io.item(hostile, { lines: () => [] })
    },
  })
  await run(['--output', 'json'], { stdout: (line) => lines.push(line), stderr: () => {} })
  expect(lines.join('\n')).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  expect(lines.join('\n')).toContain('ü 日本')
  expect(JSON.parse(lines.slice(0, lines.indexOf('}') + 1).join(''))).toEqual(hostile)
  expect(JSON.parse(lines.at(-1) ?? '')).toEqual(hostile)
})

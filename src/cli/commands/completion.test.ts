import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commands } from '#cli/commands.ts'
import { commandOutput, runCommand } from '#testing/gateway/command.ts'

const folder = mkdtempSync(join(tmpdir(), 'completion-'))
afterAll(() => rmSync(folder, { recursive: true }))
const script = join(folder, 'completion.bash')

beforeAll(async () => {
  writeFileSync(script, await commandOutput('completion', 'bash'))
  mkdirSync(join(folder, 'my config'))
  writeFileSync(join(folder, 'my backup.db'), '')
})

/** What a real bash offers after these words; the last one is being typed. */
function offered(...words: readonly string[]): string[] {
  const complete =
    'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gatehouse; printf "%s\\n" "${COMPREPLY[@]}"'
  const { stdout, stderr, status } = spawnSync(
    'bash',
    ['--norc', '-u', '-c', complete, 'bash', script, 'gatehouse', ...words],
    {
      cwd: folder,
      encoding: 'utf8',
    },
  )
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  return stdout.split('\n').filter((line) => line !== '')
}

describe('bash completes', () => {
  test.each([
    ['commands', ['wor'], ['workflow']],
    ['actions', ['keys', 'r'], ['rotate', 'revoke']],
    ['options of an action that is a command', ['sts', 'explain', '--to'], ['--token']],
    ['options that an action has', ['workflow', 'list', '--un'], ['--unfinished']],
    ['no options of another action', ['workflow', 'show', '--un'], []],
    ['an action after an option', ['audit', '--data', 'data', 've'], ['verify']],
    ['values', ['check', '--output', 's'], ['sarif']],
    ['values after an equals sign', ['check', '--output', '=', 's'], ['sarif']],
    ['files with spaces, of an option', ['check', '--config', 'my c'], ['my config']],
    ['files of an argument', ['restore', 'my b'], ['my backup.db']],
    ['nothing for a free value', ['audit', 'tail', '--limit', ''], []],
    ['shells', ['completion', ''], ['bash', 'zsh', 'fish', '--help']],
    ['commands after help', ['help', 'work'], ['workflow']],
  ])('%s', (_, words, expected) => {
    expect(offered(...words)).toEqual(expected)
  })

  test('in an interactive shell, by the registered function', () => {
    const { stdout } = spawnSync('bash', ['-c', `source ${script}; complete -p gatehouse`], { encoding: 'utf8' })
    expect(stdout).toBe('complete -F _gatehouse gatehouse\n')
  })
})

test('bash accepts its script', () => {
  expect(spawnSync('bash', ['-n', script], { encoding: 'utf8' })).toMatchObject({ stderr: '', status: 0 })
})

describe.each(['bash', 'zsh', 'fish'])('%s', (shell) => {
  test('has every command', async () => {
    const text = await commandOutput('completion', shell)
    for (const name of Object.keys(commands)) expect(text).toContain(`gatehouse ${name}'`)
    expect(text).toContain("gatehouse sts explain'")
  })
})

test('another shell is a wrong usage', async () => {
  expect(await runCommand(['completion', 'powershell'])).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('SHELL must be one of bash, zsh, fish'),
  })
})

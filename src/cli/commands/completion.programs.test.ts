import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { commandOutput } from '#testing/gateway/command.ts'

async function scriptOf(shell: string): Promise<string> {
  const file = join(temporaryFolder(), `completion.${shell}`)
  writeFileSync(file, await commandOutput('completion', shell))
  return file
}

const run = (program: string, ...args: readonly string[]) => spawnSync(program, args, { encoding: 'utf8' })

test.each([
  ['zsh', '-n'],
  ['fish', '--no-execute'],
])('%s accepts its script', async (shell, option) => {
  expect(run(shell, option, await scriptOf(shell))).toMatchObject({ stdout: '', stderr: '', status: 0 })
})

test('fish offers commands, actions, options and values', async () => {
  const file = await scriptOf('fish')
  const offered = (line: string): string[] => {
    const { stdout, stderr, status } = run(
      'fish',
      '--no-config',
      '-c',
      `source ${file}; complete --do-complete '${line}'`,
    )
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
    return stdout.split('\n').flatMap((one) => one.split('\t', 1)[0] || [])
  }
  expect(offered('gatehouse wor')).toEqual(['workflow'])
  expect(offered('gatehouse keys r').sort()).toEqual(['revoke', 'rotate'])
  expect(offered('gatehouse workflow list --un')).toEqual(['--unfinished'])
  expect(offered('gatehouse check --output s')).toContain('sarif')
})

test('zsh loads its script as a completion of gatehouse', async () => {
  const file = await scriptOf('zsh')
  const load = `autoload -Uz compinit && compinit -D -u && source ${file} && print $_comps[gatehouse]`
  const { stdout, stderr, status } = run('zsh', '-f', '-c', load)
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  expect(stdout.trim()).toMatch(/^_gatehouse/)
})

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** The variables of the service, which systemd reads as a file and the commands of the guides by a shell. */
const samples: Readonly<Record<string, string>> = {
  'deploy/systemd/environment': readFileSync('deploy/systemd/environment', 'utf8').replace(/^#(?=[A-Z_]+=)/gm, ''),
  'docs/guides/scaling.md':
    /\n## As a service\n[\s\S]*?\n```ini\n([\s\S]*?)```/.exec(readFileSync('docs/guides/scaling.md', 'utf8'))?.[1] ??
    '',
}

test.each(Object.keys(samples))('a shell reads the variables of %s as systemd does', (file) => {
  // What an operator adds to the address.
  const text = (samples[file] ?? '').replace('sslmode=verify-full', 'sslmode=verify-full&application_name=$a b')
  // systemd removes the quotes around a value, and leaves an unquoted one as it is.
  const expected = Object.fromEntries(
    Array.from(text.matchAll(/^([A-Z_]+)=('?)(.*)\2$/gm), ([, name = '', , value = '']) => [name, value]),
  )
  expect(Object.keys(expected)).toEqual(
    expect.arrayContaining(['GATEHOUSE_URL', 'GATEHOUSE_OPTIONS', 'GATEHOUSE_DATABASE', 'GATEHOUSE_SECRET_KEY']),
  )
  expect(expected['GATEHOUSE_DATABASE']).toContain('&application_name=')
  const read = execFileSync('sh', ['-ac', 'eval "$0"; env -0', text], {
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin' },
  })
  const values = new Map(read.split('\0').map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]))
  for (const [name, value] of Object.entries(expected))
    expect({ name, value: values.get(name) }).toEqual({ name, value })
})

import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseShellTemplate } from './kubectl-loader.ts'

const hostile = [
  '$(touch /tmp/pwned)',
  '`id`',
  "'; rm -rf / #",
  '" && id && "',
  'a b',
  '-x',
  '\\',
  '$HOME',
  '',
  "it's",
  '*',
  'a\nb',
]

/** The output of a real shell. */
const run = (command: string): string => execFileSync('/bin/sh', ['-c', command], { encoding: 'utf8' })

describe('D20: a value never becomes a part of the command', () => {
  const places = [
    'printf %s $v$',
    'printf %s "$v$"',
    "printf %s '$v$'",
    'printf %s x$v$y',
    'printf %s "\\$(echo x)$v$"',
  ]
  test.each(places)('in %s', (source) => {
    const template = parseShellTemplate(source, 'posix')
    for (const value of hostile) {
      const [before, after] = source.includes('x$v$y') ? ['x', 'y'] : [source.includes('echo x') ? 'x' : '', '']
      expect(run(template.render({ v: value }) ?? '')).toBe(`${before}${value}${after}`)
    }
  })

  test('for any value', () => {
    const templates = places.slice(0, 3).map((source) => parseShellTemplate(source, 'posix'))
    const values = fc
      .sample(fc.string({ unit: 'binary', maxLength: 40 }), 200)
      .filter((value) => !value.includes('\0') && !value.includes('\x01') && value.isWellFormed())
    // One shell for all of them, since each takes time to start.
    const commands = values.flatMap((value) => templates.map((template) => template.render({ v: value }) ?? ''))
    const shown = run(commands.map((command) => `${command}; printf '\\001'`).join('\n')).split('\x01')
    expect(shown.slice(0, -1)).toEqual(values.flatMap((value) => templates.map(() => value)))
  })

  test('a text with a null character cannot be written at all', () => {
    expect(parseShellTemplate('echo $v$', 'posix').render({ v: 'a\0b' })).toBeUndefined()
  })

  test('in PowerShell, by its own rules', () => {
    const of = (source: string, value: string) => parseShellTemplate(source, 'powershell').render({ v: value })
    expect(of('k --user=$v$@x', 'ada')).toBe('k --user=ada@x')
    expect(of('k --user=$v$@x', 'a; rm $(b) "c" `d')).toBe('k --user=a`;` rm` `$`(b`)` `"c`"` ``d@x')
    expect(of('k "$v$"', 'a"$(b)`\nc')).toBe('k "a`"`$(b)```nc"')
    expect(of("k '$v$'", "it's \u2019")).toBe("k 'it''s \u2019\u2019'")
    expect(of('k $v$', 'a\nb')).toBeUndefined()
    expect(of('k $v$', '')).toBe("k ''")
  })
})

test.each([
  ['echo `$v$`', 'write $(…)'],
  ['echo $(cat $v$)', 'inside $(…)'],
  ['echo "\\$(cat "$v$")"', 'inside $(…)'],
  ['cat <<EOF $v$', 'here-documents'],
  ["echo \\$'$v$'", "$'…'"],
  ['echo "$v$', 'not closed'],
  ['echo \\$$v$', 'follows a backslash or a dollar'],
])('a command is rejected if a value in it could not be quoted: %s', (source, problem) => {
  expect(() => parseShellTemplate(source.replace('$(cat', '\\$(cat').replace('\\\\$(cat', '\\$(cat'), 'posix')).toThrow(
    problem,
  )
})

test("OpenUnison's command", () => {
  const template = parseShellTemplate(
    String.raw`export TMP_CERT=\$(mktemp) && echo -e "$k8s_newline_cert$" > \$TMP_CERT && kubectl config set-credentials $user_id$@k8s --auth-provider-arg=id-token=$token.encodedIdJSON$ && rm \$TMP_CERT`,
    'posix',
  )
  expect(template.names).toEqual(['k8s_newline_cert', 'user_id', 'token.encodedIdJSON'])
  expect(template.render({ k8s_newline_cert: String.raw`a\nb`, user_id: 'x;id', 'token.encodedIdJSON': 'e.y.z' })).toBe(
    String.raw`export TMP_CERT=$(mktemp) && echo -e "a\\nb" > $TMP_CERT && kubectl config set-credentials 'x;id'@k8s --auth-provider-arg=id-token=e.y.z && rm $TMP_CERT`,
  )
})

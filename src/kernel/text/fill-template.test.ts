import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { fillTemplate } from './fill-template.ts'

function template(text: string): URL {
  const file = join(temporaryFolder(), 'template.yaml')
  writeFileSync(file, text)
  return pathToFileURL(file)
}

test('a value stands in the text, and lines take the place of a line', () => {
  const file = template('name: %{name}-users # $& ${name}\nparams:\n  %{params}\n  %{none}\nend: %{name}\n')
  expect(fillTemplate(file, { name: '$&', params: ['a: 1', 'b:', '  - 2'], none: [] })).toBe(
    'name: $&-users # $& ${name}\nparams:\n  a: 1\n  b:\n    - 2\nend: $&\n',
  )
})

test('a placeholder without a value is an error, and values are not templates', () => {
  expect(() => fillTemplate(template('a: %{absent}\n'), {})).toThrow('%{absent}')
  expect(() => fillTemplate(template('%{absent}\n'), {})).toThrow('%{absent}')
  expect(fillTemplate(template('a: %{a}\n'), { a: '%{b}', b: 'no' })).toBe('a: %{b}\n')
  expect(fillTemplate(template('%{a}\n'), { a: ['%{b}'], b: 'no' })).toBe('%{b}\n')
})

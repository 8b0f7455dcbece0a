import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { loadText } from '#testing/modules/check-text.ts'

const count = 20_000
const times = (make: (position: number) => string, separator = '\n'): string =>
  Array.from({ length: count }, (_, i) => make(i)).join(separator)
const group = (name: string, spec: string): string =>
  `---\napiVersion: openunison.tremolo.io/v1\nkind: ResultGroup\nmetadata: { name: ${name} }\nspec:\n${spec}\n`
const alias = (depth: number): string =>
  Array.from({ length: depth }, (_, i) => `- &a${i + 1} [${Array(10).fill(`*a${i}`).join(', ')}]`).join('\n')
const good = group('good', '- { resultType: header, source: static, value: X=y }')

/** What stops a parser, a schema, or the search for the places of problems. */
const hostile: readonly (readonly [what: string, text: string, message: RegExp])[] = [
  [
    'a list of wrong entries',
    group(
      'bad',
      times(() => '- {a: 1}'),
    ),
    /has \d+ problems, of which the first are shown/,
  ],
  [
    'many unknown keys',
    group('bad', `- { resultType: header, source: static, value: X=y, ${times((i) => `k${i}: 1`, ', ')} }`),
    /unknown key|problems/,
  ],
  [
    'keys of a map',
    group(
      'bad',
      times((i) => `  k${i}: 1`),
    ),
    /expected a list/,
  ],
  ['aliases', group('bad', `  - &x 1\n  - [${times(() => '*x', ', ')}]`), /expected/],
  ['aliases of aliases', group('bad', `- &a0 [x]\n${alias(12)}`), /nested too deep or too large|expected/],
  ['an alias of itself', group('bad', '- &x [*x]'), /nested too deep|expected/],
  ['brackets', group('bad', `  - ${'['.repeat(count)}`), /./],
  [
    'tags',
    group(
      'bad',
      times((i) => `- !<tag:x,${i}> y`),
    ),
    /tag/,
  ],
  ['a prototype', group('bad', '- { __proto__: { resultType: header }, constructor: 1 }'), /not allowed as a key/],
  ['a merge key', group('bad', '- &x { resultType: header, source: static, value: X=y }\n- { <<: *x }'), /<</],
]

test.each(hostile)('an object with %s is reported, and the others are served', (_what, text, message) => {
  const started = performance.now()
  const { issues, configuration } = loadText(good + text, catalog)
  expect(issues.map((issue) => issue.message).join('\n')).toMatch(message)
  expect([...(configuration?.resultGroups.keys() ?? [])]).toEqual(['good'])
  // Some of them took minutes.
  expect(performance.now() - started).toBeLessThan(20_000)
})

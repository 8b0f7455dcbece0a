import { expect, test } from 'vitest'
import { parseSoakOptions } from './soak-options.ts'

test('a soak takes 30 minutes unless others are given', () => {
  expect(parseSoakOptions([])).toMatchObject({ minutes: 30, help: false, inner: false })
  expect(parseSoakOptions(['--minutes', '1', '--plot', 'soak.svg'])).toMatchObject({ minutes: 1, plot: 'soak.svg' })
  expect(parseSoakOptions(['--help'])).toMatchObject({ help: true })
})

test.each([[['--minutes', '0']], [['--minutes', '10000']], [['--minutes', 'many']], [['--minute', '3']], [['3']]])(
  '%j shows the usage',
  (args) => {
    expect(() => parseSoakOptions(args)).toThrow('Usage: npm run soak')
  },
)

import { expect, test } from 'vitest'
import { parseOptions } from './options.ts'

test('words are parts and numbers are sizes', () => {
  expect(parseOptions(['directories', '5000', '--quick'])).toMatchObject({
    words: ['directories'],
    sizes: [5000],
    quick: true,
  })
})

test('a commit of digits is not a size', () => {
  expect(parseOptions(['before', '1234567', 'directories', '10'])).toMatchObject({
    words: ['before', '1234567', 'directories'],
    sizes: [10],
  })
})

test.each([[['--turns', '0']], [['--turns', 'many']], [['--fast']]])('%j shows the usage', (args) => {
  expect(() => parseOptions(args)).toThrow('Usage: npm run bench')
})

test('peers takes no parts', () => {
  expect(() => parseOptions(['peers', 'directories'])).toThrow('peers takes no parts or sizes')
  expect(parseOptions(['peers', '--turns', '1'])).toMatchObject({ words: ['peers'], turns: 1 })
})

test('--help is off unless given', () => {
  expect(parseOptions(['--help'])).toMatchObject({ help: true })
  expect(parseOptions(['tokens'])).toMatchObject({ help: false })
})

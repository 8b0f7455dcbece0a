import fc from 'fast-check'
import { expect, test } from 'vitest'
import { black, type Colour, contrast, readable, readColour, white, writeColour } from './colours.ts'
import { defaultColours, shades, variablesOf } from './theme.ts'

const part = fc.integer({ min: 0, max: 255 })
const colour = fc.tuple(part, part, part) as fc.Arbitrary<Colour>

test('colors are parsed and formatted', () => {
  expect(readColour('#AC1622')).toEqual([172, 22, 34])
  expect(readColour('#fff')).toEqual(white)
  expect(['red', '#12', '', '#12345g', 'url(#x)'].map(readColour)).toEqual(Array(5).fill(undefined))
  fc.assert(
    fc.property(colour, (one) => {
      expect(readColour(writeColour(one))).toEqual(one)
    }),
  )
})

test('contrast follows WCAG', () => {
  expect(contrast(white, black)).toBeCloseTo(21)
  expect(contrast([118, 118, 118], white)).toBeCloseTo(4.54, 1)
})

test('with any configuration, text is readable on the page and on its tint', () => {
  fc.assert(
    fc.property(colour, colour, (one, background) => {
      expect(contrast(readable(one, background), background)).toBeGreaterThanOrEqual(4.5)
    }),
  )
  fc.assert(
    fc.property(colour, colour, (primary, error) => {
      const given = { ...defaultColours, themePrimaryMain: writeColour(primary), errorColor: writeColour(error) }
      // The resolver needs no theme.
      const { light, dark } = variablesOf(given)(undefined as never)
      for (const scheme of [light, dark]) {
        const written = new Map(Object.entries(scheme))
        const read = (name: string): Colour => readColour(written.get(name) ?? '') ?? black
        const surface = scheme === light ? white : ([36, 36, 36] as const)
        expect(contrast(read('--mantine-color-anchor'), surface)).toBeGreaterThanOrEqual(4.5)
        expect(contrast(read('--mantine-color-error'), surface)).toBeGreaterThanOrEqual(4.5)
        const text = read('--mantine-color-primary-light-color')
        expect(contrast(text, read('--mantine-color-primary-light-hover'))).toBeGreaterThanOrEqual(4.5)
      }
    }),
  )
})

test('there are ten shades, of which the sixth is the main one', () => {
  const ten = shades([188, 68, 78], [172, 22, 34], [120, 15, 23])
  expect(ten).toHaveLength(10)
  expect(ten[6]).toBe('#ac1622')
})

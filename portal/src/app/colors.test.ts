import fc from 'fast-check'
import { expect, test } from 'vitest'
import { black, type Color, contrast, readable, readColor, white, writeColor } from '#sdk/page/colors.ts'
import { type PortalColors, portalColors, shades, surfaces, themeOf, variablesOf } from './theme.ts'

const names = ['primary', 'secondary', 'red', 'green', 'yellow']
const part = fc.integer({ min: 0, max: 255 })
const color = fc.tuple(part, part, part) as fc.Arbitrary<Color>

test('colors are parsed and formatted', () => {
  expect(readColor('#AC1622')).toEqual([172, 22, 34])
  expect(readColor('#fff')).toEqual(white)
  expect([readColor('#fff8'), readColor('#AC162280')]).toEqual([white, [172, 22, 34]])
  expect(['red', '#12', '', '#12345g', 'url(#x)'].map(readColor)).toEqual(Array(5).fill(undefined))
  fc.assert(
    fc.property(color, (one) => {
      expect(readColor(writeColor(one))).toEqual(one)
    }),
  )
})

test('contrast follows WCAG', () => {
  expect(contrast(white, black)).toBeCloseTo(21)
  expect(contrast([118, 118, 118], white)).toBeCloseTo(4.54, 1)
})

test('with any configuration, text is readable on the page and on its tint', () => {
  fc.assert(
    fc.property(color, color, (one, background) => {
      expect(contrast(readable(one, background), background)).toBeGreaterThanOrEqual(4.5)
    }),
  )
  fc.assert(
    fc.property(color, color, color, (primary, secondary, error) => {
      expectReadable({
        ...portalColors,
        themePrimaryMain: writeColor(primary),
        themeSecondaryMain: writeColor(secondary),
        errorColor: writeColor(error),
      })
    }),
  )
})

test('so is text with the default colors', () => expectReadable(portalColors))

test('the ring around the focus stands out from the page and from cards, in both schemes', () => {
  for (const name of ['light', 'dark'] as const) {
    const ring = read(variablesOf(portalColors)(undefined as never)[name], '--portal-focus')
    for (const background of Object.values(surfaces[name])) {
      expect(contrast(ring, background)).toBeGreaterThanOrEqual(3)
    }
  }
})

test('success, warning, error, focus and primary are different colors', () => {
  for (const name of ['light', 'dark'] as const) {
    const variables = variablesOf(portalColors)(undefined as never)[name]
    const names = ['--portal-good', '--portal-waiting', '--portal-bad', '--portal-focus', '--mantine-color-anchor']
    expect(new Set(names.map((one) => writeColor(read(variables, one)))).size).toBe(names.length)
  }
})

test('there are ten shades, of which the seventh is the main one', () => {
  const ten = shades({ light: [188, 68, 78], main: [172, 22, 34], dark: [120, 15, 23] })
  expect(ten).toHaveLength(10)
  expect(ten[6]).toBe('#ac1622')
})

test('a main color that is configured alone gets its own shades', () => {
  const shadesOf = (given: Partial<PortalColors>) => themeOf({ ...portalColors, ...given }).colors?.['primary'] ?? []
  const own = shadesOf({ themePrimaryMain: '#ff0000' })
  expect([own[5], own[8]]).toEqual(['#ff4040', '#bf0000'])
  expect(shadesOf({ themePrimaryMain: '#ff0000', themePrimaryDark: '#123456' })[8]).toBe('#123456')
  expect(shadesOf({})[8]).toBe(portalColors.themePrimaryDark)
})

function read(variables: object, name: string): Color {
  const found = readColor(new Map<string, string>(Object.entries(variables)).get(name) ?? '')
  if (found === undefined) throw new Error(`no color ${name}`)
  return found
}

/** All text of a meaning or a theme color: at least 4.5 on the page, on cards, in fields and on its own tint. */
function expectReadable(given: PortalColors): void {
  // The resolver needs no theme.
  const schemes = variablesOf(given)(undefined as never)
  for (const name of ['light', 'dark'] as const) {
    const variables = schemes[name]
    const texts = ['anchor', 'error', 'dimmed', ...names.map((color) => `${color}-outline`)]
    for (const text of texts) {
      for (const background of Object.values(surfaces[name])) {
        expect(contrast(read(variables, `--mantine-color-${text}`), background)).toBeGreaterThanOrEqual(4.5)
      }
    }
    for (const color of names) {
      const text = read(variables, `--mantine-color-${color}-light-color`)
      for (const tint of ['light', 'light-hover']) {
        const background = read(variables, `--mantine-color-${color}-${tint}`)
        expect(contrast(text, background)).toBeGreaterThanOrEqual(4.5)
      }
    }
  }
}

import { expect, test } from 'vitest'
import { defaultColors } from '#sdk/page/default-colors.ts'
import { pageTheme, portalLook } from './page-theme.ts'

const given = { ...defaultColors, headerTitle: 'Acme' }

test('pages have the colors of the portal, without opacity', () => {
  expect(portalLook({ ...given, themePrimaryMain: '#1234', themePrimaryDark: '#11223344' })).toEqual({
    name: 'Acme',
    theme: { main: '#123', dark: '#112233', error: defaultColors.errorColor },
  })
})

test('a main color alone gets a shade of its own, instead of the default one', () => {
  expect(portalLook({ ...given, themePrimaryMain: '#0b5fff' }).theme).not.toHaveProperty('dark')
  expect(portalLook(given).theme).toHaveProperty('dark', defaultColors.themePrimaryDark)
  expect(pageTheme({ themePrimaryMain: '#0b5fff', themePrimaryDark: undefined })).toEqual({ main: '#0b5fff' })
  expect(pageTheme({ themePrimaryMain: undefined, themePrimaryDark: '#000' })).toBeUndefined()
})

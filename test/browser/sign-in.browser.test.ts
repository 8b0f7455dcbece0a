import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import {
  expectAccessible,
  expectLooks,
  password,
  picture,
  useColors,
  usePortal,
} from '#testing/browser/portal-browser.ts'

const words = {
  'en-GB': {
    title: 'Sign in',
    user: 'User name',
    password: 'Password',
    forgot: 'Forgot your password?',
    join: 'Create an account',
  },
  'de-DE': {
    title: 'Anmelden',
    user: 'Benutzername',
    password: 'Passwort',
    forgot: 'Passwort vergessen?',
    join: 'Konto erstellen',
  },
} as const

/** The color of an element, as the browser computes it. */
const color = (page: Page, selector: string, property: string): Promise<string> =>
  page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).${property}`)

describe.skipIf(!hasChromium())('the sign-in pages', () => {
  const { open, visit, url } = usePortal({
    changes: {
      'portal.yaml': (text) =>
        text.replace('headerTitle: Example', 'headerTitle: Acme Access\n            themePrimaryMain: "#0b5fff"'),
    },
  })

  test.each(['en-GB', 'de-DE'] as const)('look like the portal, in all colors and sizes: %s', async (locale) => {
    const text = words[locale]
    const { page, complaints } = await open('/portal', { locale })
    await page.getByRole('heading', { level: 1, name: text.title }).waitFor()
    expect(await page.locator('html').getAttribute('lang')).toBe(locale.slice(0, 2))
    expect(await page.title()).toBe(`${text.title} · Acme Access`)
    await page.getByRole('banner').getByText('Acme Access').waitFor()
    for (const [colors, background] of [
      ['dark', 'rgb(23, 25, 30)'],
      ['light', 'rgb(246, 247, 249)'],
    ] as const) {
      await useColors(page, colors)
      expect(await color(page, 'button', 'backgroundColor')).toBe('rgb(11, 95, 255)')
      expect(await color(page, 'body', 'backgroundColor')).toBe(background)
    }
    await page.getByRole('link', { name: text.forgot }).waitFor()
    await page.getByRole('link', { name: text.join }).waitFor()
    await expectLooks(page, `sign-in-${locale}`)

    await page.getByLabel(text.user).fill('mary')
    await page.getByLabel(text.password).fill('wrong horse')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    expect(await page.getByLabel(text.user).inputValue()).toBe('mary')
    expect(await page.getByLabel(text.password).inputValue()).toBe('')
    expect(await page.evaluate<string>('document.activeElement.id')).toBe('pwd')
    await expectLooks(page, `sign-in-failed-${locale}`)

    await page.keyboard.type(password)
    await page.keyboard.press('Enter')
    await page.waitForURL((address) => address.pathname.startsWith('/portal'))
    expect(complaints.filter((line) => !/status of 401/.test(line))).toEqual([])
  })

  test('follow the language and the appearance chosen in the portal, also after signing out', async () => {
    const { page } = await visit('/portal', 'mary', { colorScheme: 'light' })
    await page.getByRole('button', { name: 'Language' }).click()
    await page.getByRole('menuitemradio', { name: 'Français' }).click()
    await page.getByRole('button', { name: 'Apparence' }).click()
    await page.getByRole('menuitemradio', { name: 'Sombre' }).click()
    await page.goto(url('/portal/logout'))
    await page.getByRole('heading', { name: 'Vous êtes déconnecté' }).waitFor()
    expect(await color(page, 'body', 'backgroundColor')).toBe('rgb(23, 25, 30)')
    await expectAccessible(page, 'signed out')
    await picture(page, 'signed-out-fr-dark')
    await page.goto(url('/portal'))
    await page.getByRole('heading', { name: 'Connexion' }).waitFor()
    await page.goto(url('/auth/formLogin'))
    await page.getByRole('heading', { name: 'Cette connexion est terminée' }).waitFor()
    await expectAccessible(page, 'a login that has ended')
  })

  test('work without scripts', async () => {
    const { page } = await open('/portal', { javaScriptEnabled: false })
    await page.getByLabel('User name').fill('mary')
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL((address) => address.pathname.startsWith('/portal'))
  })
})

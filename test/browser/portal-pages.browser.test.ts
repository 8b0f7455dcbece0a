import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { ask, expectAccessible, expectLooks, picture, settled, usePortal } from '#testing/browser/portal-browser.ts'

const pages = ['', 'request', 'request/cart', 'requests', 'approvals', 'approvals/deputies', 'profile'] as const

describe.skipIf(!hasChromium())('the pages of the portal', () => {
  const { visit } = usePortal()
  beforeAll(async () => {
    const { page } = await visit('/portal/request', 'ada')
    await ask(page, 'Access to the vault', 'On call')
  })

  test('are accessible and fit the window', async () => {
    const { page, complaints } = await visit('/portal', 'grace')
    for (const path of pages) {
      await page.goto(`/portal/${path}`)
      await settled(page)
      await expectLooks(page, path === '' ? 'home' : path.replaceAll('/', '-'))
    }
    await page.goto('/portal/approvals')
    await page.getByRole('link', { name: 'Access to the vault for ada' }).click()
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    await expectLooks(page, 'approval')
    expect(complaints).toEqual([])
  })

  test('the timeline of a request', async () => {
    const { page, complaints } = await visit('/portal/requests', 'ada')
    await page.getByRole('link', { name: 'Access to the vault' }).click()
    await page.getByText('Waiting for:').waitFor()
    await expectLooks(page, 'request-details')
    expect(complaints).toEqual([])
  })

  test('language and theme are chosen, and stored', async () => {
    const { page, complaints } = await visit('/portal', 'ada')
    await settled(page)
    const names = { Deutsch: 'Sprache', Español: 'Idioma', Français: 'Langue', 日本語: '言語', English: 'Language' }
    let label = 'Language'
    await page.getByRole('button', { name: label }).click()
    await expectAccessible(page, 'the menu of languages')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Account of Ada Lovelace' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).waitFor()
    await expectAccessible(page, 'the menu of the person')
    await page.keyboard.press('Escape')
    for (const [language, next] of Object.entries(names)) {
      await page.getByRole('button', { name: label, exact: true }).click()
      await page.getByRole('menuitemradio', { name: language }).click()
      await page.getByRole('button', { name: next, exact: true }).waitFor()
      label = next
      if (language === '日本語') await picture(page, 'home-japanese')
    }
    await page.getByRole('button', { name: 'Language' }).click()
    await page.getByRole('menuitemradio', { name: 'Deutsch' }).click()
    await page.getByRole('link', { name: 'Meine Anträge' }).waitFor()
    await page.getByRole('button', { name: 'Darstellung' }).click()
    await page.getByRole('menuitemradio', { name: 'Dunkel' }).click()
    await page.reload()
    await page.getByRole('link', { name: 'Meine Anträge' }).waitFor()
    const root = page.locator('html')
    expect([await root.getAttribute('lang'), await root.getAttribute('data-mantine-color-scheme')]).toEqual([
      'de',
      'dark',
    ])
    expect(complaints).toEqual([])
  })

  test('by keyboard alone: a request, and its approval', async () => {
    const { page: joan, complaints } = await visit('/portal', 'joan')
    await settled(joan)
    await joan.keyboard.press('Tab')
    expect(await focused(joan)).toBe('Skip to content')
    await tabTo(joan, 'Request access')
    await joan.keyboard.press('Enter')
    await joan.getByRole('heading', { level: 1, name: 'Request access' }).waitFor()
    await expect.poll(() => focused(joan)).toBe('Request access')
    await tabTo(joan, 'Add Access to the vault to the cart')
    await joan.keyboard.press('Space')
    await tabTo(joan, 'Check out')
    await joan.keyboard.press('Enter')
    await joan.getByRole('heading', { level: 1, name: 'Checkout' }).waitFor()
    await tabTo(joan, 'Reason')
    await joan.keyboard.type('By keyboard')
    await tabTo(joan, 'Submit request')
    await joan.keyboard.press('Enter')
    await joan.getByText('1 request submitted').waitFor()

    const { page: grace } = await visit('/portal/approvals?q=keyboard', 'grace')
    await settled(grace)
    await grace.getByText('By keyboard').waitFor()
    await tabTo(grace, 'Access to the vault for Joan Clarke')
    await grace.keyboard.press('Enter')
    await grace.getByRole('button', { name: 'Approve' }).waitFor()
    await tabTo(grace, 'Comment')
    await grace.keyboard.type('Fine')
    await tabTo(grace, 'Approve')
    await grace.keyboard.press('Enter')
    await grace.getByText('Approved: Access to the vault for Joan Clarke').waitFor()
    expect(complaints).toEqual([])
  })
})

/** The name of the focused element, as far as a test needs it. */
const focused = (page: Page): Promise<string> =>
  page.evaluate<string>(`(() => {
    const at = document.activeElement
    const label = at.id === '' ? null : document.querySelector('label[for="' + at.id + '"]')
    return (at.getAttribute('aria-label') ?? label?.textContent ?? at.textContent ?? '').trim()
  })()`)

/** Presses Tab until the focused element's name begins with this; a page has at most this many stops. */
async function tabTo(page: Page, name: string): Promise<void> {
  const passed: string[] = []
  for (let stops = 0; stops < 60; stops += 1) {
    await page.keyboard.press('Tab')
    const at = await focused(page)
    if (at.startsWith(name)) return
    passed.push(at)
  }
  throw new Error(`no way to "${name}" by Tab, past ${passed.join(' | ')}`)
}

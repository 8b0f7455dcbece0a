import { beforeAll, describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import {
  ask,
  expectAccessible,
  expectLooks,
  heading,
  picture,
  settled,
  usePortal,
} from '#testing/browser/portal-browser.ts'

describe.skipIf(!hasChromium())('the palette and the shortcuts of the portal', () => {
  const { visit } = usePortal()
  beforeAll(async () => {
    const { page } = await visit('/portal/request', 'ada')
    await ask(page, 'Access to the vault', 'On call')
  })

  test('the palette is accessible and fits the window', async () => {
    const { page, complaints } = await visit('/portal', 'ada')
    await settled(page)
    await page
      .getByRole('banner')
      .getByRole('button', { name: /^Search/ })
      .click()
    const field = page.getByRole('combobox', { name: 'Search the portal' })
    await field.waitFor()
    await expectLooks(page, 'palette')
    await field.fill('vault')
    await page.getByRole('option', { name: 'Access to the vault' }).first().waitFor()
    await expectLooks(page, 'palette-results')
    await field.fill('no such thing')
    await page.getByText('No results for “no such thing”').waitFor()
    await expectLooks(page, 'palette-no-results')
    expect(complaints).toEqual([])
  })

  test('finds pages, links, access, requests and people, by keyboard alone', async () => {
    const { page, complaints } = await visit('/portal', 'ada')
    await settled(page)
    const field = page.getByRole('combobox', { name: 'Search the portal' })
    const active = page.locator('[role="option"][aria-selected="true"]')
    const search = async (text: string, first: string): Promise<void> => {
      await page.keyboard.press('Control+k')
      await field.waitFor()
      // The field appears before it has the focus.
      await expect.poll(() => page.evaluate<string>('document.activeElement.role')).toBe('combobox')
      await page.keyboard.type(text)
      await expect.poll(() => active.innerText()).toContain(first)
      expect(await field.getAttribute('aria-activedescendant')).toBe(await active.getAttribute('id'))
    }

    await search('profile', 'Profile')
    await page.keyboard.press('Enter')
    await heading(page, 'Profile')
    expect(await field.count()).toBe(0)

    await search('mail', 'Mail')
    const opened = page.waitForEvent('popup')
    await page.context().route('https://mail.example.com/**', (route) => route.fulfill({ body: 'Mail' }))
    await page.keyboard.press('Enter')
    expect((await opened).url()).toBe('https://mail.example.com/')
    await page.bringToFront()

    await search('access to the vault', 'Access to the vault')
    const groups = page.getByRole('listbox').getByRole('group')
    await expect.poll(() => groups.count()).toBe(2)
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowUp')
    const request = page.getByRole('group', { name: 'My recent requests' }).getByRole('option')
    expect(await request.innerText()).toMatch(/ada/i)
    while ((await request.getAttribute('aria-selected')) !== 'true') await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await heading(page, 'Access to the vault')

    await search('the project share', 'The project share')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/request/item?name=project-share')
    await heading(page, 'The project share')

    await search('grace', 'Grace')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/requests?q=grace')
    expect(complaints.filter((text) => !text.includes('mail.example.com'))).toEqual([])
  })

  test('Escape closes the palette, and the focus returns', async () => {
    const { page } = await visit('/portal/requests', 'ada')
    await settled(page)
    await page.getByRole('searchbox').focus()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search the portal' }).waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(() => page.getByRole('searchbox').evaluate((field) => field.matches(':focus'))).toBe(true)
  })

  test('does not look for people where the user may not', async () => {
    const { page } = await visit('/portal', 'ada')
    await settled(page)
    await page.route('**/main/config', async (route) => {
      const answer = await route.fetch()
      await route.fulfill({ json: { ...(await answer.json()), canSearchPeople: false } })
    })
    const asked: string[] = []
    page.on('request', (request) => {
      if (request.url().includes('kind=person')) asked.push(request.url())
    })
    await page.reload()
    await settled(page)
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search the portal' }).fill('grace')
    await page.getByText('No results for “grace”').waitFor()
    expect(asked).toEqual([])
  })

  test('a search that fails is reported, not shown as empty', async () => {
    const { page } = await visit('/portal', 'ada')
    await settled(page)
    await page.route('**/search?**', (route) => route.fulfill({ status: 403, json: { errors: ['Not now.'] } }))
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search the portal' }).fill('vault')
    await page.getByText('Not now.').waitFor()
    expect(await page.getByText('No results').count()).toBe(0)
  })

  test('keys open pages and the help, never while typing, and can be turned off', async () => {
    const { page, complaints } = await visit('/portal', 'grace')
    await settled(page)
    await page.keyboard.press('g')
    await page.keyboard.press('r')
    await heading(page, 'My requests')
    await page.keyboard.press('/')
    await page.keyboard.type('g a?')
    expect(await page.getByRole('searchbox').inputValue()).toBe('g a?')
    await heading(page, 'My requests')
    await page.getByRole('heading', { level: 1 }).focus()
    await page.keyboard.press('g')
    await page.keyboard.press('a')
    await heading(page, 'Approvals')

    await page.keyboard.press('?')
    const sheet = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
    await sheet.waitFor()
    await expectAccessible(page, 'the help')
    await picture(page, 'shortcuts')
    await sheet.getByRole('switch', { name: 'Single-key shortcuts' }).press('Space')
    await page.keyboard.press('Escape')
    await sheet.waitFor({ state: 'detached' })
    await page.reload()
    await settled(page)
    for (const key of ['?', 'g', 'h']) await page.keyboard.press(key)
    expect(await sheet.count()).toBe(0)
    await heading(page, 'Approvals')

    await page.getByRole('button', { name: /^Account of/ }).click()
    await page.getByRole('menuitem', { name: 'Keyboard shortcuts' }).click()
    await sheet.waitFor()
    expect(complaints).toEqual([])
  })

  test('speaks German', async () => {
    const { page, complaints } = await visit('/portal', 'joan')
    await settled(page)
    await page.evaluate("localStorage.setItem('gatehouse.language', 'de')")
    await page.reload()
    await page.getByRole('banner').getByRole('button', { name: 'Suchen' }).click()
    await page.getByRole('combobox', { name: 'Das Portal durchsuchen' }).fill('anträge')
    await page.getByRole('group', { name: 'Seiten' }).getByRole('option', { name: 'Meine Anträge' }).click()
    await heading(page, 'Meine Anträge')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Tastenkürzel' }).waitFor()
    await expectAccessible(page, 'the help in German')
    expect(complaints).toEqual([])
  })
})

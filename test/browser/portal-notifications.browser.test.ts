import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { ask, expectLooks, heading, settled, usePortal } from '#testing/browser/portal-browser.ts'

describe.skipIf(!hasChromium())('notifications in the portal', () => {
  const { visit } = usePortal()

  test('an approver sees a request, opens it by keyboard, and the requester sees the denial', async () => {
    const { page: ada, complaints } = await visit('/portal/request', 'ada')
    await ask(ada, 'Access to the vault', 'On call')
    const { page: grace } = await visit('/portal', 'grace')
    const bell = grace.getByRole('link', { name: '1 unread notification' })
    await bell.focus()
    await grace.keyboard.press('Enter')
    await heading(grace, 'Notifications')
    // The page scrolls, not the list.
    await grace.getByRole('main').getByRole('list').waitFor()
    const style = "getComputedStyle(document.querySelector('main ul'))"
    expect(await grace.evaluate(`[${style}.maxHeight, ${style}.listStyleType]`)).toEqual(['none', 'none'])
    const row = grace.getByRole('link', { name: 'Needs your decision: Access to the vault for ada' })
    await row.focus()
    await grace.keyboard.press('Enter')
    await heading(grace, 'Access to the vault for ada')
    await grace.getByRole('link', { name: 'Notifications', exact: true }).waitFor()
    await grace.getByRole('textbox', { name: 'Comment' }).fill('Not today')
    await grace.getByRole('button', { name: 'Deny' }).click()

    await expect.poll(() => bellOf(ada), { timeout: 60_000 }).toBe('1 unread notification')
    await ada.goto('/portal/notifications')
    await ada.getByRole('link', { name: 'Access to the vault was denied' }).waitFor()
    await ada.getByRole('button', { name: 'Mark all as read' }).click()
    await ada.getByRole('link', { name: 'Notifications', exact: true }).waitFor()
    await ada.reload()
    await ada.getByRole('link', { name: 'Access to the vault was denied' }).waitFor()
    expect(await ada.getByText('New', { exact: true }).count()).toBe(0)
    expect(complaints).toEqual([])
  })

  /** The name of the bell after loading the page again. */
  const bellOf = async (page: Awaited<ReturnType<typeof visit>>['page']): Promise<string | null> => {
    await page.goto('/portal')
    await settled(page)
    return page
      .getByRole('banner')
      .getByRole('link', { name: /notification/i })
      .getAttribute('aria-label')
  }

  test('a user chooses what to be mailed about, by keyboard, and the choice stays', async () => {
    const { page, complaints } = await visit('/portal/notifications', 'ada')
    const settings = page.getByRole('link', { name: 'Mail settings' })
    await settings.focus()
    await page.keyboard.press('Enter')
    await heading(page, 'Mail settings')
    const outcomes = page.getByRole('combobox', { name: 'My request was decided or has ended' })
    expect(await outcomes.inputValue()).toBe('now')
    expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
    await outcomes.selectOption('Never')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Mail settings saved').waitFor()
    await page.reload()
    await heading(page, 'Mail settings')
    await expect.poll(() => outcomes.inputValue()).toBe('never')
    expect(complaints).toEqual([])
  })

  test('the language of the portal becomes that of the mails', async () => {
    const { page, complaints } = await visit('/portal/notifications/settings', 'joan')
    const language = page.getByRole('combobox', { name: 'Language of mails' })
    await language.waitFor()
    expect(await language.inputValue()).toBe('en')
    await page.getByRole('button', { name: 'Language' }).click()
    const saved = page.waitForResponse((response) => response.request().method() === 'PUT')
    await page.getByRole('menuitemradio', { name: 'Deutsch' }).click()
    expect((await saved).status()).toBe(200)
    const german = page.getByRole('combobox', { name: 'Sprache der Mails' })
    await expect.poll(() => german.inputValue()).toBe('de')
    await page.reload()
    await expect.poll(() => german.inputValue()).toBe('de')
    expect(complaints).toEqual([])
  })

  test('the page and the settings are accessible and fit the window', async () => {
    const { page, complaints } = await visit('/portal/notifications', 'ada')
    await page.getByRole('link', { name: 'Access to the vault was denied' }).waitFor()
    await settled(page)
    await expectLooks(page, 'notifications')
    await page.goto('/portal/notifications/settings')
    await page.getByRole('combobox', { name: 'A request needs my decision' }).waitFor()
    await settled(page)
    await expectLooks(page, 'notification-settings')
    const { page: empty } = await visit('/portal/notifications', 'linus')
    await empty.getByRole('heading', { name: "You're all caught up" }).waitFor()
    await expectLooks(empty, 'notifications-none')
    expect(complaints).toEqual([])
  })
})

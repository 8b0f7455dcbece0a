import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectAccessible, heading, picture, settled, usePortal } from '#testing/browser/portal-browser.ts'

describe.skipIf(!hasChromium())('the frame of the portal', () => {
  const { visit } = usePortal()

  test('a dialog covers the whole window, also beside the content', async () => {
    const { page } = await visit('/portal/security', 'joan', { reducedMotion: 'no-preference' })
    await heading(page, 'Security')
    // The space of a scrollbar is kept free beside the content.
    const beside = 'window.innerWidth - document.documentElement.getBoundingClientRect().right'
    expect(await page.evaluate<number>(beside)).toBeGreaterThan(0)
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByRole('dialog').waitFor()
    const covered = (): Promise<number> =>
      page.evaluate<number>(
        'window.innerWidth - document.querySelector(".mantine-Modal-overlay").getBoundingClientRect().right',
      )
    await expect.poll(covered).toBe(0)
    await expectAccessible(page, 'a dialog and the page behind it', { part: 'html' })
    await picture(page, 'dialog-covers')
  })

  test('a page that takes long to load shows its progress, and then its content', async () => {
    const { page } = await visit('/portal', 'mary')
    await settled(page)
    let answer = (): void => {}
    const held = new Promise<void>((resolve) => {
      answer = resolve
    })
    await page.route(/\/main\/requests\?/, async (route) => {
      await held
      await route.continue()
    })
    await page.getByRole('navigation').getByRole('link', { name: 'My requests' }).click()
    const progress = page.getByRole('progressbar', { name: 'Loading' })
    await progress.waitFor()
    await expectAccessible(page, 'a page that loads')
    await picture(page, 'progress')
    answer()
    await progress.waitFor({ state: 'detached' })
    await heading(page, 'My requests')
  })
})

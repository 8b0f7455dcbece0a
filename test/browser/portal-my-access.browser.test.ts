import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import {
  ask,
  expectAccessible,
  follow,
  heading,
  isTooWide,
  picture,
  usePortal,
} from '#testing/browser/portal-browser.ts'

describe.skipIf(!hasChromium())('my access', () => {
  const { visit } = usePortal()

  test('lists groups that no request gave without a date', async () => {
    const { page, complaints } = await visit('/portal', 'grace')
    await follow(page, 'My access')
    await heading(page, 'My access')
    const groups = page.getByRole('region', { name: 'Groups' })
    await groups.getByRole('heading', { level: 3, name: 'owners' }).waitFor()
    await groups.getByText('No known request added you to this group').first().waitFor()
    expect(await page.getByRole('button', { name: 'Give back' }).count()).toBe(0)
    await expectAccessible(page, 'my access with groups')
    expect(complaints).toEqual([])
  })

  test('shows the request that granted access, gives it back and requests it again', async () => {
    const { page, complaints } = await visit('/portal/request', 'ada')
    await ask(page, 'Access to the vault', 'On call')
    const { page: grace } = await visit('/portal/approvals', 'grace')
    await grace.getByRole('link', { name: 'Access to the vault for ada' }).click()
    await grace.getByRole('textbox', { name: 'Comment' }).fill('Fine')
    await grace.getByRole('button', { name: 'Approve' }).click()
    await grace.getByText('Approved: Access to the vault for ada').waitFor()
    await page.getByRole('link', { name: 'View in My requests' }).click()
    await page.getByRole('link', { name: 'Access to the vault' }).click()
    await page.getByText('Done').first().waitFor()

    await follow(page, 'My access')
    const timed = page.getByRole('region', { name: 'Temporary access' })
    await timed.getByText(/^Until .*\(in 8 hours\)$/).waitFor()
    await expectAccessible(page, 'my access')
    await picture(page, 'my-access')
    await timed.getByRole('link', { name: 'Access to the vault' }).click()
    await heading(page, 'Access to the vault')
    await page.goBack()

    await timed.getByRole('button', { name: 'Give back: vault' }).press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Give back access' })
    await dialog.getByText('Your access to vault in people ends now').waitFor()
    await expectAccessible(page, 'the dialog to give access back')
    await dialog.getByRole('button', { name: 'Keep access' }).press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await timed.getByRole('button', { name: 'Give back: vault' }).click()
    await dialog.getByRole('button', { name: 'Give back' }).click()
    await dialog.waitFor({ state: 'detached' })
    const ended = page.getByRole('region', { name: 'Ended access' })
    await ended.getByText('Ended', { exact: true }).waitFor()
    await ended.getByRole('link', { name: 'Request again: vault' }).waitFor()
    await expectAccessible(page, 'access that ended')

    await ended.getByRole('link', { name: 'Access to the vault' }).click()
    await heading(page, 'Access to the vault')
    await page.getByText(/^Access given back .*\(.*\)$/).waitFor()
    await follow(page, 'My requests')
    await page.getByText(/ · Access given back /).waitFor()
    await page.getByText('Removal of access: vault (people)').waitFor()
    await follow(page, 'My access')
    await ended.waitFor()

    await page.setViewportSize({ width: 390, height: 844 })
    await expect.poll(() => isTooWide(page)).toBe(false)
    await picture(page, 'my-access-phone')
    expect(complaints).toEqual([])
  })
})

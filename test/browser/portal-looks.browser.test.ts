import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { ask, expectAccessible, expectLooks, picture, settled, usePortal } from '#testing/browser/portal-browser.ts'

/** Pages that not every user has, as an administrator sees them; portal-pages has the others. */
const pages = [
  'token',
  'register',
  'reports',
  'reports/Open%20Approvals',
  'dashboard',
  'security',
  'signed-in',
  'nowhere',
]

describe.skipIf(!hasChromium())('the pages of special users', () => {
  const { visit, open } = usePortal()

  test('pages of an administrator are accessible and fit the window', async () => {
    const { page, complaints } = await visit('/portal', 'linus')
    for (const path of pages) {
      await page.goto(`/portal/${path}`)
      await settled(page)
      await expectLooks(page, path.replaceAll(/\W+/g, '-'))
    }
    expect(complaints).toEqual([])
  })

  test('so are those for anonymous users', async () => {
    const { page, complaints } = await open('/join')
    await settled(page)
    await expectLooks(page, 'join')
    await page.goto('/portal')
    await page.getByLabel('User name').waitFor()
    await expectLooks(page, 'login')
    expect(complaints.filter((text) => !text.includes('401'))).toEqual([])
  })

  test('the tree of organizations is closed and opened, and stays so', async () => {
    const { page, complaints } = await visit('/portal/request', 'ada')
    await settled(page)
    const tree = page.getByRole('navigation', { name: 'Organizations' })
    await tree.getByRole('button', { name: 'Finance' }).waitFor()
    await tree.getByRole('button', { name: 'Organizations below Example' }).click()
    await tree.getByRole('button', { name: 'Finance' }).waitFor({ state: 'detached' })
    await page.reload()
    await settled(page)
    expect(await tree.getByRole('button', { name: 'Finance' }).count()).toBe(0)
    await expectAccessible(page, 'a closed organization')
    await tree.getByRole('button', { name: 'Hide organizations' }).click()
    await page.reload()
    await tree.getByRole('button', { name: 'Show organizations' }).waitFor()
    expect(await tree.getByRole('button').count()).toBe(1)
    await expectAccessible(page, 'the closed tree')
    // An organization that is opened by its address is visible.
    await tree.getByRole('button', { name: 'Show organizations' }).click()
    await page.goto('/portal/request?org=finance')
    await tree.getByRole('button', { name: 'Finance' }).waitFor()
    expect(complaints).toEqual([])
  })

  test('the decision is in view without scrolling, on all screens', async () => {
    const { page: requester } = await visit('/portal/request', 'ada')
    await ask(requester, 'Access to the vault', 'On call')
    const { page } = await visit('/portal/approvals', 'grace')
    await page.getByRole('link', { name: /^Access to the vault for/ }).click()
    for (const viewport of [
      { width: 1440, height: 900 },
      { width: 390, height: 844 },
    ]) {
      await page.setViewportSize(viewport)
      await page.reload()
      const approve = page.getByRole('button', { name: 'Approve' })
      await approve.waitFor()
      await page.getByText('If you approve').waitFor()
      for (const button of [approve, page.getByRole('button', { name: 'Deny' })]) {
        const box = await button.boundingBox()
        expect((box?.y ?? Number.NaN) + (box?.height ?? 0)).toBeLessThanOrEqual(viewport.height)
      }
      await expectAccessible(page, `the decision, ${viewport.width}`)
      await picture(page, `decision-${viewport.width}`)
    }
  })

  test('dialogs end with cancel and the main action, at the end of the line; on phones as wide as the dialog', async () => {
    const { page } = await visit('/portal/requests', 'ada')
    await page
      .getByRole('link', { name: /Access to the vault/ })
      .first()
      .click()
    await page.getByRole('button', { name: 'Cancel this request' }).click()
    const dialog = page.getByRole('dialog')
    const buttons = dialog.locator('.dialog-footer').getByRole('button')
    await buttons.last().waitFor()
    await expectAccessible(page, 'a dialog')
    await picture(page, 'dialog')
    const edges = async () => {
      const [frame, cancel, main] = await Promise.all([
        dialog.boundingBox(),
        buttons.first().boundingBox(),
        buttons.last().boundingBox(),
      ])
      if (frame === null || cancel === null || main === null) throw new Error('the dialog is not visible')
      return { frame, cancel, main }
    }
    const wide = await edges()
    expect(wide.cancel.x).toBeLessThan(wide.main.x)
    expect(wide.frame.x + wide.frame.width - wide.main.x - wide.main.width).toBeLessThan(40)
    await page.setViewportSize({ width: 390, height: 844 })
    const narrow = await edges()
    expect(narrow.cancel.width + narrow.main.width).toBeGreaterThan(narrow.frame.width * 0.7)
  })
})

import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectAccessible, fillCart, heading, picture, usePortal } from '#testing/browser/portal-browser.ts'

const day = 86_400_000
/** In the field's format, for a browser whose zone is UTC. */
const inDays = (days: number): string => new Date(Date.now() + days * day).toISOString().slice(0, 10)

describe.skipIf(!hasChromium())('the expiry date at check-out', () => {
  const { visit } = usePortal()

  test('is chosen, shown to the approver, and stored', async () => {
    const { page: ada, complaints } = await visit('/portal/request', 'ada', { timezoneId: 'UTC' })
    await ada.getByRole('searchbox').fill('project')
    await fillCart(ada, 'The project share', 'Until the fair')
    const end = ada.getByLabel('Expiry date')
    await ada.getByText('Latest possible:').waitFor()
    const send = ada.getByRole('button', { name: 'Submit request' })
    await send.click()
    await ada.getByText('Choose an expiry date.').waitFor()
    await end.fill(inDays(-1))
    await ada.getByText('Choose a time in the future.').waitFor()
    await end.fill(inDays(100))
    await ada.getByText("this access can't last that long").waitFor()
    await expectAccessible(ada, 'a cart with a wrong end')
    await picture(ada, 'cart-access-end')

    // A partial date is invalid, and does not mean access without an expiry date.
    await end.fill('')
    await end.press('1')
    await send.click()
    expect(await ada.evaluate<string>('document.activeElement.type')).toBe('date')
    expect(await ada.getByText('was sent').count()).toBe(0)

    await end.fill(inDays(5))
    await ada.reload()
    expect(await end.inputValue()).toBe(inDays(5))
    await send.click()
    await ada.getByText('1 request submitted').waitFor()
    await ada.getByRole('link', { name: 'View in My requests' }).click()
    await ada.getByText(/requested until .*23:59$/).waitFor()
    await ada.getByRole('link', { name: 'The project share' }).click()
    await ada.getByText('Requested until', { exact: true }).waitFor()
    await ada.getByText(/^Requested until .*23:59$/).waitFor()
    await picture(ada, 'request-access-end')

    const { page: grace, complaints: hers } = await visit('/portal/approvals', 'grace', {
      timezoneId: 'UTC',
    })
    await grace.getByText(/requested until .*23:59$/).waitFor()
    await grace.getByRole('link', { name: 'The project share for ada' }).click()
    await grace.getByText('Requested until', { exact: true }).waitFor()
    await grace.getByText(/23:59 \(in 5 days\)/).waitFor()
    await expectAccessible(grace, 'an approval with an end')
    await picture(grace, 'approval-access-end')
    await grace.getByRole('textbox', { name: 'Comment' }).fill('Fine')
    await grace.getByRole('button', { name: 'Approve' }).click()
    await grace.getByText('Approved: The project share for ada').waitFor()

    await ada.getByText('Done').first().waitFor()
    await ada.getByText(/^Access until .*23:59 \(in 5 days\)$/).waitFor()
    await ada.goto('/portal')
    await ada.getByRole('link', { name: 'Your access to project-share expires in 5 days' }).click()
    await ada.getByText(/Until .*23:59/).waitFor()
    await ada.getByRole('link', { name: /^Extend: / }).click()
    await ada.getByText(/23:59; choose a later time/).waitFor()
    await ada.getByRole('button', { name: '1 day more' }).click()
    expect(await ada.getByLabel('Expiry date').inputValue()).toBe(`${inDays(6)}T23:59`)
    expect([complaints, hers]).toEqual([[], []])
  })

  test('that the gateway rejects is reported at its line', async () => {
    const { page } = await visit('/portal', 'joan', { timezoneId: 'UTC' })
    await heading(page, 'Welcome')
    // The offer is shorter by now than when the list was read.
    await page.route('**/workflows/org/*', async (route) => {
      const response = await route.fetch()
      const text = (await response.text()).replace(/("longestSeconds":)\d+/, `$1${(120 * day) / 1000}`)
      await route.fulfill({ response, body: text })
    })
    await page.goto('/portal/request')
    await page.getByRole('searchbox').fill('project')
    await fillCart(page, 'The project share', 'For longer')
    await page.getByLabel('Expiry date').fill(inDays(110))
    await page.getByRole('button', { name: 'Submit request' }).click()
    const line = page.getByRole('region', { name: 'The project share' })
    await line.getByRole('alert').getByText("this access can't last that long").waitFor()
    await page.getByLabel('Expiry date').fill(inDays(80))
    await page.getByRole('button', { name: 'Submit request' }).click()
    await page.getByText('1 request submitted').waitFor()
  })

  test('that has passed leaves nothing to approve, and the request is denied', async () => {
    const { page, complaints } = await visit('/portal/approvals', 'grace')
    await page.getByRole('link', { name: 'The project share for joan' }).waitFor()
    await page.goto('/portal/approvals?workflow=vault-access')
    await page.getByText('No requests of this type are waiting for you.').waitFor()
    await page.goto('/portal/approvals')
    await page.route('**/main/approvals/*', async (route) => {
      if (route.request().method() !== 'GET') return route.continue()
      const response = await route.fetch()
      const text = (await response.text()).replace(/("accessEnds":")[^"]+/, `$1${inDays(-1)}T00:00:00.000Z`)
      return route.fulfill({ response, body: text })
    })
    await page.getByRole('link', { name: 'The project share for joan' }).click()
    await page.getByText('The requested expiry date has passed').waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
    await expectAccessible(page, 'an approval whose end has passed')
    await picture(page, 'approval-end-passed')
    await page.getByRole('textbox', { name: 'Comment' }).fill('Too late')
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.getByText('Denied: The project share for joan').waitFor()
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    expect(complaints).toEqual([])
  })
})

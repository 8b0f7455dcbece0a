import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectAccessible, heading, isTooWide, picture, usePortal } from '#testing/browser/portal-browser.ts'

const description = [
  'Keeps **all keys** of the house. <img src=x onerror=alert(1)>',
  '',
  '- ask [the owners](https://vault.example.com/owners)',
  '- [never](javascript:alert(1)) `share` them',
].join('\\n')

describe.skipIf(!hasChromium())('an item of the catalog', () => {
  const { visit } = usePortal({
    changes: {
      'workflows.yaml': (text) =>
        text
          .replace(
            /description: Puts the person into the group vault .*/,
            `owner: The vault team\n  description: "${description}"`,
          )
          .replace('longest: P90D', 'longest: P7D'),
    },
  })

  test('shows its description as text, its owner and approvers, and is requested with a usual duration', async () => {
    const { page, complaints } = await visit('/portal/request', 'ada')
    await page.getByRole('heading', { level: 2, name: 'Access to the vault' }).getByRole('link').click()
    await heading(page, 'Access to the vault')
    await page.getByText('<img src=x onerror=alert(1)>').waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    expect(await page.getByRole('link', { name: 'the owners' }).getAttribute('href')).toBe(
      'https://vault.example.com/owners',
    )
    expect(await page.getByRole('link', { name: 'never' }).count()).toBe(0)
    await page.getByText('The vault team').waitFor()
    await page.getByText('owners', { exact: true }).waitFor()
    await expectAccessible(page, 'an item of the catalog')
    await picture(page, 'catalog-item')

    await page.goto('/portal/request/item?name=project-share')
    await heading(page, 'The project share')
    await page.getByText('7 days', { exact: true }).waitFor()
    const durations = page.getByRole('group', { name: 'Duration' })
    expect(await durations.getByRole('button').allTextContents()).toEqual(['4 hours', '1 day'])
    await durations.getByRole('button', { name: '1 day' }).click()
    expect(await page.getByLabel('Expiry date').inputValue()).toContain('T')
    await page.setViewportSize({ width: 390, height: 844 })
    expect(await isTooWide(page)).toBe(false)
    await expectAccessible(page, 'an item with durations')
    await page.getByRole('button', { name: 'Request this' }).click()
    await page.getByRole('textbox', { name: 'Reason' }).fill('A day of work')
    expect(await page.getByLabel('Expiry date').inputValue()).toContain('T')
    await page.getByRole('button', { name: 'Submit request' }).click()
    await page.getByText('1 request submitted').waitFor()

    await page.goto('/portal/request/item?name=project-share')
    await page.getByText('Requested', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'View your open request' }).click()
    await heading(page, 'The project share')
    await page.goto('/portal/request/item?name=nothing')
    await page.getByText("Not found, or you don't have access.").waitFor()
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([])
  })

  test('is requested for several people by a pasted list of logins', async () => {
    const { page, complaints } = await visit('/portal/request/item?name=vault-access', 'ada')
    await page.getByRole('button', { name: 'Request this' }).click()
    await page.getByText('For others').click()
    await page.getByRole('textbox', { name: 'People' }).focus()
    await page.evaluate(`(() => {
      const clipboardData = new DataTransfer()
      clipboardData.setData('text', 'joan, mary\\nnobody-here')
      const paste = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })
      document.activeElement.dispatchEvent(paste)
    })()`)
    await page.getByRole('textbox', { name: 'Reason' }).fill('A night shift')
    await page.getByRole('button', { name: 'Submit request' }).click()
    await page.getByText('user nobody-here does not exist').waitFor()
    await page.getByRole('button', { name: 'Remove nobody-here' }).click()
    await expectAccessible(page, 'a cart for several people')
    await page.getByRole('button', { name: 'Submit request' }).click()
    await page.getByText('Access to the vault · joan, mary').waitFor()
    await page.getByRole('link', { name: 'View in My requests' }).click()
    for (const who of ['Joan Clarke', 'Mary Jackson']) await page.getByText(`for ${who}, by Ada Lovelace`).waitFor()
    expect(complaints).toEqual([])
  })
})

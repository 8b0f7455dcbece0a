import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectLooks, follow, heading, usePortal } from '#testing/browser/portal-browser.ts'
import { until } from '#testing/gateway/gateway-process.ts'

const wide = { viewport: { width: 1440, height: 900 } }

describe.skipIf(!hasChromium())('the console about SCIM clients', () => {
  const { visit, url } = usePortal()

  test('an operator adds a tenant, gives it a token, sees its use and revokes it', async () => {
    const { page, complaints } = await visit('/portal', 'linus', wide)
    await page.getByRole('button', { name: 'Console', exact: true }).click()
    await follow(page, 'SCIM clients')
    await heading(page, 'SCIM clients')
    await page.getByText('No tenants yet.').waitFor()
    await page.getByText('No tokens yet.').waitFor()

    // With the keyboard alone.
    await page.getByRole('button', { name: 'Add tenant' }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').waitFor()
    await page.keyboard.type('Acme')
    await expectLooks(page, 'console-scim-tenant-dialog')
    await page.keyboard.press('Enter')
    await dialog.getByText('must be up to 41 lower-case letters').waitFor()
    await dialog.getByLabel('Name').fill('acme')
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    const row = page.getByRole('table', { name: 'Tenants' }).getByRole('row').nth(1)
    await row.getByText('Served').waitFor()
    expect((await row.innerText()).replaceAll(/[\u2066-\u2069]/g, '')).toContain(url('/tenants/acme/scim'))
    await expectLooks(page, 'console-scim-clients')

    await row.getByRole('link').click()
    await page.getByRole('heading', { level: 1, name: /Tenant .*acme/ }).waitFor()
    await page.getByRole('button', { name: 'Create token' }).click()
    await dialog.getByRole('button', { name: 'Create token' }).click()
    await dialog.getByText('It is not stored and not shown again.').waitFor()
    const token = (await dialog.getByText(/^ghs_/).innerText()).trim()
    expect(token).toMatch(/^ghs_[\w-]{43}$/)
    await expectLooks(page, 'console-scim-token-dialog')
    await dialog.getByRole('button', { name: 'I have copied it' }).click()
    await dialog.waitFor({ state: 'detached' })
    const shown = page.getByRole('table', { name: 'Tokens of SCIM clients' }).getByRole('row').nth(1)
    expect(await shown.innerText()).toMatch(/default\s+Valid\s+.*\s+never/)

    const call = async (body?: object): Promise<number> => {
      const response = await fetch(url('/tenants/acme/scim/Users'), {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      })
      await response.arrayBuffer()
      return response.status
    }
    await until(async () => (await call()) === 200, 60_000)
    expect(await call({ userName: 'ann' })).toBe(201)
    await until(async () => {
      await page.reload()
      await shown.waitFor()
      return !(await shown.innerText()).includes('never')
    }, 60_000)
    expect(await page.content()).not.toContain(token)
    await expectLooks(page, 'console-scim-tenant')

    await shown.getByRole('button', { name: /^Revoke token: default/ }).click()
    await dialog.getByLabel('Reason').fill('It leaked')
    await dialog.getByRole('button', { name: 'Revoke token' }).click()
    await shown.getByText('Revoked').waitFor()
    await until(async () => (await call()) === 401, 60_000)
    await page.getByRole('button', { name: 'Disable' }).click()
    await dialog.getByLabel('Reason').fill('The contract ended')
    await dialog.getByRole('button', { name: 'Disable' }).click()
    await page.getByText('A tenant with users or groups can’t be deleted.').waitFor()
    expect(complaints.filter((text) => !text.includes('400'))).toEqual([])
  })
})

import { TOTP } from 'otpauth'
import { describe, expect, test } from 'vitest'
import { addAuthenticator, hasChromium } from '#testing/browser/chromium.ts'
import { expectAccessible, password, picture, usePortal } from '#testing/browser/portal-browser.ts'

describe.skipIf(!hasChromium())('the security page', () => {
  // The example offers only the factor that its login requires: an app, not a passkey.
  const offers = (text: string): string => text.replace('offers: [totp]', 'offers: [totp, passkey]')
  const { visit, visitAnew, url } = usePortal({ changes: { 'account.yaml': offers } })

  test('an authenticator app is added, named, and removed by a user who uses it', async () => {
    const { page, complaints } = await visit('/portal/security', 'joan')
    await page.getByText('Only a password protects your account').waitFor()
    await page.getByText('Passkeys work only with a host name').waitFor()
    expect(await page.getByRole('button', { name: 'Add a passkey' }).count()).toBe(0)
    await expectAccessible(page, 'the security page')
    await picture(page, 'security')
    await page.getByRole('button', { name: 'Add an authenticator app' }).click()
    const dialog = page.getByRole('dialog')
    const secret = (await dialog.locator('pre').textContent()) ?? ''
    const code = (later = 0): string => new TOTP({ secret }).generate({ timestamp: Date.now() + later })
    await expectAccessible(page, 'a new app')
    await picture(page, 'security-app')
    await dialog.getByLabel('Code from the app').fill(code() === '000000' ? '111111' : '000000')
    await dialog.getByRole('button', { name: 'Confirm' }).click()
    await dialog.getByText('The code is not right.').waitFor()
    expect(await dialog.getByLabel('Code from the app').getAttribute('aria-invalid')).toBe('true')
    const confirm = await dialog.getByRole('button', { name: 'Confirm' }).boundingBox()
    expect((confirm?.y ?? 0) + (confirm?.height ?? 0)).toBeLessThan(page.viewportSize()?.height ?? 0)
    await dialog.getByLabel('Code from the app').fill(code())
    await dialog.getByLabel('Name').fill('My phone')
    await dialog.getByRole('button', { name: 'Confirm' }).click()
    await dialog.getByRole('button', { name: "I've saved them" }).waitFor()
    expect(await dialog.locator('code').count()).toBe(10)
    await expectAccessible(page, 'recovery codes')
    await page.keyboard.press('Escape')
    await dialog.getByRole('button', { name: "I've saved them" }).click()
    await page.getByText('10 codes left').waitFor()

    await page.getByRole('button', { name: 'Rename My phone' }).click()
    await dialog.getByRole('textbox', { name: 'Name' }).fill('Old phone')
    await dialog.getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('button', { name: 'Remove Old phone' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()

    // The session only has a password, which is not enough.
    await page.getByRole('heading', { name: 'Sign in again' }).waitFor()
    // It replaces the dialog that asked whether to remove the factor.
    await expect.poll(() => page.getByRole('dialog').count()).toBe(1)
    await expectAccessible(page, 'signing in again')
    const opened = page.context().waitForEvent('page')
    await page.getByRole('link', { name: 'Sign in again' }).click()
    const tab = await opened
    await tab.getByLabel('User name').fill('joan')
    await tab.getByLabel('Password').fill(password)
    await tab.getByRole('button', { name: 'Sign in' }).click()
    await tab.getByLabel('Code', { exact: true }).fill(code(30_000))
    await tab.keyboard.press('Enter')
    await tab.waitForURL('/portal/signed-in')
    // The first tab continues automatically.
    await page.getByText('Second factor removed').waitFor()
    await page.getByText('Only a password protects your account').waitFor()
    expect(complaints.filter((line) => !/status of (?:400|403)/.test(line))).toEqual([])
  })

  test('a passkey is added', async () => {
    // Passkeys are for host names, not for addresses.
    const address = url('/portal/security').replace('127.0.0.1', 'localhost')
    const { page, complaints } = await visit(address, 'mary', { colorScheme: 'dark' })
    await page.getByText('Only a password protects your account').waitFor()
    const authenticator = await addAuthenticator(page)
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('My key')
    // As after a login in another tab.
    await page.evaluate('document.hasFocus = () => false')
    await page.getByRole('button', { name: 'Create passkey' }).click()
    await page.getByText("You're signed in. Continue to create the passkey.").waitFor()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('button', { name: "I've saved them" }).click()
    await page.getByText('My key').waitFor()
    expect(await authenticator.credentials()).toHaveLength(1)
    await expectAccessible(page, 'second factors in the dark')
    await picture(page, 'security-dark')
    expect(complaints).toEqual([])
  })

  test('other sessions are ended, and notice it', async () => {
    const address = '/portal/security'
    const { page, complaints } = await visitAnew(address, 'ada')
    const { page: other } = await visitAnew(address, 'ada')
    const { page: third } = await visitAnew(address, 'ada')
    await other.getByText('this device').waitFor()
    await third.getByText('this device').waitFor()
    await page.getByText('Chrome, Linux').nth(2).waitFor()
    await page
      .getByRole('button', { name: /^Sign out: Chrome/ })
      .first()
      .click()
    await page.getByText('Session ended').waitFor()
    await page.getByRole('button', { name: 'Sign out everywhere else' }).click()
    await page.getByText('1 session ended').waitFor()
    await expect.poll(() => page.getByText('Chrome, Linux').count()).toBe(1)
    for (const ended of [other, third]) await ended.getByText('Your session has ended').waitFor()
    expect(complaints).toEqual([])
  })
})

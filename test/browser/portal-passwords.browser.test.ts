import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectAccessible, password, picture, usePortal } from '#testing/browser/portal-browser.ts'
import { type MailServer, mailServer } from '#testing/servers/mail-server.ts'

const phone = { viewport: { width: 360, height: 740 } }

describe.skipIf(!hasChromium())('passwords', () => {
  let mails: MailServer
  beforeAll(async () => {
    mails = await mailServer()
  })
  afterAll(() => mails?.close())
  const { visit, url } = usePortal({ environment: () => ({ MAIL_PORT: String(mails.port) }) })

  test('a user changes the password on the security page', async () => {
    const { page, complaints } = await visit('/portal/security', 'joan', phone)
    await page.getByRole('button', { name: 'Change password' }).click()
    const dialog = page.getByRole('dialog')
    const send = () => dialog.getByRole('button', { name: 'Change password' }).click()
    await dialog.getByLabel('Current password').fill('wrong horse')
    await dialog.getByLabel('New password').fill('joan')
    await dialog.locator('#new-password2').fill('other')
    await send()
    await dialog.getByText("The passwords don't match.").waitFor()
    await expectAccessible(page, 'a new password')
    await picture(page, 'security-password')
    for (const field of ['#new-password', '#new-password2']) await dialog.locator(field).fill('another horse battery')
    await send()
    await dialog.getByText('The current password is wrong.').waitFor()
    await expectAccessible(page, 'a wrong current password')
    await dialog.getByLabel('Current password').fill(password)
    await send()
    await page.getByText('Password changed').waitFor()
    await dialog.waitFor({ state: 'detached' })
    // The session stays.
    await page.reload()
    await page.getByRole('button', { name: 'Change password' }).waitFor()
    expect(complaints.filter((line) => !/status of 403/.test(line))).toEqual([])
  })

  test('the dialog has whole texts on its buttons, on a phone and in German', async () => {
    const { page } = await visit('/portal/security', 'grace', { viewport: { width: 390, height: 844 } })
    await page.evaluate("localStorage.setItem('gatehouse.language', 'de')")
    await page.reload()
    await page.getByRole('button', { name: 'Passwort ändern' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Passwort ändern' }).waitFor()
    const cut = `[...document.querySelectorAll('[role=dialog] .mantine-Button-label')]
      .filter((label) => label.scrollWidth > label.clientWidth).map((label) => label.textContent)`
    expect(await page.evaluate(cut)).toEqual([])
  })

  test('a user who forgot the password sets a new one by the link of a mail', async () => {
    const { page, complaints } = await visit('/portal/security', 'mary', phone)
    // Left first, so that the page makes no request without its session.
    await page.goto('about:blank')
    await page.context().clearCookies()
    await page.goto(url('/portal'))
    await page.getByRole('link', { name: 'Forgot your password?' }).click()
    await expectAccessible(page, 'requesting a link')
    await picture(page, 'password-request')
    await page.getByLabel('User name or mail address').fill('mary')
    await page.getByRole('button', { name: 'Send link' }).click()
    await page.getByRole('heading', { name: 'Check your inbox' }).waitFor()
    await expectAccessible(page, 'a link on its way')
    const link = () => /http\S+\/password\/set#[\w-]{43}/.exec(mails.mails.at(-1)?.parts[0]?.body ?? '')?.[0]
    await expect.poll(link, { timeout: 60_000 }).toBeDefined()
    const mailed = link() ?? ''
    await page.goto(mailed)
    await expect.poll(() => page.url()).toBe(url('/password/set'))
    expect(await page.getByLabel('Code from the mail').isVisible()).toBe(false)
    await expectAccessible(page, 'a new password')
    await picture(page, 'password-set')
    const fill = async (first: string, second: string): Promise<void> => {
      await page.getByLabel('New password', { exact: true }).fill(first)
      await page.getByLabel('Repeat the new password').fill(second)
      await page.getByRole('button', { name: 'Set password' }).click()
    }
    await fill('another horse battery', 'something else')
    await page.getByRole('alert').waitFor()
    await expectAccessible(page, 'a new password that was not repeated')
    await fill('another horse battery', 'another horse battery')
    await page.getByRole('heading', { name: 'Password changed' }).waitFor()
    await expectAccessible(page, 'a changed password')
    // Only the part after # differs from the current page, so the browser would not load it again.
    await page.goto('about:blank')
    await page.goto(mailed)
    await expect.poll(() => page.url()).toBe(url('/password/set'))
    await fill('yet another battery', 'yet another battery')
    await page.getByRole('heading', { name: 'This link no longer works' }).waitFor()
    await expectAccessible(page, 'a link that was used')
    await page.goto(url('/portal'))
    await page.getByLabel('User name').fill('mary')
    await page.getByLabel('Password').fill('another horse battery')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL((address) => address.pathname.startsWith('/portal'))
    expect(complaints.filter((line) => !/status of (?:410|422)/.test(line))).toEqual([])
  })
})

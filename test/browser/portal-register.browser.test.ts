import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectAccessible, isTooWide, picture, usePortal } from '#testing/browser/portal-browser.ts'
import { type MailServer, mailServer } from '#testing/servers/mail-server.ts'

describe.skipIf(!hasChromium())('registering in a browser', () => {
  let mails: MailServer
  beforeAll(async () => {
    mails = await mailServer()
  })
  afterAll(() => mails?.close())
  const { visit, open } = usePortal({
    changes: {
      'registration.yaml': (text) =>
        text.replace('honeypotField: website', 'honeypotField: website\n            preSetPassword: "true"'),
    },
    environment: () => ({ MAIL_PORT: String(mails.port) }),
  })

  const submit = (page: Page) => page.getByRole('button', { name: 'Submit Registration' }).click()
  const password = (page: Page) => page.getByLabel(/^Password\s*\*?$/)

  async function fillIn(page: Page, login: string): Promise<void> {
    await page.getByLabel('Login').fill(login)
    await page.getByLabel('Mail address').fill(`${login}@example.com`)
    await page.getByLabel('Name').fill('Katherine Johnson')
    await page.getByLabel('Team').selectOption('red')
    await page.getByRole('textbox', { name: 'Office' }).fill('Tok')
    await page.getByRole('option', { name: 'Tokyo' }).click()
    await page.getByRole('textbox', { name: 'Reason' }).fill('New here')
    await password(page).fill('a train of thought 42')
    await page.getByLabel('Confirm password').fill('a train of thought 42')
    await page.getByLabel('I accept the terms').check()
  }

  /** The link of the latest mail. */
  async function mailedLink(): Promise<string> {
    const link = () =>
      /http:\S+\/verify\?token=[\w-]+/.exec(
        mails.mails
          .at(-1)
          ?.parts.map(({ body }) => body)
          .join('\n') ?? '',
      )
    await expect.poll(link).not.toBeNull()
    return link()?.[0] ?? ''
  }

  test('an unknown user gets an account by the form, the mail and the owner', async () => {
    const { page, complaints } = await open('/join')
    await page.getByLabel('Login').waitFor()
    await expectAccessible(page, 'the form')
    await picture(page, 'register-light')

    // The error that leaving the field shows moves the button, and the click still counts.
    await page.getByLabel('Mail address').fill('nobody')
    await submit(page)
    await page.getByText('Enter a valid email address.').waitFor()
    expect(await page.getByText('Required').count()).toBe(5)
    await page.reload()
    await page.getByLabel('Mail address').fill('')
    await submit(page)
    expect(await page.getByText('Required').count()).toBe(6)
    expect(await page.evaluate<string>('document.activeElement.labels[0].textContent')).toContain('Login')
    await page.getByLabel('Login').fill('Not A Login')
    await page.getByText('A login has small letters, digits and hyphens').waitFor()
    await page.getByLabel('Mail address').fill('nobody')
    await page.getByText('Enter a valid email address.').waitFor()
    await password(page).fill('kate')
    await page.getByText('At least 8 characters.').waitFor()
    await expectAccessible(page, 'the form with what is wrong')

    await fillIn(page, 'kate')
    await page.getByText('Very strong').or(page.getByText('Strong')).waitFor()
    await page.getByLabel('Confirm password').fill('something else')
    await page.getByText("The passwords don't match.").waitFor()

    // A reload loses nothing but the passwords.
    await page.reload()
    expect(await page.getByLabel('Login').inputValue()).toBe('kate')
    expect(await page.getByRole('textbox', { name: 'Office' }).inputValue()).toBe('Tokyo')
    expect(await password(page).inputValue()).toBe('')
    const stored = await page.evaluate<string>('JSON.stringify({ ...sessionStorage, ...localStorage })')
    expect(stored).not.toContain('train of thought')
    await password(page).fill('a train of thought 42')
    await page.getByLabel('Confirm password').fill('a train of thought 42')
    await submit(page)
    await page.getByText('We sent an email to kate@example.com').waitFor()
    await expectAccessible(page, 'the mail was sent')

    await page.goto(await mailedLink())
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('An owner looks at your registration').waitFor()

    const { page: grace } = await visit('/portal/approvals', 'grace')
    await grace.getByText('requested by a visitor who registered without signing in').waitFor()
    await grace.getByRole('link', { name: 'Registration of Katherine Johnson' }).click()
    const about = grace.getByRole('region', { name: 'Submitted details' })
    await about.getByText('kate@example.com').waitFor()
    await about.getByText('Mail address').waitFor()
    // Raw names of attributes are nowhere: fields have labels, and the preview does not repeat their values.
    await grace.getByRole('region', { name: 'If you approve' }).waitFor()
    expect(await grace.getByText('displayName', { exact: true }).count()).toBe(0)
    expect(await grace.getByText('Anonymous').count()).toBe(0)
    // No one could read a question or a comment.
    expect(await grace.getByText('Question to the requester').count()).toBe(0)
    expect(await grace.getByText('The requester can read it.').count()).toBe(0)
    await expectAccessible(grace, 'an approval about somebody new')
    await picture(grace, 'approval-new-person')
    await grace.getByLabel('Comment').fill('Welcome')
    await grace.getByRole('button', { name: 'Approve' }).click()
    await grace.getByText('Approved: Registration of Katherine Johnson').waitFor()
    const people = `fetch('/portal/main/search?q=kate&kind=person').then((answer) => answer.json())`
    await expect
      .poll(() => grace.evaluate(people))
      .toMatchObject({ people: [{ uid: 'kate', displayName: 'Katherine Johnson' }] })
    await expect
      .poll(() => mails.mails.find(({ to, raw }) => to.includes('kate@example.com') && raw.includes('Your account')))
      .toBeDefined()
    expect(complaints).toEqual([])
  })

  test('problems that only the gateway finds appear beside the field, and a robot fails', async () => {
    const { page } = await open('/join')
    await fillIn(page, 'ada')
    await submit(page)
    await page.getByRole('alert').filter({ hasText: 'Login is not available' }).waitFor()
    expect(await page.getByText('Login is not available').count()).toBe(2)
    expect(await page.getByLabel('Login').getAttribute('aria-invalid')).toBe('true')

    await page.getByLabel('Login').fill('robot')
    await page.getByLabel('Mail address').fill('robot@example.com')
    await page.evaluate(`(() => {
      const field = document.querySelector('input[name=website]')
      const { set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')
      set.call(field, 'https://spam.example')
      field.dispatchEvent(new Event('input', { bubbles: true }))
    })()`)
    await submit(page)
    await page.getByText('Human validation failed').waitFor()
    expect(mails.mails.some(({ to }) => to.includes('robot@example.com'))).toBe(false)
  })

  test('a signed-in user registers one user after another', async () => {
    const { page, complaints } = await visit('/portal/register', 'grace')
    await page.getByLabel('Login').waitFor()
    for (const login of ['dorothy', 'maryw']) {
      await fillIn(page, login)
      await submit(page)
      await page.getByText(`We sent an email to ${login}@example.com`).waitFor()
      expect(await page.getByLabel('Login').inputValue()).toBe('')
    }
    await expectAccessible(page, 'the form in the portal')
    expect(complaints).toEqual([])
  })

  test('in dark mode, on a phone, in Japanese', async () => {
    const { page, complaints } = await open('/join', {
      colorScheme: 'dark',
      locale: 'ja-JP',
      viewport: { width: 390, height: 844 },
    })
    await page.locator('form').waitFor()
    await page.locator('button[type=submit]').click()
    await page.getByText('必須').first().waitFor()
    await expectAccessible(page, 'the form in the dark')
    await picture(page, 'register-phone-dark')
    expect(await isTooWide(page)).toBe(false)
    expect(complaints).toEqual([])
  })
})

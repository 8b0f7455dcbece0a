import { TOTP } from 'otpauth'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectAccessible, expectLooks, follow, heading, picture, usePortal } from '#testing/browser/portal-browser.ts'

describe.skipIf(!hasChromium())('users and groups in the console', () => {
  const { visit, visitAnew, open } = usePortal({
    changes: {
      // Mary only sees.
      'portal.yaml': (text) =>
        text.replace(/administrators: (.*)/, 'administrators:\n              - $1\n              - filter;(uid=mary)'),
      'seed/people.json': (text) => {
        const seed = JSON.parse(text)
        seed.users.push({
          userID: 'hostile',
          attributes: {
            displayName: ['<img src=x onerror=alert(1)>'],
            mail: ['h@example.com'],
            apiToken: ['S3CR3T'],
            note: ['x'.repeat(1500)],
          },
          groups: ['owners'],
        })
        return JSON.stringify(seed)
      },
    },
  })

  const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })
  const openUser = async (page: Page, name: string): Promise<void> => {
    await page.getByRole('searchbox', { name: 'Search users' }).fill(name)
    await page.getByRole('link', { name: new RegExp(`^${name}`, 'i') }).click()
    await heading(page, name)
  }

  test('a user is found and read', async () => {
    const { page, complaints } = await visit('/portal/console/people', 'linus')
    await heading(page, 'Users')
    await row(page, 'grace').waitFor()
    await expectLooks(page, 'console-users')
    await page.getByRole('searchbox', { name: 'Search users' }).fill('h@ex')
    await page.waitForURL(/q=h%40ex/)
    await expect.poll(() => page.getByRole('row').count()).toBe(2)
    await page.getByRole('link', { name: '<img src=x onerror=alert(1)>' }).click()
    await heading(page, '<img src=x onerror=alert(1)>')
    await page.getByText('apiToken').waitFor()
    await page.getByText('Not shown').waitFor()
    expect(await page.getByText('S3CR3T').count()).toBe(0)
    await expectLooks(page, 'console-user')
    // With the keyboard alone.
    await page.getByRole('tab', { name: 'Entry' }).focus()
    await page.keyboard.press('ArrowRight')
    await page.waitForURL(/tab=groups/)
    await expectLooks(page, 'console-user-groups')
    await page.getByRole('link', { name: 'owners' }).focus()
    await page.keyboard.press('Enter')
    await heading(page, 'owners')
    await page.getByRole('link', { name: '<img src=x onerror=alert(1)>' }).waitFor()
    await expectLooks(page, 'console-group')
    expect(complaints).toEqual([])
  })

  test('an operator ends sessions and resets second factors, with a reason', async () => {
    const { page: adas } = await visitAnew('/portal/security', 'ada')
    await adas.getByRole('button', { name: 'Add an authenticator app' }).click()
    const secret = (await adas.getByRole('dialog').locator('pre').textContent()) ?? ''
    await adas.getByRole('dialog').getByLabel('Code from the app').fill(new TOTP({ secret }).generate())
    await adas.getByRole('dialog').getByRole('button', { name: 'Confirm' }).click()
    await adas.getByRole('button', { name: "I've saved them" }).click()

    const { page, complaints } = await visit('/portal/console/people', 'linus')
    await openUser(page, 'Ada')
    const dialog = page.getByRole('dialog')
    await page.getByRole('tab', { name: 'Second factors' }).click()
    await page.getByText('Recovery codes: 10 codes left').waitFor()
    await page.getByRole('button', { name: 'Reset second factors' }).click()
    await dialog.getByRole('button', { name: 'Reset second factors' }).click()
    await dialog.getByText('Required').waitFor()
    await expectAccessible(page, 'a reason')
    await dialog.getByLabel('Reason').fill('lost phone')
    await dialog.getByRole('button', { name: 'Reset second factors' }).click()
    await page.getByText('1 second factor removed').waitFor()
    await page.getByText('No second factors').waitFor()

    await page.getByRole('tab', { name: 'Sessions' }).click()
    await page.getByText('Chrome, Linux').waitFor()
    await expectAccessible(page, 'the sessions of a user')
    await picture(page, 'console-user-sessions')
    await page.getByRole('button', { name: 'End all sessions' }).click()
    await dialog.getByLabel('Reason').fill('lost phone')
    await dialog.getByRole('button', { name: 'End all sessions' }).click()
    await page.getByText('1 session ended').waitFor()
    await page.getByText('No sessions').waitFor()
    // Her list of sessions is open, so that she sees it at once.
    await adas.getByText('Your session has ended').waitFor()
    await page.getByRole('tab', { name: 'Audit' }).click()
    await expect.poll(() => row(page, 'lost phone').count()).toBe(2)
    await expectAccessible(page, 'the audit of a user')
    expect(complaints).toEqual([])
  })

  test('an operator deactivates a user by a workflow, whose run says when it is done', async () => {
    const { page, complaints } = await visit('/portal/console/people', 'linus')
    await openUser(page, 'Joan')
    await page.getByRole('button', { name: 'Deactivate' }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('left the company')
    await page.getByRole('dialog').getByRole('button', { name: 'Deactivate' }).click()
    await page.getByText(/^The workflow that deactivates Joan.* has started\.$/).waitFor()
    await page.getByRole('tab', { name: 'Runs' }).click()
    // The list does not follow the run by itself.
    const isDone = async (): Promise<boolean> => {
      await page.reload()
      await row(page, 'left the company').waitFor()
      return await row(page, 'left the company').getByText('Done').isVisible()
    }
    await expect.poll(isDone).toBe(true)
    await expectAccessible(page, 'the runs of a user')
    await page.reload()
    await page.getByText('Deactivated', { exact: true }).first().waitFor()
    expect(await page.getByRole('button', { name: 'Deactivate' }).count()).toBe(0)
    expect(complaints).toEqual([])
    const { page: joans } = await open('/portal/security')
    await joans.getByLabel('User name').fill('joan')
    await joans.getByLabel('Password').fill('correct horse battery')
    await joans.getByRole('button', { name: 'Sign in' }).click()
    await joans.getByRole('alert').waitFor()
  })

  test('administrators who are not operators see no actions, and operators none on their own account', async () => {
    const { page, complaints } = await visit('/portal/console/people', 'mary')
    await openUser(page, 'Grace')
    await page.getByRole('tab', { name: 'Sessions' }).click()
    await page.getByText('No sessions').waitFor()
    expect(await page.getByRole('button', { name: /Deactivate|End all|Reset/ }).count()).toBe(0)
    const { page: linuss } = await visit('/portal', 'linus')
    await linuss.getByRole('button', { name: 'Console', exact: true }).click()
    await follow(linuss, 'Users')
    await openUser(linuss, 'Linus')
    await linuss.getByText('This is your own account.').waitFor()
    expect(await linuss.getByRole('button', { name: 'Deactivate' }).count()).toBe(0)
    expect(complaints).toEqual([])
  })

  test('users who are not administrators see that the console is not for them', async () => {
    const { page } = await visit('/portal/console/people', 'grace')
    await page.getByText('Administrators only').waitFor()
    expect(await page.getByRole('row').count()).toBe(0)
  })
})

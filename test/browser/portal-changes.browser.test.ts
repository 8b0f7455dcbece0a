import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { ChangePreview } from '#sdk/contract/preview.ts'
import { hasChromium } from '#testing/browser/chromium.ts'
import { ask, expectAccessible, isTooWide, picture, usePortal } from '#testing/browser/portal-browser.ts'

describe.skipIf(!hasChromium())('what others do', () => {
  const { visit, visitAnew } = usePortal()

  describe('changes by others', () => {
    test('appear in open lists, details and badges without a reload', async () => {
      const { page: owner } = await visit('/portal/approvals', 'grace')
      const badge = owner.getByRole('navigation').getByLabel(/needs? your decision$/)
      const { page, complaints } = await visit('/portal/request?q=A new laptop', 'ada')
      await ask(page, 'A new laptop', 'Live')
      await owner.getByRole('link', { name: 'Live' }).waitFor()
      await badge.waitFor()
      const { page: list } = await visit('/portal/requests', 'ada')
      const row = list.getByRole('link', { name: /laptop/i }).first()
      await row.getByText('Waiting').waitFor()
      await owner.getByRole('link', { name: 'Live' }).click()
      await owner.getByRole('textbox', { name: 'Comment' }).fill('No')
      await owner.getByRole('button', { name: 'Deny' }).click()
      await row.getByText('Denied').waitFor()
      expect(complaints).toEqual([])
    })
  })

  describe('sessions', () => {
    test('that begin and end elsewhere appear in open lists without a reload', async () => {
      const { page: mine, complaints } = await visit('/portal/security', 'ada')
      const others = mine.getByRole('button', { name: /^Sign out: / })
      await mine.getByText('this device').waitFor()
      const { page: console } = await visit('/portal/console/people', 'linus')
      await console.getByRole('link', { name: 'Ada Lovelace' }).click()
      await console.getByRole('tab', { name: 'Sessions' }).click()
      const listed = console.getByRole('button', { name: /^End session: / })
      await expect.poll(() => listed.count()).toBe(1)
      expect(await others.count()).toBe(0)

      const { page: elsewhere } = await visitAnew('/portal/profile', 'ada')
      await others.waitFor()
      await expect.poll(() => listed.count(), { timeout: 20_000 }).toBe(2)

      await elsewhere.getByRole('button', { name: /Ada Lovelace/ }).click()
      await elsewhere.getByRole('menuitem', { name: 'Sign out' }).click()
      await others.waitFor({ state: 'detached' })
      await expect.poll(() => listed.count(), { timeout: 20_000 }).toBe(1)
      expect(complaints).toEqual([])
    })
  })

  describe('the preview of changes', () => {
    const section = (page: Page) => page.getByRole('region', { name: 'If you approve' })

    async function askFor(what: string, login: string, reason: string): Promise<void> {
      const { page } = await visit(`/portal/request?q=${what}`, login)
      await ask(page, what, reason)
      await page.context().close()
    }

    async function openAsOwner(login: string, reason: string, options = {}) {
      const visited = await visit(`/portal/approvals?q=${reason}`, login, options)
      await visited.page.getByRole('link', { name: reason }).click()
      await visited.page.getByRole('textbox', { name: 'Comment' }).waitFor()
      return visited
    }

    test('an approver sees the present and future values, and they come true', async () => {
      await askFor('A new laptop', 'ada', 'Broken')
      const { page, complaints } = await openAsOwner('grace', 'Broken', { colorScheme: 'dark' })
      const changes = section(page)
      await changes.getByText('Updates the account ada in people').waitFor()
      await changes.getByText('laptops', { exact: true }).waitFor()
      await expectAccessible(page, 'what will change, dark')
      await picture(page, 'changes-dark')
      await page.getByRole('textbox', { name: 'Comment' }).fill('Right away')
      await page.getByRole('button', { name: 'Approve' }).click()
      await page.getByText('Approved: A laptop for ada').waitFor()

      await askFor('A new laptop', 'ada', 'Again')
      const again = await openAsOwner('grace', 'Again')
      await section(again.page).getByText('Nothing changes: everything is already as requested.').waitFor()
      expect([complaints, again.complaints]).toEqual([[], []])
    })

    test('every kind of step has a text, secrets have none, and uncertain steps say so', async () => {
      await askFor('A new laptop', 'joan', 'Drawn')
      const { page, complaints } = await visit('/portal/approvals?q=Drawn', 'mary')
      let answer: (changes: ChangePreview | undefined) => void = () => {}
      const held = new Promise<ChangePreview | undefined>((resolve) => {
        answer = resolve
      })
      await page.route('**/approvals/*?changes=true', async (route) => {
        const response = await route.fetch()
        const changes = await held
        await route.fulfill({ response, json: { ...(await response.json()), changes } })
      })
      await page.getByRole('link', { name: 'Drawn' }).click()
      // A pending preview does not block the decision.
      await page.getByRole('textbox', { name: 'Comment' }).waitFor()
      await section(page).getByRole('status', { name: 'Loading' }).waitFor()
      answer(everything)
      const changes = section(page)
      await changes.getByText('Creates the account joan in ldap').waitFor()
      const told = await changes.getByRole('listitem').allInnerTexts()
      expect(told.map((text) => text.split('\n')[0])).toEqual([
        'Creates the account joan in ldap',
        'Updates the account joan in crm',
        'Deletes the group old in crm',
        expect.stringMatching(/^Membership of vault in ldap expires 1 Feb 2030/),
        'Sends an email to joan@example.com: Welcome <b>Joan</b>',
        'Requests another approval: The second owner',
        expect.stringMatching(/^Waits until 1 Feb 2030/),
        'Runs the workflow welcome',
        'Starts the workflow badge as a separate request',
        'tasks.JavaScriptTask: no preview',
        'provision: no preview',
      ])
      const changed = changes.getByRole('listitem').nth(1)
      expect(await changed.locator('del').innerText()).toBe('joan@old.example.com')
      expect(await changed.locator('ins').innerText()).toBe('joan@example.com')
      await changed.getByText('hidden').waitFor()
      await changed.getByText('The list is not complete.').waitFor()
      expect(await changes.getByText('The following steps may change.').count()).toBe(1)
      await changes.getByText('A downstream system did not answer.').waitFor()
      await changes.getByText("More steps follow that can't be previewed.").waitFor()
      await expectAccessible(page, 'every kind of change')
      await picture(page, 'changes')
      await page.setViewportSize({ width: 375, height: 800 })
      await expect.poll(() => isTooWide(page)).toBe(false)
      await changes.scrollIntoViewIfNeeded()
      await picture(page, 'changes-phone')
      expect(complaints).toEqual([])
    })

    test('the decision is possible even if the preview is hidden or not available', async () => {
      await askFor('A new laptop', 'linus', 'Hidden')
      const { page } = await visit('/portal/approvals?q=Hidden', 'mary')
      const answers = [{ steps: [], whole: false }, undefined]
      await page.route('**/approvals/*?changes=true', async (route) => {
        const response = await route.fetch()
        await route.fulfill({ response, json: { ...(await response.json()), changes: answers.shift() } })
      })
      await page.getByRole('link', { name: 'Hidden' }).click()
      await section(page).getByText('No preview is available right now.').waitFor()
      await page.reload()
      await page.getByRole('textbox', { name: 'Comment' }).waitFor()
      await section(page).waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Approve' }).waitFor()
    })
  })
})

const values = { joins: [], leaves: [], attributes: [], cut: false }

const everything: ChangePreview = {
  steps: [
    {
      ...values,
      kind: 'user',
      action: 'create',
      target: 'ldap',
      name: 'joan',
      attributes: [{ name: 'mail', secret: false, before: [], after: ['joan@example.com'] }],
      joins: ['staff', 'vault'],
    },
    {
      kind: 'user',
      action: 'change',
      target: 'crm',
      name: 'joan',
      newName: 'joan.clarke',
      attributes: [
        { name: 'mail', secret: false, before: ['joan@old.example.com'], after: ['joan@example.com'] },
        { name: 'apiToken', secret: true, before: [], after: [] },
      ],
      joins: [],
      leaves: ['interns'],
      cut: true,
    },
    { ...values, kind: 'group', action: 'delete', target: 'crm', name: 'old' },
    { kind: 'end', target: 'ldap', of: 'group', name: 'vault', expires: '2030-02-01T12:00:00.000Z' },
    { kind: 'mail', recipient: 'joan@example.com', subject: 'Welcome <b>Joan</b>' },
    { kind: 'approval', label: 'The second owner' },
    { kind: 'wait', until: '2030-02-01T12:00:00.000Z' },
    { kind: 'workflow', name: 'welcome', apart: false },
    { kind: 'workflow', name: 'badge', apart: true },
    { kind: 'unforeseen', task: 'tasks.JavaScriptTask' },
    { kind: 'unforeseen', task: 'provision', reason: 'A downstream system did not answer.' },
  ],
  whole: false,
}

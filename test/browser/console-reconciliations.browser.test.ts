import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectLooks, follow, heading, isTooWide, settled, usePortal } from '#testing/browser/portal-browser.ts'

/** The people of the example should have an account in the chat. */
const reconciliation = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: chat }
spec:
  className: targets.Database
  params: [{ name: seed, value: seed/chat.json }]
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: chat-join }
spec:
  tasks:
    - { taskType: provision, target: chat, sync: true }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: chat-leave }
spec:
  tasks:
    - { taskType: addAttribute, name: active, value: "false" }
    - { taskType: provision, target: chat, sync: true, attributes: [active] }
---
apiVersion: gatehouse.dev/v1
kind: Reconciliation
metadata: { name: chat }
spec:
  description: Everyone has an account in the chat
  source: { target: people }
  target: chat
  attributes:
    - { name: mail, source: mail, sourceType: user }
    - { name: active, source: "true", sourceType: static }
  correlation: [login, { attribute: mail }]
  missing: create
  different: change
  extra: deactivate
  workflows: { create: chat-join, change: chat-join, deactivate: chat-leave }
  limits: { percent: 50, accounts: 10 }
`

const account = (login: string, mail = `${login}@example.com`) => ({
  userID: login,
  attributes: { mail: [mail], active: ['true'] },
  groups: [],
})
/** Grace has no account, that of Ada has an old address, two could be Joan's, and no one has that of Eddy. */
const accounts = {
  groups: [],
  users: [
    account('ada', 'old@example.com'),
    account('linus'),
    account('mary'),
    account('joan1', 'joan@example.com'),
    account('joan2', 'joan@example.com'),
    account('eddy'),
  ],
}

const rowOf = (page: Page, name: RegExp) =>
  page.getByRole('table', { name: 'Differences in this plan' }).getByRole('row', { name })

/** Waits for the plan that was requested to be compared. */
async function compare(page: Page, outcome = 'Waits for a decision'): Promise<void> {
  const before = page.url()
  await page.getByRole('button', { name: 'Compare now' }).click()
  await page.waitForURL((url) => url.href !== before && url.pathname.includes('/console/plans/'))
  await page.locator('.status').getByText(outcome, { exact: true }).waitFor({ timeout: 120_000 })
}

async function apply(page: Page, ...says: readonly string[]): Promise<void> {
  await page.getByRole('button', { name: 'Apply', exact: true }).click()
  const dialog = page.getByRole('dialog')
  for (const text of says) await dialog.getByText(text).waitFor()
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('Reviewed with the team')
  await expectLooks(page, 'console-plan-apply')
  await dialog.getByRole('button', { name: 'Apply', exact: true }).click()
  await page.getByText('Applied', { exact: true }).waitFor({ timeout: 120_000 })
}

describe.skipIf(!hasChromium())('the console of reconciliations', () => {
  const { visit } = usePortal({
    more: { 'reconciliation.yaml': reconciliation, 'seed/chat.json': JSON.stringify(accounts) },
  })

  test('an operator finds drift, decides, applies the plan, and then nothing differs', {
    timeout: 300_000,
  }, async () => {
    const { page, complaints } = await visit('/portal/console/people', 'linus')
    await follow(page, 'Reconciliations')
    await heading(page, 'Reconciliations')
    const list = page.getByRole('table', { name: 'Reconciliations' })
    await list.getByText('Not compared yet').waitFor()
    await list.getByRole('link', { name: 'chat' }).press('Enter')
    await heading(page, 'chat')

    await compare(page)
    await heading(page, 'Plan for chat')
    const grace = rowOf(page, /^grace/)
    await grace.getByText('Create account').waitFor()
    await grace.getByText('mail: no value → grace@example.com').waitFor()
    await rowOf(page, /^ada/).getByText('mail: old@example.com → ada@example.com').waitFor()
    await rowOf(page, /^eddy/).getByText('Deactivate account').waitFor()
    await rowOf(page, /^joan/)
      .getByText(/Could be joan1.*joan2/)
      .waitFor()
    await page.getByRole('heading', { name: 'What Apply will do' }).waitFor()
    await page.getByText('1 of 6 accounts in the target loses access.').waitFor()
    await settled(page)
    await expectLooks(page, 'console-plan')

    await page.getByRole('link', { name: 'Account without a person 1' }).click()
    await page.waitForURL(/kind=extra/)
    await grace.waitFor({ state: 'detached' })
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const file = readFileSync(await (await saved).path(), 'utf8')
    expect(file).toContain('extra,deactivate,open')
    expect(file).not.toContain('grace')
    await page.getByRole('button', { name: 'Clear' }).click()
    await grace.waitFor()

    await page.getByRole('button', { name: 'Decide: joan' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Which account does joan').waitFor()
    await dialog.getByRole('combobox').selectOption({ index: 1 })
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Asked her')
    await expectLooks(page, 'console-plan-decide')
    await dialog.getByRole('button', { name: 'Decide' }).click()
    await page.getByText(/The next plan uses this/).waitFor()

    await apply(
      page,
      'Creates 1 account · Changes 1 account · Deactivates 1 account',
      '1 of 6 accounts in the target loses access.',
    )
    await grace.getByText('Done').waitFor()
    await page.getByText('Done 3').waitFor()
    await grace.getByRole('link', { name: 'Open the run' }).waitFor()
    await rowOf(page, /^joan/).getByText('Nothing to apply').waitFor()

    await compare(page)
    await rowOf(page, /^joan/).getByText('Matched by link').waitFor()
    await apply(page, 'Changes 1 account · Deactivates 1 account')
    await page.getByText('Done 2').waitFor()
    await compare(page, 'Nothing to apply')
    await page.getByText('No differences match.').waitFor()
    expect(await page.getByRole('button', { name: 'Apply', exact: true }).count()).toBe(0)

    await page.getByRole('main').getByRole('link', { name: 'chat' }).click()
    await heading(page, 'chat')
    await page.getByText('The systems agree').waitFor()
    await page.getByRole('heading', { name: 'Differences over time' }).waitFor()
    await settled(page)
    await expectLooks(page, 'console-reconciliation')
    await page.getByRole('link', { name: 'Reconciliations' }).last().click()
    await list.getByText('The systems agree').waitFor()
    await expectLooks(page, 'console-reconciliations')
    await page.goto('/portal/dashboard')
    const card = page.getByRole('article', { name: 'chat' })
    await card.getByText('The systems agree').waitFor()
    await card.getByRole('img', { name: /Differences in the latest comparisons, oldest first: 4, .*, 0$/ }).waitFor()
    await settled(page)
    await expectLooks(page, 'dashboard-drift')
    expect(complaints).toEqual([])
  })

  test('links are listed, added and removed', { timeout: 180_000 }, async () => {
    const { page, complaints } = await visit('/portal/console/reconciliations/chat/links', 'linus')
    await heading(page, 'Links of chat')
    const table = page.getByRole('table', { name: 'Links' })
    await page.getByRole('button', { name: 'Add a link' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox', { name: 'Person', exact: true }).fill('stranger')
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Works elsewhere')
    await dialog.getByRole('button', { name: 'Add a link' }).click()
    await page.getByText(/stored as given: stranger/).waitFor()
    const row = table.getByRole('row', { name: /^stranger/ })
    await row.getByText('No account').waitFor()
    await row.getByText('Works elsewhere').waitFor()
    await row.getByText(/Linus Pauling/).waitFor()
    await settled(page)
    await expectLooks(page, 'console-links')
    await row.getByRole('button', { name: /^Remove link/ }).press('Enter')
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('A typo')
    await dialog.getByRole('button', { name: 'Remove link' }).click()
    await page.getByText('The link of stranger was removed.').waitFor()
    await row.waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
  })

  test('the pages fit a phone in German too', { timeout: 120_000 }, async () => {
    const phone = { locale: 'de-DE', viewport: { width: 390, height: 844 } }
    const { page, complaints } = await visit('/portal/console/reconciliations', 'linus', phone)
    await heading(page, 'Abgleiche')
    const { plans } = await (await page.request.get('/portal/main/admin/reconciliations/chat/plans')).json()
    for (const path of [
      'reconciliations',
      'reconciliations/chat',
      'reconciliations/chat/links',
      `plans/${plans.at(-1).id}`,
    ]) {
      await page.goto(`/portal/console/${path}`)
      await settled(page)
      await expect.poll(() => isTooWide(page), { message: path }).toBe(false)
    }
    expect(complaints).toEqual([])
  })

  test('the page of a user shows the account that is linked', { timeout: 120_000 }, async () => {
    const { page } = await visit('/portal/console/reconciliations/chat/links', 'linus')
    await page.getByRole('button', { name: 'Add a link' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox', { name: 'Person', exact: true }).fill('joan')
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Has none')
    await dialog.getByRole('button', { name: 'Add a link' }).click()
    await page.getByText('joan has no account.').waitFor()
    await page.goto('/portal/console/people/joan?tab=systems')
    await page.getByText('A decision says that the user has no account in chat.').waitFor()
  })

  test('the page of a user shows what a system has', { timeout: 120_000 }, async () => {
    const { page, complaints } = await visit('/portal/console/people/mary?tab=systems', 'linus')
    await heading(page, 'Mary Jackson')
    await page.getByText('chat has an account with the login mary now:').waitFor()
    await page.getByText('mary@example.com').waitFor()
    await settled(page)
    await expectLooks(page, 'console-person-systems')
    expect(complaints).toEqual([])
  })
})

import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { askForMany, expectAccessible, picture, settled, usePortal } from '#testing/browser/portal-browser.ts'

const note = `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: note }
spec:
  label: A note
  description: Nothing comes of it
  inList: true
  orgId: finance
  tasks: |-
    - { taskType: addAttribute, name: note, value: "1" }
`

/** The same workflow under another name, with an end that distinguishes open requests for it. */
const until = (workflow: string): string =>
  workflow
    .replace(/name: (note|vault-access)\b/, 'name: $1-until')
    .replace(/^ {2}label: (.*)$/m, '  label: $1 until a day')
    .replace(/^ {2}inList: true$/m, '  inList: true\n  accessEnds: { choose: optional }')

const endOf = (i: number): string => new Date(Date.now() + 86_400_000 + i * 60_000).toISOString()

describe.skipIf(!hasChromium())('requesting access', () => {
  // Reasons to choose from, a first decision by the requester, and a workflow without a decision.
  const { visit } = usePortal({
    changes: {
      'portal.yaml': (text) =>
        text.replace(
          'canPreApprove: "NO"',
          'reasonIsList: "true"\n            reasons: [On call, New project, Audit]\n            canPreApprove: "YES"',
        ),
      'workflows.yaml': (text) =>
        `${text.replace(
          /^ {6}label: Access to the vault for/m,
          (label) => `      allowSelfApproval: "true"\n      commentRequired: true\n${label}`,
        )}\n---\n${until(text.split(/^---$/m).find((one) => one.includes('name: vault-access\n')) ?? '')}`,
    },
    more: { 'note.yaml': note, 'note-until.yaml': until(note) },
  })

  const reason = (page: Page) => page.getByRole('combobox', { name: 'Reason', exact: true })

  /** The vault in the cart, for Joan. */
  async function vaultForJoan(page: Page): Promise<void> {
    await page.goto('/portal/request')
    await page.getByRole('button', { name: 'Add Access to the vault to the cart' }).click()
    await page.getByRole('link', { name: 'Check out' }).click()
    await page.waitForLoadState('networkidle')
    await page.getByText('For others').click()
    await page.getByRole('textbox', { name: 'People' }).fill('joan')
    await page.getByRole('option', { name: 'Joan Clarke' }).click()
  }

  async function send(page: Page): Promise<void> {
    await page.getByRole('button', { name: 'Submit request' }).click()
    await page.getByText('1 request submitted').waitFor()
  }

  test('offers of all organizations are shown first, and those of one on request', async () => {
    const { page, complaints } = await visit('/portal/request', 'ada')
    const offer = (name: string) => page.getByRole('button', { name: `Add ${name} to the cart` })
    await offer('A note').waitFor()
    await offer('Access to the vault').waitFor()
    await page.getByRole('button', { name: 'Finance Counts things' }).click()
    await offer('Access to the vault').waitFor({ state: 'detached' })
    await offer('A note').waitFor()
    await page.getByRole('button', { name: 'All', exact: true }).click()
    await offer('Access to the vault').waitFor()
    expect(complaints).toEqual([])
  })

  test('a reason is chosen from the list, and one that left the list is rejected at its line', async () => {
    const { page, complaints } = await visit('/portal', 'ada')
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.goto('/portal/request')
    await page.getByRole('button', { name: 'Add Access to the vault to the cart' }).click()
    await page.getByRole('link', { name: 'Check out' }).click()
    await page.getByRole('button', { name: 'Submit request' }).click()
    await page.getByText('Enter a reason.').waitFor()
    expect(await reason(page).locator('option').allTextContents()).toEqual([
      'Choose a reason',
      'On call',
      'New project',
      'Audit',
    ])
    await reason(page).selectOption('New project')
    await expectAccessible(page, 'reasons to choose from')
    await picture(page, 'cart-reasons')
    const pattern = '**/main/workflows?*'
    await page.route(pattern, async (route) => {
      const lines = route.request().postDataJSON() as readonly object[]
      await route.continue({ postData: JSON.stringify(lines.map((one) => ({ ...one, reason: 'Because' }))) })
    })
    await page.getByRole('button', { name: 'Submit request' }).click()
    await page.getByRole('alert').getByText('Choose a reason from the list.').waitFor()
    await page.unroute(pattern)
    await send(page)
    await page.getByRole('link', { name: 'View in My requests' }).click()
    await page.getByRole('link', { name: /Access to the vault/ }).click()
    await page.getByText('New project').waitFor()
    expect(complaints).toEqual([])
  })

  test('a requester who may decide decides at once, with a reason; the request continues', async () => {
    const { page, complaints } = await visit('/portal', 'grace')
    await page.getByRole('heading', { level: 1 }).waitFor()
    await vaultForJoan(page)
    await reason(page).selectOption('On call')
    await page.getByRole('combobox', { name: 'First approval' }).selectOption('Approve')
    await page.getByRole('button', { name: 'Submit request' }).click()
    await page.getByText('Enter a reason for the decision.').waitFor()
    await page.getByRole('textbox', { name: 'Reason for the decision' }).fill('Agreed on the phone')
    await expectAccessible(page, 'a decision at the check-out')
    await picture(page, 'cart-decision')
    await send(page)
    await page.getByRole('link', { name: 'View in My requests' }).click()
    await page
      .getByRole('link', { name: /Access to the vault/ })
      .first()
      .click()
    await page.getByText('Agreed on the phone').waitFor()
    await page.getByText('Done', { exact: true }).first().waitFor()
    await page.goto('/portal/approvals?q=joan')
    await settled(page)
    expect(await page.getByRole('link', { name: /for joan/i }).count()).toBe(0)
    expect(complaints).toEqual([])
  })

  test('a requester who denies at once ends the request; one who may not decide leaves it to the approvers', async () => {
    const { page: grace } = await visit('/portal', 'grace')
    await grace.getByRole('heading', { level: 1 }).waitFor()
    await vaultForJoan(grace)
    await reason(grace).selectOption('Audit')
    await grace.getByRole('combobox', { name: 'First approval' }).selectOption('Deny')
    await grace.getByRole('textbox', { name: 'Reason for the decision' }).fill('Not this year')
    await send(grace)
    expect(await grace.getByText("your decision wasn't recorded").count()).toBe(0)
    await grace.getByRole('link', { name: 'View in My requests' }).click()
    await grace
      .getByRole('link', { name: /Access to the vault/ })
      .first()
      .click()
    await grace.getByText('Not this year').waitFor()

    const { page: linus } = await visit('/portal', 'linus')
    await linus.getByRole('heading', { level: 1 }).waitFor()
    await vaultForJoan(linus)
    await reason(linus).selectOption('On call')
    await linus.getByRole('combobox', { name: 'First approval' }).selectOption('Approve')
    await linus.getByRole('textbox', { name: 'Reason for the decision' }).fill('I say so')
    await send(linus)
    await linus.getByText("your decision wasn't recorded").waitFor()
    await expectAccessible(linus, 'a decision that was not taken')
    await picture(linus, 'cart-decision-left')
    await linus.getByRole('link', { name: 'View in My requests' }).click()
    await linus
      .getByRole('link', { name: /Access to the vault/ })
      .first()
      .click()
    await linus.getByText('Waiting for:').waitFor()
  })

  test('a search over several pages of approvals finds matches on the last one', async () => {
    const { page: mary } = await visit('/portal', 'mary')
    await mary.getByRole('heading', { level: 1 }).waitFor()
    const lines = Array.from({ length: 210 }, (_, i) => ({
      uuid: `vault-${i}`,
      name: 'vault-access-until',
      expires: endOf(i),
      reason: i === 209 ? 'New project' : 'Audit',
    }))
    await askForMany(mary, '/portal/main', lines)
    const { page, complaints } = await visit('/portal/approvals?q=new%20project%20mary', 'grace')
    await page.getByRole('link', { name: 'Access to the vault for mary' }).waitFor()
    expect(await page.getByRole('listitem').count()).toBe(1)
    await page.goto('/portal/approvals?q=neverasked')
    await page.getByText('No results for “neverasked”.').waitFor()
    // Until all pages are read, not all kinds are known; the chosen one is always offered.
    await page.goto('/portal/approvals')
    await page.getByText('Only types among the 200 loaded approvals are listed').waitFor()
    await expectAccessible(page, 'approvals of which not all are read')
    await page.goto('/portal/approvals?workflow=gone')
    await page.getByText('Only types among').waitFor({ state: 'detached' })
    expect(await page.getByLabel('Type').inputValue()).toBe('gone')
    expect(complaints).toEqual([])
  })

  test('a search over very many requests shows its progress, and continues', { timeout: 240_000 }, async () => {
    const { page, complaints } = await visit('/portal/requests', 'joan')
    await page.getByRole('heading', { level: 1 }).waitFor()
    const lines = Array.from({ length: 1_210 }, (_, i) => ({
      uuid: `note-${i}`,
      name: 'note-until',
      expires: endOf(i),
      reason: i === 0 ? 'New project' : 'Audit',
    }))
    await askForMany(page, '/portal/main', lines)
    await page.goto('/portal/requests?q=note%20new')
    await page.getByText('Searched 1,000 entries; there are more.').waitFor()
    expect(await page.getByText('No results').count()).toBe(0)
    await expectAccessible(page, 'a search that is not at its end')
    await picture(page, 'search-extent')
    await page.getByRole('button', { name: 'Search more' }).click()
    await page.getByRole('link', { name: /A note/ }).waitFor()
    await page.getByRole('button', { name: 'Search more' }).waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
  })
})

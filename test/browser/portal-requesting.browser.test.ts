import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasChromium, startChromium } from '#testing/chromium.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway-process.ts'
import { expectAccessible, picture, visit } from '#testing/portal-browser.ts'

/** The example with reasons to choose from, the first decision by whoever asks, and something that needs no decision. */
function configuration(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-requesting-'))
  cpSync('examples/portal', folder, { recursive: true })
  const file = join(folder, 'portal.yaml')
  const text = readFileSync(file, 'utf8')
  const reasons =
    'reasonIsList: "true"\n            reasons: [On call, New project, Audit]\n            canPreApprove: "YES"'
  if (!text.includes('canPreApprove: "NO"')) throw new Error('the example has changed')
  writeFileSync(file, text.replace('canPreApprove: "NO"', reasons))
  const offers = join(folder, 'workflows.yaml')
  const approval = '      label: Access to the vault for'
  writeFileSync(offers, readFileSync(offers, 'utf8').replace(approval, `      allowSelfApproval: "true"\n${approval}`))
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
  writeFileSync(join(folder, 'note.yaml'), note)
  return folder
}

describe.skipIf(!hasChromium())('asking for access', () => {
  let folder: string
  let gateway: GatewayProcess
  let browser: Browser
  let portal: string

  beforeAll(async () => {
    folder = configuration()
    gateway = await startGatewayProcess({ config: folder })
    portal = `${gateway.url}/portal`
    browser = await startChromium()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const reason = (page: Page) => page.getByRole('combobox', { name: 'Reason', exact: true })

  /** The vault in the cart, for Joan. */
  async function vaultForJoan(page: Page): Promise<void> {
    await page.goto(`${portal}/request`)
    await page.getByRole('button', { name: 'Add Access to the vault to the cart' }).click()
    await page.getByRole('link', { name: 'Check out' }).click()
    await page.waitForLoadState('networkidle')
    await page.getByText('For others').click()
    await page.getByRole('textbox', { name: 'People' }).fill('joan')
    await page.getByRole('option', { name: 'Joan Clarke' }).click()
  }

  async function send(page: Page): Promise<void> {
    await page.getByRole('button', { name: 'Send the request' }).click()
    await page.getByText('1 request was sent').waitFor()
  }

  /** Many at once, as the portal sends them. */
  async function ask(page: Page, name: string, count: number, line: (n: number) => object): Promise<void> {
    for (let sent = 0; sent < count; sent += 100) {
      const lines = Array.from({ length: Math.min(100, count - sent) }, (_, i) => ({
        uuid: `${name}-${sent + i}`,
        name,
        reason: 'Audit',
        ...line(sent + i),
      }))
      const answer = await page.request.put(`${portal}/main/workflows`, {
        data: lines,
        headers: { origin: gateway.url, 'x-requested-with': 'portal' },
      })
      expect([answer.status(), Object.values(await answer.json()).filter((one) => one !== 'success')]).toEqual([
        200,
        [],
      ])
    }
  }

  test('a reason is chosen where there is a list, and one that left the list is refused at its line', async () => {
    const { page, complaints } = await visit(browser, portal, 'ada')
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.goto(`${portal}/request`)
    await page.getByRole('button', { name: 'Add Access to the vault to the cart' }).click()
    await page.getByRole('link', { name: 'Check out' }).click()
    await page.getByRole('button', { name: 'Send the request' }).click()
    await page.getByText('Say why it is needed.').waitFor()
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
    await page.getByRole('button', { name: 'Send the request' }).click()
    await page.getByRole('alert').getByText('Choose a reason from the list.').waitFor()
    await page.unroute(pattern)
    await send(page)
    await page.getByRole('link', { name: 'Follow it in My requests' }).click()
    await page.getByRole('link', { name: /Access to the vault/ }).click()
    await page.getByText('New project').waitFor()
    expect(complaints).toEqual([])
  })

  test('who may decide decides at once, with a reason; the request goes on', async () => {
    const { page, complaints } = await visit(browser, portal, 'grace')
    await page.getByRole('heading', { level: 1 }).waitFor()
    await vaultForJoan(page)
    await reason(page).selectOption('On call')
    await page.getByRole('combobox', { name: 'First approval' }).selectOption('Approve')
    await page.getByRole('button', { name: 'Send the request' }).click()
    await page.getByText('A decision needs a reason.').waitFor()
    await page.getByRole('textbox', { name: 'Reason of the decision' }).fill('Agreed on the phone')
    await expectAccessible(page, 'a decision at the check-out')
    await picture(page, 'cart-decision')
    await send(page)
    await page.getByRole('link', { name: 'Follow it in My requests' }).click()
    await page
      .getByRole('link', { name: /Access to the vault/ })
      .first()
      .click()
    await page.getByText('Agreed on the phone').waitFor()
    await page.getByText('Done', { exact: true }).first().waitFor()
    await page.goto(`${portal}/approvals?q=joan`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    expect(await page.getByRole('link', { name: /for joan/i }).count()).toBe(0)
    expect(complaints).toEqual([])
  })

  test('who denies at once ends the request; who may not decide leaves it to those who may', async () => {
    const { page: grace } = await visit(browser, portal, 'grace')
    await grace.getByRole('heading', { level: 1 }).waitFor()
    await vaultForJoan(grace)
    await reason(grace).selectOption('Audit')
    await grace.getByRole('combobox', { name: 'First approval' }).selectOption('Deny')
    await grace.getByRole('textbox', { name: 'Reason of the decision' }).fill('Not this year')
    await send(grace)
    expect(await grace.getByText('Your decision was not taken').count()).toBe(0)
    await grace.getByRole('link', { name: 'Follow it in My requests' }).click()
    await grace
      .getByRole('link', { name: /Access to the vault/ })
      .first()
      .click()
    await grace.getByText('Not this year').waitFor()

    const { page: linus } = await visit(browser, portal, 'linus')
    await linus.getByRole('heading', { level: 1 }).waitFor()
    await vaultForJoan(linus)
    await reason(linus).selectOption('On call')
    await linus.getByRole('combobox', { name: 'First approval' }).selectOption('Approve')
    await linus.getByRole('textbox', { name: 'Reason of the decision' }).fill('I say so')
    await send(linus)
    await linus.getByText('Your decision was not taken').waitFor()
    await expectAccessible(linus, 'a decision that was not taken')
    await picture(linus, 'cart-decision-left')
    await linus.getByRole('link', { name: 'Follow it in My requests' }).click()
    await linus
      .getByRole('link', { name: /Access to the vault/ })
      .first()
      .click()
    await linus.getByText('Held by:').waitFor()
  })

  test('a search in more than one page of approvals finds what is on the last', async () => {
    const { page: mary } = await visit(browser, portal, 'mary')
    await mary.getByRole('heading', { level: 1 }).waitFor()
    await ask(mary, 'vault-access', 210, (n) => ({ reason: n === 209 ? 'New project' : 'Audit' }))
    const { page, complaints } = await visit(browser, `${portal}/approvals?q=new%20project%20mary`, 'grace')
    await page.getByRole('link', { name: 'Access to the vault for mary' }).waitFor()
    expect(await page.getByRole('listitem').count()).toBe(1)
    await page.goto(`${portal}/approvals?q=neverasked`)
    await page.getByText('Nothing found for “neverasked”.').waitFor()
    // While not all are read, not all kinds are known; the chosen one is offered in any case.
    await page.goto(`${portal}/approvals`)
    await page.getByText('Only kinds among the 200 approvals read so far are offered').waitFor()
    await expectAccessible(page, 'approvals of which not all are read')
    await page.goto(`${portal}/approvals?workflow=gone`)
    await page.getByText('Only kinds among').waitFor({ state: 'detached' })
    expect(await page.getByLabel('Kind of request').inputValue()).toBe('gone')
    expect(complaints).toEqual([])
  })

  test('a search in very many requests says how far it came, and goes on', { timeout: 240_000 }, async () => {
    const { page, complaints } = await visit(browser, `${portal}/requests`, 'joan')
    await page.getByRole('heading', { level: 1 }).waitFor()
    await ask(page, 'note', 1_210, (n) => ({ reason: n === 0 ? 'New project' : 'Audit' }))
    await page.goto(`${portal}/requests?q=note%20new`)
    await page.getByText('1,000 entries looked through; there are more.').waitFor()
    expect(await page.getByText('Nothing found').count()).toBe(0)
    await expectAccessible(page, 'a search that is not at its end')
    await picture(page, 'search-extent')
    await page.getByRole('button', { name: 'Search further' }).click()
    await page.getByRole('link', { name: /A note/ }).waitFor()
    await page.getByRole('button', { name: 'Search further' }).waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
  })
})

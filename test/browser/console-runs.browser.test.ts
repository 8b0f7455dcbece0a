import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectAccessible, heading, usePortal } from '#testing/browser/portal-browser.ts'
import { until } from '#testing/gateway/gateway-process.ts'

/** A target that no call reaches, and a workflow that needs it and is called by another. */
const broken = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: broken }
spec:
  className: targets.Plugin
  params:
    javaScript: |-
      function findUser() { throw new Error("the disk is full") }
      function createUser() { throw new Error("the disk is full") }
      function syncUser() { throw new Error("the disk is full") }
      function deleteUser() {}
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: badge }
spec:
  label: A badge
  description: Prints a badge
  inList: true
  orgId: root
  tasks: |-
    - { taskType: addAttribute, name: badge, value: requested }
    - { taskType: provision, target: people, sync: false, attributes: [badge] }
    - { taskType: callWorkflow, name: print-badge }
    - { taskType: addAttribute, name: note, value: printed }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: print-badge }
spec:
  label: Print
  description: Prints
  inList: false
  orgId: root
  tasks: |-
    - { taskType: addAttribute, name: note, value: not-to-be-shown }
    - { taskType: provision, target: broken, sync: true, attributes: [uid] }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: undecided }
spec:
  label: Undecided
  description: Has no approver
  inList: true
  orgId: root
  tasks:
    - taskType: approval
      label: Undecided
      emailTemplate: Please decide.
      mailAttr: mail
      failureEmailSubject: Denied
      failureEmailMsg: Denied
      approvers: [{ scope: filter, constraint: (uid=nobody) }]
`

describe.skipIf(!hasChromium())('the console of runs', () => {
  const { visit } = usePortal({ more: { 'broken.yaml': broken } })

  /** Runs of ada: one waits for an approval, one is an incident. */
  beforeAll(async () => {
    const ada = await visit('/portal', 'ada')
    const status = await ada.page.evaluate<number>(`(async () => {
      const headers = { 'content-type': 'application/json', 'x-requested-with': 'test' }
      const lines = ['vault-access', 'badge'].map((name) => ({ uuid: crypto.randomUUID(), name, reason: 'On call' }))
      return (await fetch('/portal/main/workflows', { method: 'PUT', headers, body: JSON.stringify(lines) })).status
    })()`)
    expect(status).toBe(200)
    await ada.page.context().close()
    const { page } = await visit('/portal', 'linus')
    const states = `fetch('/portal/main/admin/runs').then((answer) => answer.json())
      .then(({ runs }) => runs.map(({ state }) => state).sort().join())`
    await until(async () => (await page.evaluate<string>(states)) === 'incident,waiting', 120_000)
    await page.context().close()
  }, 240_000)

  test('all runs are listed, filtered by address, and exported', async () => {
    const { page, complaints } = await visit('/portal/console/runs', 'linus')
    await heading(page, 'Runs')
    const table = page.getByRole('table', { name: 'Runs' })
    await table.getByRole('link', { name: 'vault-access' }).waitFor()
    await table.getByText('the disk is full').waitFor()
    await page.getByLabel('State', { exact: true }).selectOption('On hold')
    await page.getByLabel('State', { exact: true }).press('Tab')
    await page.getByRole('textbox', { name: 'Workflow' }).fill('badge')
    await page.keyboard.press('Enter')
    await page.waitForURL(/state=incident/)
    await table.getByRole('link', { name: 'vault-access' }).waitFor({ state: 'detached' })
    await page.reload()
    await table.getByRole('link', { name: 'badge' }).waitFor()
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const file = readFileSync(await (await saved).path(), 'utf8')
    expect(file).toContain('badge,incident,ada,ada')
    expect(file).not.toContain('vault-access')
    await page.getByRole('button', { name: 'Clear' }).click()
    await table.getByRole('link', { name: 'vault-access' }).waitFor()
    expect(complaints).toEqual([])
  })

  test('changes that failed part way have a filter', async () => {
    const { page, complaints } = await visit('/portal/console/runs', 'linus')
    const table = page.getByRole('table', { name: 'Runs' })
    await table.getByRole('link', { name: 'vault-access' }).waitFor()
    await page.getByLabel('Change', { exact: true }).selectOption('Failed part way')
    await page.locator('form').getByRole('button', { name: 'Search' }).click()
    await page.waitForURL(/unfinished=/)
    await table.getByRole('link', { name: 'vault-access' }).waitFor({ state: 'detached' })
    await page.reload()
    await table.getByRole('link', { name: 'badge' }).waitFor()
    expect(await page.getByLabel('Change', { exact: true }).inputValue()).toBe('true')
    await expectAccessible(page, 'the filtered runs')
    expect(complaints).toEqual([])
  })

  test('the page of a run shows its steps on the diagram, and an operator skips the failed one', async () => {
    const { page, complaints } = await visit('/portal/console/runs?name=badge', 'linus')
    await page.getByRole('link', { name: 'badge' }).click()
    await heading(page, 'badge')
    const diagram = page.getByRole('region', { name: 'Workflow' })
    const call = diagram.getByRole('listitem').filter({ hasText: 'callWorkflow' })
    await call.locator('> .task-box').getByText('Failed').waitFor()
    const called = call.getByRole('listitem')
    await called.filter({ hasText: 'addAttribute' }).getByText('Done').waitFor()
    await called.filter({ hasText: 'provision' }).getByText('Failed').waitFor()
    expect(await called.count()).toBe(2)
    expect(await page.content()).not.toContain('not-to-be-shown')
    await page.getByRole('button', { name: /^Skip/ }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Printed by hand')
    await expectAccessible(page, 'the dialog to skip')
    await dialog.getByRole('button', { name: 'Skip' }).press('Enter')
    await page.getByText('Skipped: badge').waitFor()
    await page.getByRole('button', { name: /^Skip/ }).waitFor({ state: 'detached' })
    await page.getByText('Done').first().waitFor()
    expect(complaints).toEqual([])
  })

  test('the diagram of a run has the names of its steps, not the places of templates', async () => {
    const { page } = await visit('/portal/console/runs?name=vault-access', 'linus')
    await page.getByRole('link', { name: 'vault-access' }).click()
    const diagram = page.getByRole('region', { name: 'Workflow' })
    const approval = diagram.getByRole('listitem').filter({ hasText: 'approval' }).first()
    await approval.getByText('Access to the vault for Ada Lovelace').waitFor()
    expect(await diagram.textContent()).not.toContain('[displayName]')
  })

  test('a workflow is a diagram of nested lists', async () => {
    const { page, complaints } = await visit('/portal/console/workflows?q=vault', 'linus')
    const table = page.getByRole('table', { name: 'Workflows' })
    await table.getByRole('link', { name: 'vault-access: Waiting 1' }).waitFor()
    await table.getByRole('link', { name: 'vault-access', exact: true }).click()
    await heading(page, 'vault-access')
    const task = page
      .getByRole('region', { name: 'Tasks' })
      .getByRole('listitem')
      .filter({ hasText: 'approval' })
      .first()
    await task.getByText('If it succeeds').waitFor()
    await task.getByRole('listitem').filter({ hasText: 'provision' }).getByText('At people').waitFor()
    expect(complaints).toEqual([])
  })

  test('an operator gives an open approval to another user', async () => {
    const { page, complaints } = await visit('/portal/console/approvals', 'linus')
    const table = page.getByRole('table', { name: 'Open approvals' })
    await table.getByText('grace').waitFor()
    await table.getByRole('button', { name: /^Reassign/ }).press('Enter')
    const dialog = page.getByRole('dialog', { name: /” for .?Ada Lovelace/ })
    const choose = async (login: string, name: string): Promise<void> => {
      await dialog.getByRole('textbox', { name: 'New approver' }).fill(login)
      await dialog.getByRole('option', { name }).click()
    }
    await choose('ada', 'Ada Lovelace')
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Grace is away')
    await expectAccessible(page, 'the dialog to reassign')
    await dialog.getByRole('button', { name: 'Reassign' }).click()
    await dialog.getByText('"ada" is the requester or the subject').waitFor()
    await choose('linus', 'Linus Pauling')
    await dialog.getByRole('button', { name: 'Reassign' }).click()
    await dialog.getByText('operators can only give it to another user').waitFor()
    await choose('joan', 'Joan Clarke')
    await dialog.getByRole('button', { name: 'Reassign' }).click()
    await page.getByText(/^Reassigned to Joan Clarke/).waitFor()
    await table.getByText('joan').waitFor()
    await page.getByLabel('Age', { exact: true }).selectOption('Overdue: 3 days')
    await page.getByRole('main').getByRole('button', { name: 'Search' }).click()
    await page.getByText('No open approvals found.').waitFor()
    expect(complaints.filter((line) => !line.includes('status of 400'))).toEqual([])
  })

  test('an operator reassigns an approval on the page of its run', async () => {
    const { page, complaints } = await visit('/portal/console/runs?name=vault-access', 'linus')
    await page.getByRole('link', { name: 'vault-access' }).click()
    const approvals = page.getByRole('region', { name: 'Approvals' })
    await approvals.getByText('joan').waitFor()
    await approvals.getByRole('button', { name: /^Reassign/ }).press('Enter')
    const dialog = page.getByRole('dialog', { name: /” for .?Ada Lovelace/ })
    await dialog.getByRole('button', { name: 'Reassign' }).click()
    expect(await dialog.getByText('Required', { exact: true }).count()).toBe(2)
    await dialog.getByRole('textbox', { name: 'New approver' }).fill('mary')
    await dialog.getByRole('option', { name: 'Mary Jackson' }).click()
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Joan is busy')
    await expectAccessible(page, 'the dialog to reassign on the page of a run')
    await dialog.getByRole('button', { name: 'Reassign' }).press('Enter')
    await page.getByText(/^Reassigned to .?Mary Jackson/).waitFor()
    await approvals
      .getByText(/Mary Jackson/)
      .first()
      .waitFor()
    expect(complaints).toEqual([])
  })

  test('targets show their health and the failures of their calls', async () => {
    const { page, complaints } = await visit('/portal/console/targets', 'linus')
    const table = page.getByRole('table', { name: 'Targets' })
    await table
      .getByRole('row', { name: /^people/ })
      .getByText('Reachable')
      .waitFor()
    const row = table.getByRole('row', { name: /^broken/ })
    await row.getByText("Can't be checked").waitFor()
    await row.getByText('the disk is full').waitFor()
    expect(complaints).toEqual([])
  })

  test('the charts of the dashboard lead to the runs behind them', async () => {
    const { page, complaints } = await visit('/portal/dashboard', 'linus')
    const requests = page.getByRole('region', { name: 'Requests over time' })
    await requests.getByRole('link', { name: 'In progress 1' }).press('Enter')
    await page.waitForURL(/console\/runs\?.*state=ready/)
    const table = page.getByRole('table', { name: 'Runs' })
    await table.getByRole('link', { name: 'vault-access' }).waitFor()
    expect(await table.getByRole('link', { name: 'badge' }).count()).toBe(0)
    await page.goBack()
    const byWorkflow = page.getByRole('region', { name: 'Requests by workflow' })
    await byWorkflow.getByText('Details').press('Enter')
    await expectAccessible(page, 'the numbers of a chart')
    await byWorkflow.getByRole('link', { name: /Show runs: vault-access, In progress/ }).click()
    await table.getByRole('link', { name: 'vault-access' }).waitFor()
    await page.goBack()
    await requests.locator('.recharts-bar-rectangle path >> visible=true').first().click()
    await page.waitForURL(/console\/runs\?/)
    await table.waitFor()
    expect(complaints).toEqual([])
  })

  test('an operator chooses an approver where there is none, and changes no run of their own', async () => {
    for (const login of ['ada', 'linus']) {
      const { page } = await visit('/portal', login)
      await page.evaluate(`(async () => {
        const headers = { 'content-type': 'application/json', 'x-requested-with': 'test' }
        const body = JSON.stringify([{ uuid: crypto.randomUUID(), name: 'undecided', reason: 'On call' }])
        await fetch('/portal/main/workflows', { method: 'PUT', headers, body })
      })()`)
      await page.context().close()
    }
    const { page, complaints } = await visit('/portal/dashboard', 'linus')
    const count = `fetch('/portal/main/admin/incidents?name=undecided').then((answer) => answer.json())
      .then(({ runs }) => runs.length)`
    await until(async () => (await page.evaluate<number>(count)) === 2, 60_000)
    await page.reload()
    const own = page.getByRole('article', { name: /undecided.*Linus/ })
    await own.getByText('Ask another operator.').waitFor({ timeout: 60_000 })
    expect(await own.getByRole('button').count()).toBe(0)
    const other = page.getByRole('article', { name: /undecided.*Ada/ })
    await other.getByText("An approval can't be skipped.").waitFor({ timeout: 60_000 })
    expect(await other.getByRole('button', { name: /^Skip/ }).count()).toBe(0)
    await other.getByRole('button', { name: /^Retry/ }).press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox', { name: 'Approver' }).fill('joan')
    await dialog.getByRole('option', { name: 'Joan Clarke' }).click()
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('No one else is there')
    await expectAccessible(page, 'the dialog to choose an approver')
    await dialog.getByRole('button', { name: 'Retry' }).click()
    await other.waitFor({ state: 'detached' })
    await page.goto(new URL('/portal/console/approvals?workflow=undecided', page.url()).href)
    await page.getByRole('table', { name: 'Open approvals' }).getByText('joan').waitFor({ timeout: 60_000 })
    expect(complaints).toEqual([])
  })

  test('the console is for administrators', async () => {
    const { page } = await visit('/portal/console/runs', 'ada')
    await page.getByText('Administrators only').waitFor()
  })
})

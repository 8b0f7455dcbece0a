import { readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScimCall } from '#contract/main-admin.ts'
import type { ReportResult } from '#contract/reports.ts'
import { hasChromium, startChromium } from '#testing/chromium.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway-process.ts'
import { expectAccessible, picture, visit } from '#testing/portal-browser.ts'
import { type PortalConfig, portalConfig } from '#testing/portal-config.ts'

/** What a page may have, however much there is to show. */
const maxElements = 2_500
const manyRows = 50_000

describe.skipIf(!hasChromium())('reports and the dashboard', () => {
  let config: PortalConfig
  let gateway: GatewayProcess
  let browser: Browser
  let portal: string

  beforeAll(async () => {
    // A form without checks, whose workflow fails: the embedded directory stores no passwords for targets.
    config = portalConfig({
      'registration.yaml': (text) =>
        text
          .replace('humanCheck: proof-of-work', 'preSetPassword: "true"')
          .replace('verifyEmail: "true"', 'verifyEmail: "false"')
          .replace(/\n {4}- taskType: approval[\s\S]*onSuccess:\n/, '\n')
          .replace(
            / {8}- taskType: provision[\s\S]*$/,
            '    - { taskType: provision, target: people, sync: true, setPassword: true, attributes: [uid] }\n',
          ),
    })
    gateway = await startGatewayProcess({ config: config.folder })
    portal = `${gateway.url}/portal`
    for (const uid of ['kate', 'dorothy']) {
      const answer = await fetch(`${gateway.url}/api/register/submit`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-requested-with': 'test' },
        body: JSON.stringify({
          attributes: { uid, mail: `${uid}@example.com`, displayName: uid, team: 'red' },
          reason: 'Test',
          password: 'a train of thought',
          password2: 'a train of thought',
          checkedTermsAndConditions: true,
        }),
      })
      expect([answer.status, await answer.text()]).toMatchObject([200, expect.anything()])
    }
    browser = await startChromium()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
    config?.remove()
  })

  test('a report is chosen, filled in, sorted, drawn and taken along', async () => {
    const { page, complaints } = await visit(browser, `${portal}/reports`, 'linus')
    await page.getByRole('link', { name: 'Change Log for Period' }).waitFor()
    await expectAccessible(page, 'the reports')
    await picture(page, 'reports')
    await page.getByRole('searchbox', { name: 'Search reports' }).fill('period')
    await page.getByRole('link', { name: 'My Open Requests' }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Change Log for Period' }).click()

    await page.getByRole('button', { name: 'Run' }).click()
    expect(await page.getByText('This is needed.').count()).toBe(2)
    await page.getByLabel('From').fill('2026-02-01')
    await page.getByLabel('To').fill('2026-01-01')
    await page.getByText('This is before the beginning.').waitFor()
    await page.getByLabel('From').fill('2020-01-01')
    await page.getByLabel('To').fill('2099-12-31')
    await page.getByRole('button', { name: 'Run' }).click()
    await page.waitForURL(/beginDate=2020-01-01/)
    const table = page.getByRole('table', { name: 'Change Log for Period' })
    await table.waitFor()
    await expectAccessible(page, 'a report')

    const column = () => table.locator('tbody tr td:nth-child(2)').allTextContents()
    const unsorted = await column()
    expect(unsorted.length).toBeGreaterThan(1)
    await table.getByRole('button', { name: 'Subject' }).click()
    expect(await column()).toEqual(unsorted.toSorted())
    await table.getByRole('button', { name: 'Subject' }).click()
    expect(await column()).toEqual(unsorted.toSorted().reverse())
    expect(await table.getByRole('columnheader', { name: 'Subject' }).getAttribute('aria-sort')).toBe('descending')

    for (const format of ['CSV', 'XLSX'] as const) {
      const saved = page.waitForEvent('download')
      await page.getByRole('button', { name: `Export ${format}` }).click()
      const file = await saved
      expect(file.suggestedFilename()).toBe(`Change Log for Period.${format.toLowerCase()}`)
      const content = readFileSync(await file.path())
      if (format === 'CSV') expect(content.toString()).toContain('kate')
      else expect(content.subarray(0, 2).toString()).toBe('PK')
    }
    // The address is enough for somebody else who may see it.
    await page.reload()
    await table.waitFor()
    expect(complaints).toEqual([])
  })

  test('a report of 50,000 rows stays small, and has a picture', async () => {
    const { page, complaints } = await visit(browser, portal, 'linus')
    await page.route('**/main/reports/Open%20Approvals', (route) =>
      route.fulfill({ contentType: 'application/json', body: JSON.stringify(largeReport()) }),
    )
    await page.getByRole('link', { name: 'Reports' }).click()
    await page.getByRole('link', { name: 'Open Approvals' }).click()
    const table = page.getByRole('table', { name: 'Open Approvals' })
    await table.getByText('person-0', { exact: true }).waitFor()
    const count = () => page.evaluate<number>(`document.querySelectorAll('*').length`)
    expect(await count()).toBeLessThan(maxElements)
    await page.evaluate(`document.querySelector('.table-scroll').scrollTo(0, 1e9)`)
    await table.getByText(`person-${manyRows - 1}`, { exact: true }).waitFor()
    expect(await count()).toBeLessThan(maxElements)
    await page.getByText('There are more rows than are shown here').waitFor()

    await page.getByRole('searchbox', { name: 'Search in the rows' }).fill('person-4999')
    await page.getByText('11 rows').waitFor()
    await page.getByRole('searchbox', { name: 'Search in the rows' }).fill('')
    await page.getByLabel('Chart').selectOption({ label: 'Rows by “Team”' })
    await page.locator('.recharts-bar-rectangle').first().waitFor()
    await expectAccessible(page, 'a report with a picture')
    await picture(page, 'report-chart')
    await page.getByLabel('Chart').selectOption({ label: 'Rows by “At”' })
    await page.locator('.recharts-bar-rectangle').nth(9).waitFor()
    expect(await count()).toBeLessThan(maxElements)
    expect(complaints).toEqual([])
  })

  test('an administrator sees incidents, and skips, retries or ends them', async () => {
    const { page, complaints } = await visit(browser, `${portal}/dashboard`, 'linus')
    await page.getByRole('heading', { name: 'Incidents (2)' }).waitFor()
    await page.locator('.recharts-bar-rectangle').first().waitFor()
    await expectAccessible(page, 'the dashboard')
    await picture(page, 'dashboard')
    const kate = page.getByRole('article', { name: 'join for kate' })
    await kate.getByText('cannot store passwords').waitFor()
    await kate.getByRole('button', { name: /^Skip/ }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Skip' }).click()
    await dialog.getByText('This is needed.').waitFor()
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Done by hand')
    await dialog.getByRole('button', { name: 'Skip' }).click()
    await page.getByText('Skipped: join').waitFor()
    await kate.waitFor({ state: 'detached' })

    // Somebody else was faster: nothing is done to what was not seen.
    const dorothy = page.getByRole('article', { name: 'join for dorothy' })
    await dorothy.getByRole('button', { name: /^Retry/ }).click()
    await page.evaluate(`(async () => {
      const [run] = (await (await fetch('/portal/main/admin/incidents')).json()).runs
      const headers = { 'content-type': 'application/json', 'x-requested-with': 'test' }
      await fetch('/portal/main/admin/runs/' + run.id + '/cancel', {
        method: 'POST', headers, body: JSON.stringify({ fence: run.fence, reason: 'Enough' }),
      })
    })()`)
    await dialog.getByRole('button', { name: 'Retry' }).click()
    await dialog.getByText('Something happened to this request in the meantime').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).first().click()
    await page.getByText('No incidents').waitFor()
    expect(complaints.filter((line) => !/status of (?:409|412)/.test(line))).toEqual([])
  })

  test('the journal of SCIM calls is long, and says why a call failed', async () => {
    const { page, complaints } = await visit(browser, portal, 'linus', { colorScheme: 'dark' })
    await page.route('**/main/admin/scim-journal?*', (route) => {
      const after = Number(new URL(route.request().url()).searchParams.get('after') ?? 0)
      const entries = Array.from({ length: 100 }, (_, i) => scimCall(after + i))
      const next = after + 100 < 2_000 ? { next: String(after + 100) } : {}
      return route.fulfill({ contentType: 'application/json', body: JSON.stringify({ entries, ...next }) })
    })
    await page.getByRole('link', { name: 'Dashboard' }).click()
    const journal = page.getByRole('table', { name: 'SCIM journal' })
    await journal.getByText('/scim/Users/0').waitFor()
    await page
      .getByRole('region', { name: 'SCIM calls by client' })
      .locator('.recharts-bar-rectangle')
      .first()
      .waitFor()
    await expectAccessible(page, 'the dashboard in the dark')
    await picture(page, 'dashboard-dark')
    const atEnd = async (): Promise<string> => {
      await page.evaluate(`document.querySelector('.table-scroll').scrollTo(0, 1e9)`)
      return (await journal.locator('tbody tr td:nth-child(4)').last().textContent()) ?? ''
    }
    await expect.poll(atEnd, { timeout: 15_000 }).toBe('/scim/Users/1999')
    expect(await page.evaluate<number>(`document.querySelectorAll('*').length`)).toBeLessThan(maxElements)
    await page.evaluate(`document.querySelector('.table-scroll').scrollTo(0, 0)`)
    await journal.locator('tbody tr', { hasText: '/scim/Users/3' }).first().getByRole('button').click()
    await page.getByRole('dialog').getByText('uniqueness: It is taken.').waitFor()
    await expectAccessible(page, 'a call')
    expect(complaints).toEqual([])
  })

  test('the dashboard is for administrators', async () => {
    const { page } = await visit(browser, `${portal}/dashboard`, 'ada')
    await page.getByText('For administrators').waitFor()
    expect(await page.getByRole('link', { name: 'Dashboard' }).count()).toBe(0)
  })
})

function largeReport(): ReportResult {
  const data = Array.from({ length: manyRows }, (_, i) => ({
    Person: `person-${i}`,
    Team: ['red', 'blue', 'green'][i % 3] ?? '',
    At: new Date(Date.UTC(2026, 0, 1 + (i % 30))).toISOString(),
  }))
  const fields = ['Person', 'Team', 'At']
  return {
    name: 'Open Approvals',
    description: '',
    headerFields: [],
    dataFields: fields,
    grouping: [{ header: {}, data }],
    truncated: true,
  }
}

const scimCall = (i: number): ScimCall => ({
  id: 10_000 - i,
  gateway: 'scim',
  time: new Date(Date.now() - i * 60_000).toISOString(),
  requestId: `request-${i}`,
  caller: i % 4 === 0 ? 'hr' : 'okta',
  method: 'POST',
  path: `/scim/Users/${i}`,
  status: i % 3 === 0 ? 409 : 201,
  ...(i % 3 === 0 ? { scimType: 'uniqueness', error: 'It is taken.' } : {}),
  millis: 5,
  workflows: [],
})

import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AdminRun, StatisticsPartView, StatisticsView } from '#features/portal/contract/main-admin.ts'
import type { ReportResult } from '#features/reports/contract/reports.ts'
import type { ScimCall } from '#features/scim/contract/journal.ts'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectAccessible, picture, usePortal } from '#testing/browser/portal-browser.ts'

/** The most elements of a page, however much it shows. */
const maxElements = 2_500
const manyRows = 50_000

const phone = { colorScheme: 'dark', viewport: { width: 390, height: 844 }, hasTouch: true } as const

/** For every chart: the number of visible bars, and how far its legend overlaps it. */
const drawn = `[...document.querySelectorAll('.bars')].map((figure) => {
  const boxes = (selector) => [...figure.querySelectorAll(selector)].map((found) => found.getBoundingClientRect())
  const plot = boxes('svg.recharts-surface')[0]
  const legend = boxes('.bars-legend li, .recharts-legend-wrapper')
  return {
    name: figure.getAttribute('aria-label'),
    bars: boxes('.recharts-bar-rectangle path').filter(({ width, height }) => width > 0.5 && height > 0.5).length,
    overlap: Math.max(0, ...legend.map(({ bottom }) => bottom - plot.top)),
  }
})`

describe.skipIf(!hasChromium())('reports and the dashboard', () => {
  const { visit, url } = usePortal({
    changes: {
      // A form without checks, whose workflow fails: the last of its targets creates no accounts.
      'registration.yaml': (text) =>
        text
          .replace('humanCheck: proof-of-work', 'preSetPassword: "true"')
          .replace('verifyEmail: "true"', 'verifyEmail: "false"')
          .replace(/\n {4}- taskType: approval[\s\S]*onSuccess:\n/, '\n')
          .replace(
            / {8}- taskType: provision[\s\S]*$/,
            `    - { taskType: provision, target: people, sync: true, attributes: [uid] }
    - { taskType: provision, target: ledger, sync: true, attributes: [uid] }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: ledger }
spec:
  className: targets.Plugin
  params:
    javaScript: |-
      function findUser() { return null }
      function createUser() { throw new Error('the ledger is closed') }
      function syncUser() {}
      function deleteUser() {}
`,
          ),
    },
  })
  beforeAll(async () => {
    for (const uid of ['kate', 'dorothy']) {
      const answer = await fetch(url('/api/register/submit'), {
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
  })

  /** From now on the page gets this much of everything. */
  const countAs = (page: Page, scale: () => number): Promise<unknown> =>
    page.route('**/main/admin/statistics?*', (route) => {
      const query = new URL(route.request().url()).searchParams
      return route.fulfill({ json: statistics(query, scale()) })
    })

  /** With the bars of a week: axe takes seconds for those of a month. */
  async function expectFewAccessible(page: Page, what: string): Promise<void> {
    await page.getByRole('radiogroup', { name: 'Period' }).getByText('7 days').click()
    const approvals = page.getByRole('region', { name: 'Approvals over time' })
    await expect.poll(() => approvals.locator('tbody tr').count()).toBe(7)
    await expectAccessible(page, what)
  }

  test('a report is chosen, filled in, sorted, drawn and downloaded', async () => {
    const { page, complaints } = await visit('/portal/reports', 'linus')
    await page.getByRole('link', { name: 'Change Log for Period' }).waitFor()
    await expectAccessible(page, 'the reports')
    await picture(page, 'reports')
    await page.getByRole('searchbox', { name: 'Search reports' }).fill('period')
    await page.getByRole('link', { name: 'My Open Requests' }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Change Log for Period' }).click()

    await page.getByRole('button', { name: 'Run' }).click()
    expect(await page.getByText('Required').count()).toBe(2)
    await page.getByLabel('From').fill('2026-02-01')
    await page.getByLabel('To').fill('2026-01-01')
    await page.getByText('The end must be after the beginning.').waitFor()
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
    // The URL is enough for another user who may see it.
    await page.reload()
    await table.waitFor()
    expect(complaints).toEqual([])
  })

  test('a report of 50,000 rows stays small, and has a chart', async () => {
    const { page, complaints } = await visit('/portal', 'linus')
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
    await page.getByText('There are more rows than shown here').waitFor()

    await page.getByRole('searchbox', { name: 'Search rows' }).fill('person-4999')
    await page.getByText('11 rows').waitFor()
    await page.getByRole('searchbox', { name: 'Search rows' }).fill('')
    await page.getByLabel('Chart').selectOption({ label: 'Rows by “Team”' })
    await page.locator('.recharts-bar-rectangle').first().waitFor()
    const tooltip = page.locator('.recharts-tooltip-wrapper')
    const pointed = async (): Promise<string> => {
      await page.locator('.recharts-bar-rectangle').nth(1).hover()
      return (await tooltip.textContent()) ?? ''
    }
    await expect.poll(pointed).toMatch(/blue.*16,667/)
    await expectAccessible(page, 'a report with a picture')
    await picture(page, 'report-chart')
    await page.getByLabel('Chart').selectOption({ label: 'Rows by “At”' })
    await page.locator('.recharts-bar-rectangle').nth(9).waitFor()
    expect(await count()).toBeLessThan(maxElements)
    expect(complaints).toEqual([])
  })

  test('an administrator sees incidents, and skips, retries or ends them', async () => {
    const { page, complaints } = await visit('/portal/dashboard', 'linus')
    await page.getByRole('heading', { name: 'Incidents (2)' }).waitFor()
    const requests = page.getByRole('region', { name: 'Requests over time' })
    await requests
      .getByText('Completed 0 · In progress 0 · Denied 0 · Cancelled or expired 0 · Failed or on hold 2')
      .waitFor()
    await requests.locator('.recharts-bar-rectangle').first().waitFor()
    const byWorkflow = page.getByRole('region', { name: 'Requests by workflow' })
    await byWorkflow.getByText('Details').click()
    await byWorkflow.getByRole('row', { name: /^join 0 0 0 0 2/ }).waitFor()
    const approvals = page.getByRole('region', { name: 'Approvals over time' })
    await approvals.getByText('No activity in this period.').waitFor()
    // A login at this portal gets a token of its issuer.
    const tokens = page.getByRole('region', { name: 'Tokens for users over time' })
    await tokens.getByText(/^Issued [1-9]\d* · Refused 0$/).waitFor()
    await expectAccessible(page, 'the dashboard')
    await picture(page, 'dashboard')
    const kate = page.getByRole('article', { name: 'join for kate' })
    await kate.getByText('the ledger is closed').waitFor()
    await kate.getByRole('button', { name: /^Skip/ }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Skip' }).click()
    await dialog.getByText('Required').waitFor()
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Done by hand')
    await dialog.getByRole('button', { name: 'Skip' }).click()
    await page.getByText('Skipped: join').waitFor()
    await kate.waitFor({ state: 'detached' })

    // Another user was faster: nothing happens to an outdated incident.
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
    await dialog.getByText('This run changed in the meantime').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).first().click()
    await page.getByText('No incidents').waitFor()
    expect(complaints.filter((line) => !/status of (?:409|412)/.test(line))).toEqual([])
  })

  test('a decided request appears in the charts, for every period', async () => {
    const ada = await visit('/portal', 'ada')
    const grace = await visit('/portal', 'grace')
    expect(
      await ada.page.evaluate(`(async () => {
      const headers = { 'content-type': 'application/json', 'x-requested-with': 'test' }
      const body = JSON.stringify([{ uuid: crypto.randomUUID(), name: 'vault-access', reason: 'On call' }])
      return (await fetch('/portal/main/workflows', { method: 'PUT', headers, body })).status
    })()`),
    ).toBe(200)
    const decide = `(async () => {
      const headers = { 'content-type': 'application/json', 'x-requested-with': 'test' }
      const [open] = (await (await fetch('/portal/main/approvals')).json()).approvals
      if (open === undefined) return 0
      const body = JSON.stringify({ approved: true, reason: 'Yes' })
      return (await fetch('/portal/main/approvals/' + open.approval, { method: 'PUT', headers, body })).status
    })()`
    await expect.poll(() => grace.page.evaluate<number>(decide)).toBe(200)

    const { page, complaints } = await visit('/portal/dashboard', 'linus')
    const approvals = page.getByRole('region', { name: 'Approvals over time' })
    const times = page.getByRole('region', { name: 'Time to decide' })
    for (const [period, parts] of [
      ['24 hours', 24],
      ['7 days', 7],
      ['30 days', 30],
    ] as const) {
      await page.getByRole('radiogroup', { name: 'Period' }).getByText(period).click()
      await approvals.getByText('Opened 1 · Approved 1 · Denied 0 · Escalated 0').waitFor()
      await times.getByText(/^Median: [\d.]+ seconds?\.$/).waitFor()
      await expect.poll(() => approvals.locator('tbody tr').count()).toBe(parts)
      await times.locator('.recharts-bar-rectangle').first().waitFor()
      const told = await times.locator('tbody td').allTextContents()
      expect(told.filter((text) => text === '–')).toHaveLength(parts - 1)
    }
    expect(complaints).toEqual([])
  })

  test('a quiet period differs visibly from a busy one', async () => {
    const { page, complaints } = await visit('/portal', 'linus', {
      colorScheme: 'dark',
      reducedMotion: 'reduce',
    })
    let scale = 0
    await countAs(page, () => scale)
    await page.getByRole('link', { name: 'Dashboard' }).click()
    await expect.poll(() => page.getByText('No activity in this period.').count()).toBe(8)
    await picture(page, 'dashboard-empty')
    scale = 1_000
    await page.getByText('30 days').click()
    const regions = ['Requests over time', 'Time to decide', 'SCIM calls over time', 'SCIM calls by client']
    for (const name of regions) {
      await page.getByRole('region', { name }).locator('.recharts-bar-rectangle').first().waitFor()
    }
    const tokens = page.getByRole('region', { name: 'Tokens for workloads over time' })
    await tokens.getByText('Issued 870,000 · Refused 30,000').waitFor()
    await page.getByText('Median: 2.5 hours.').waitFor()
    expect(await page.evaluate<number>(`document.querySelectorAll('*').length`)).toBeLessThan(maxElements * 2)
    await page.setViewportSize({ width: 1280, height: 2_400 })
    await picture(page, 'dashboard-full-dark')
    await expectFewAccessible(page, 'a busy dashboard in the dark')
    expect(complaints).toEqual([])
  })

  test('on a phone every chart has its bars, below its legend', async () => {
    const { page, complaints } = await visit('/portal', 'linus', phone)
    await countAs(page, () => 1_000)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.goto('/portal/dashboard?period=30d')
    await expect.poll(() => page.locator('.bars').count()).toBe(8)
    const whole = (name: string, bars: number) => ({ name, bars, overlap: 0 })
    // Rotates the phone; the charts are drawn again.
    for (const size of [{ width: 844, height: 390 }, phone.viewport]) {
      await page.setViewportSize(size)
      await expect
        .poll(() => page.evaluate<number>('document.querySelector(".bars svg").clientWidth'))
        .toBeLessThan(size.width)
      await expect
        .poll(() => page.evaluate(drawn))
        .toEqual([
          whole('Requests over time', 90),
          whole('Requests by workflow', 9),
          whole('Approvals over time', 120),
          whole('Time to decide', 30),
          // No token was issued in the first part.
          whole('Tokens for workloads over time', 59),
          whole('Tokens for users over time', 60),
          whole('SCIM calls over time', 90),
          whole('SCIM calls by client', 6),
        ])
    }
    await page.setViewportSize({ width: 390, height: 3_600 })
    await picture(page, 'dashboard-full-phone')
    await page.setViewportSize(phone.viewport)
    await expectFewAccessible(page, 'a busy dashboard on a phone')
    expect(complaints).toEqual([])
  })

  test('the journal of SCIM calls is long, and shows why a call failed', async () => {
    const { page, complaints } = await visit('/portal', 'linus', { colorScheme: 'dark' })
    await page.route('**/main/admin/scim-journal?*', (route) => {
      const after = Number(new URL(route.request().url()).searchParams.get('after') ?? 0)
      const entries = Array.from({ length: 100 }, (_, i) => scimCall(after + i))
      const next = after + 100 < 600 ? { next: String(after + 100) } : {}
      return route.fulfill({ contentType: 'application/json', body: JSON.stringify({ entries, ...next }) })
    })
    await page.getByRole('link', { name: 'Dashboard' }).click()
    const journal = page.getByRole('table', { name: 'SCIM journal' })
    await journal.getByText('/scim/Users/0').waitFor()
    const hidden =
      '(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector(".table-scroll"))'
    expect(await page.evaluate<number>(hidden)).toBe(0)
    await expectAccessible(page, 'the journal in the dark', { rules: 'colors' })
    await picture(page, 'dashboard-dark')
    const atEnd = async (): Promise<string> => {
      await page.evaluate(`document.querySelector('.table-scroll').scrollTo(0, 1e9)`)
      return (await journal.locator('tbody tr td:nth-child(4)').last().textContent()) ?? ''
    }
    await expect.poll(atEnd, { timeout: 60_000 }).toBe('/scim/Users/599')
    expect(await page.evaluate<number>(`document.querySelectorAll('*').length`)).toBeLessThan(maxElements)
    await page.evaluate(`document.querySelector('.table-scroll').scrollTo(0, 0)`)
    await journal.locator('tbody tr', { hasText: '/scim/Users/3' }).first().getByRole('button').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('uniqueness: It is taken.').waitFor()
    await dialog.getByText(/ \d\d:\d\d:\d\d$/).waitFor()
    expect(await dialog.locator('pre').innerText()).toBe(JSON.stringify([{ op: 'add' }], null, 2))
    await expectAccessible(page, 'a call')
    await page.keyboard.press('Escape')
    await page.emulateMedia({ media: 'print' })
    for (const part of ['banner', 'navigation'] as const) expect(await page.getByRole(part).count()).toBe(0)
    expect(await page.getByRole('heading', { name: 'SCIM journal' }).isVisible()).toBe(true)
    expect(complaints).toEqual([])
  })

  test('a further page of the journal or of incidents that fails is reported, and only the user requests it again', async () => {
    const { page } = await visit('/portal', 'linus')
    let isDown = true
    const asked = { incidents: 0, journal: 0 }
    const incident = { ...incidentRun, id: 'run-1', subject: 'first' }
    const answers = {
      incidents: [{ runs: [incident], next: '1' }, { runs: [{ ...incident, id: 'run-2', subject: 'second' }] }],
      journal: [{ entries: Array.from({ length: 20 }, (_, i) => scimCall(i)), next: '1' }, { entries: [scimCall(20)] }],
    }
    for (const [list, pattern] of [
      ['incidents', '**/main/admin/incidents?*'],
      ['journal', '**/main/admin/scim-journal?*'],
    ] as const) {
      await page.route(pattern, (route) => {
        const isFurther = new URL(route.request().url()).searchParams.has('after')
        if (isFurther) asked[list] += 1
        return isFurther && isDown
          ? route.fulfill({ status: 400, json: { errors: [`No more of the ${list}.`] } })
          : route.fulfill({ json: answers[list][isFurther ? 1 : 0] })
      })
    }
    await page.getByRole('link', { name: 'Dashboard' }).click()
    const incidents = page.getByRole('region', { name: 'Incidents' })
    const journal = page.getByRole('region', { name: 'SCIM journal' }).first()
    await incidents.getByRole('button', { name: 'Show more' }).click()
    await incidents.getByText('No more of the incidents.').waitFor()
    await journal.getByText('No more of the journal.').waitFor()
    await journal.locator('.table-scroll').evaluate((table) => table.scrollTo(0, 1e9))
    await journal.locator('.table-scroll').evaluate((table) => table.scrollTo(0, 0))
    await expectAccessible(page, 'lists that do not go on')
    expect(asked).toEqual({ incidents: 1, journal: 1 })
    isDown = false
    await incidents.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('article', { name: 'join for second' }).waitFor()
    await journal.getByRole('button', { name: 'Try again' }).click()
    await journal.getByText('No more of the journal.').waitFor({ state: 'detached' })
    await journal.locator('.table-scroll').evaluate((table) => table.scrollTo(0, 1e9))
    await journal.getByText('/scim/Users/20').waitFor()
  })

  test('the dashboard is for administrators', async () => {
    const { page } = await visit('/portal/dashboard', 'ada')
    await page.getByText('Administrators only').waitFor()
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
    reportid: 'r',
    description: '',
    headerFields: [],
    dataFields: fields,
    grouping: [{ header: {}, data }],
    truncated: true,
  }
}

/** The gateway's answer, with this much of everything in each part. */
function statistics(query: URLSearchParams, scale: number): StatisticsView {
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? '']
  const by = query.get('by') === 'hour' ? 'hour' : 'day'
  const width = by === 'hour' ? 3_600_000 : 86_400_000
  const none = { ready: 0, running: 0, incident: 0, denied: 0, expired: 0, cancelled: 0 }
  const requests = { ...none, waiting: scale, completed: scale, failed: scale }
  const calls = { answered: 5 * scale, refused: scale, failed: scale }
  const partAt = (i: number): StatisticsPartView => ({
    from: new Date(Date.parse(from) + i * width).toISOString(),
    requests,
    approvals: {
      opened: 2 * scale,
      escalated: scale,
      approved: scale,
      denied: scale,
      ...(scale === 0 ? {} : { decisionMillis: (i + 1) * 3_600_000 }),
    },
    tokens: { sts: { issued: i * 2 * scale, refused: scale }, issuers: { issued: scale, refused: scale } },
    scim: calls,
  })
  return {
    from,
    to,
    by,
    parts: Array.from({ length: Math.round((Date.parse(to) - Date.parse(from)) / width) }, (_, i) => partAt(i)),
    ...(scale === 0 ? {} : { decisionMillis: 2.5 * 3_600_000 }),
    workflows: scale === 0 ? [] : ['join', 'leave', 'vault-access'].map((name) => ({ name, requests })),
    scimClients: scale === 0 ? [] : ['okta', 'hr'].map((client) => ({ gateway: 'scim', client, calls })),
  }
}

const incidentRun: AdminRun = {
  id: '',
  name: 'join',
  definition: 'h',
  state: 'incident',
  attempt: 1,
  due: new Date().toISOString(),
  subject: '',
  requestor: 'ada',
  created: new Date().toISOString(),
  updated: new Date().toISOString(),
  incident: { task: 'join:0', code: 'TARGET_REFUSED', message: 'It failed.', maySkip: true },
  fence: 1,
  touched: false,
  involvesCaller: false,
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
  operations: [{ op: 'add' }],
})

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Page } from 'playwright-core'
import { describe, expect, test, vi } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { type BrowserSite, isFullScale, settled, useBrowser } from '#testing/browser/portal-browser.ts'
import { manyRows, type RowCounts, userOf, workflowOf } from '#testing/databases/many-rows.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { portalConfig } from '#testing/stories/portal-config.ts'

const few: RowCounts = { users: 200, groups: 200, runs: 200, audit: 200, journal: 0 }
const many: RowCounts = isFullScale
  ? { users: 1_000_000, groups: 20_000, runs: 100_000, audit: 1_000_000, journal: 0 }
  : { users: 200_000, groups: 20_000, runs: 50_000, audit: 200_000, journal: 0 }
/** The most elements of a page, however much it shows. */
const maxElements = 2_500
/** How much longer the first row may take with many rows than with few. */
const maxRatio = 5

const lists = [
  'people',
  'people?q=user00001',
  'groups',
  'runs',
  'runs?state=incident',
  `runs?name=${workflowOf(3)}`,
  `runs?subject=${userOf(7)}`,
  'approvals',
  'audit',
  `audit?subject=${userOf(7)}`,
  `audit?requestor=${userOf(7)}`,
  'audit?target=people',
] as const

// A slow machine takes more than a minute to write the rows.
vi.setConfig({ hookTimeout: 400_000, testTimeout: 240_000 })

/** Notes when the first row of a list is painted. */
const watchRows = `new MutationObserver((_, observer) => {
  if (document.querySelector('main tbody:not([aria-hidden]) td') === null) return
  observer.disconnect()
  requestAnimationFrame(() => { window.firstRow = performance.now() })
}).observe(document, { childList: true, subtree: true })`

/** The time from the call of the API to the first painted row, in milliseconds. */
async function firstRow(page: Page, list: string): Promise<number> {
  await page.goto(`/portal/console/${list}`)
  await expect.poll(() => page.evaluate<boolean>('window.firstRow !== undefined')).toBe(true)
  const [api = ''] = list.split('?')
  return await page.evaluate<number>(`window.firstRow - performance.getEntriesByType('resource')
    .find(({ name }) => new URL(name).pathname === '/portal/main/admin/${api}').startTime`)
}

/** A gateway whose database has these rows besides those of the example. */
function useRows(counts: RowCounts): BrowserSite {
  let removals: readonly (() => void)[] = []
  return useBrowser(
    async () => {
      const config = portalConfig({})
      const dataFolder = mkdtempSync(join(tmpdir(), 'gatehouse-console-'))
      removals = [config.remove, () => rmSync(dataFolder, { recursive: true, force: true })]
      const start = (): Promise<GatewayProcess> => startGatewayProcess({ config: config.folder, dataFolder })
      await (await start()).stop()
      const database = new DatabaseSync(join(dataFolder, 'gatehouse.db'))
      database.exec('pragma synchronous = off; pragma cache_size = -500000; pragma temp_store = memory')
      database.exec(`begin; ${manyRows('sqlite', counts).join(';')}; commit; pragma wal_checkpoint(truncate)`)
      database.close()
      return await start()
    },
    () => {
      for (const remove of removals) remove()
    },
  )
}

describe.skipIf(!hasChromium())('the console with very much data', () => {
  const { visit: visitFew } = useRows(few)
  const { visit } = useRows(many)

  test('lists show their first row about as soon as with few rows', async () => {
    const [small, large] = [(await visitFew('/portal', 'linus')).page, (await visit('/portal', 'linus')).page]
    for (const page of [small, large]) {
      await settled(page)
      await page.addInitScript(watchRows)
    }
    const [lines, slow] = [[] as string[], [] as string[]]
    for (const list of lists) {
      // In turns, so that both meet the same machine; one of a few counts.
      for (let turn = 1; turn <= 3; turn++) {
        const [before, time] = [await firstRow(small, list), await firstRow(large, list)]
        const line = `${list}: ${time.toFixed(0)} ms, ${before.toFixed(0)} ms with few rows`
        const isSlow = time > maxRatio * Math.max(before, 20)
        if (isSlow && turn < 3) continue
        lines.push(line)
        if (isSlow) slow.push(line)
        break
      }
    }
    console.info(lines.join('\n'))
    expect(slow).toEqual([])
  })

  test.each([
    ['people', 'Users'],
    ['runs', 'Runs'],
    ['audit', 'Audit'],
  ])('%s: further pages are fetched on demand, and the document stays small', async (list, name) => {
    const { page, complaints } = await visit(`/portal/console/${list}`, 'linus')
    const table = page.getByRole('table', { name })
    const elements = (): Promise<number> => page.evaluate<number>(`document.querySelectorAll('*').length`)
    const rowCount = (): Promise<string | null> => table.getAttribute('aria-rowcount')
    await expect.poll(rowCount).toBe('101')
    for (const rows of [201, 301]) {
      await page.evaluate(`document.querySelector('.table-scroll').scrollTo(0, 1_000_000)`)
      await expect.poll(rowCount).toBe(String(rows))
      expect(await elements()).toBeLessThan(maxElements)
    }
    expect(complaints).toEqual([])
  })

  test('one of very many users is found by login, name and mail address', async () => {
    const { page, complaints } = await visit('/portal/console/people', 'linus')
    const search = page.getByRole('searchbox', { name: 'Search users' })
    for (const [text, found] of [
      [userOf(many.users - 1), `Person 0${many.users - 1}`],
      ['person 0077', 'Person 0077000'],
      [`${userOf(many.users / 2)}@ex`, `Person 0${many.users / 2}`],
    ] as const) {
      await search.fill(text)
      await page.getByRole('link', { name: found }).waitFor()
    }
    await search.fill('nobody at all')
    await page.getByRole('table', { name: 'Users' }).waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
  })

  test('the audit is filtered by what few of its entries have', async () => {
    const { page, complaints } = await visit('/portal/console/audit', 'linus')
    await page.getByRole('textbox', { name: 'Target' }).fill('rare')
    await page.keyboard.press('Enter')
    const table = page.getByRole('table', { name: 'Audit' })
    await expect.poll(() => table.getByRole('cell', { name: 'rare', exact: true }).count()).toBeGreaterThan(5)
    expect(await table.getAttribute('aria-rowcount')).toBe(String(1 + many.audit / 10_000))
    expect(complaints).toEqual([])
  })

  test('an export begins before its last row is read', async () => {
    const { page } = await visit('/portal', 'linus')
    for (const list of ['people', 'runs', 'audit']) {
      const begun = await page.evaluate<readonly string[]>(`(async () => {
        const answer = await fetch('/portal/main/admin/${list}?format=csv', { headers: { 'x-requested-with': 'test' } })
        const reader = answer.body.getReader()
        const decoder = new TextDecoder()
        let text = ''
        while (text.split('\\n').length < 10) text += decoder.decode((await reader.read()).value, { stream: true })
        await reader.cancel()
        return text.split('\\n')
      })()`)
      expect({ list, lines: begun.slice(0, 10).filter((line) => line.includes(',')).length }).toEqual({
        list,
        lines: 10,
      })
      // The whole file has at least 50,000 lines.
      expect(begun.length).toBeLessThan(25_000)
    }
  })
})

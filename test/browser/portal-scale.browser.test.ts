import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasChromium, startChromium } from '#testing/chromium.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway-process.ts'
import { expectAccessible, picture, visit } from '#testing/portal-browser.ts'

const [badges, workflows, requests] = [5_000, 2_000, 10_000]
/** What a page may have, however much there is to show. */
const maxElements = 2_500

/** The example at another mount, with other colours, sessions that soon end, and very much in it. */
function largeConfiguration(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-scale-'))
  cpSync('examples/portal', folder, { recursive: true })
  const change = (file: string, edit: (text: string) => string): void =>
    writeFileSync(join(folder, file), edit(readFileSync(join(folder, file), 'utf8')))
  change('portal.yaml', (text) =>
    text
      .replaceAll('/portal', '/people/of/example')
      .replace('timeout: 900', 'timeout: 240')
      .replace('headerTitle: Example', 'headerTitle: Example\n            themePrimaryMain: "#ffee00"'),
  )
  const rule = 'azRules: [{ scope: dn, constraint: "ou=people,o=Tremolo" }]'
  const object = (kind: string, name: string, spec: string): string =>
    `apiVersion: openunison.tremolo.io/v1\nkind: ${kind}\nmetadata: { name: ${name} }\nspec:\n${spec}`
  const links = Array.from({ length: badges }, (_, i) =>
    object(
      'PortalUrl',
      `link-${i}`,
      `  { label: Link ${i}, url: "https://example.com/${i}", org: engineering, ${rule} }\n`,
    ),
  )
  const offers = Array.from({ length: workflows }, (_, i) =>
    object(
      'Workflow',
      `offer-${i}`,
      `  label: Offer ${i}\n  description: Number ${i}\n  inList: true\n  orgId: finance\n  tasks: |-\n    - { taskType: addAttribute, name: note, value: "${i}" }\n`,
    ),
  )
  writeFileSync(join(folder, 'many.yaml'), [...links, ...offers].join('---\n'))
  return folder
}

describe.skipIf(!hasChromium())('a portal with very much in it', () => {
  let folder: string
  let gateway: GatewayProcess
  let browser: Browser
  let portal: string

  beforeAll(async () => {
    folder = largeConfiguration()
    gateway = await startGatewayProcess({ config: folder })
    portal = `${gateway.url}/people/of/example`
    browser = await startChromium()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const elements = (page: Page): Promise<number> => page.evaluate<number>(`document.querySelectorAll('*').length`)
  const height = (page: Page): Promise<number> => page.evaluate<number>('document.body.scrollHeight')
  const toEnd = (page: Page): Promise<void> => page.evaluate('window.scrollTo(0, document.body.scrollHeight)')

  /** The warning of a session that ends in four minutes is in the way of everything else. */
  const stay = async (page: Page): Promise<void> => {
    await page.getByRole('dialog', { name: 'Are you still there?' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
  }

  test('people are warned before a session ends', async () => {
    const { page, complaints } = await visit(browser, portal, 'ada')
    await page.getByText(/Your session ends in \d minutes/).waitFor()
    await expectAccessible(page, 'the warning')
    await picture(page, 'session-ending')
    await page.getByRole('button', { name: 'Stay signed in' }).click()
    expect(complaints).toEqual([])
  })

  test.each(['light', 'dark'] as const)('5,000 badges, in a colour that nobody could read: %s', async (colorScheme) => {
    const { page, complaints } = await visit(browser, portal, 'ada', { colorScheme })
    await stay(page)
    await page.getByRole('link', { name: 'Wiki' }).waitFor()
    await expectAccessible(page, colorScheme)
    await picture(page, `many-badges-${colorScheme}`)
    expect(await elements(page)).toBeLessThan(maxElements)
    await toEnd(page)
    await page.getByRole('link', { name: 'Expenses' }).waitFor()
    await page.getByRole('searchbox').fill('link 4321')
    await page.getByRole('link', { name: 'Link 4321' }).waitFor()
    expect(complaints).toEqual([])
  })

  test('2,000 workflows', async () => {
    const { page, complaints } = await visit(browser, `${portal}/request?org=finance`, 'ada')
    await stay(page)
    await page.getByText('Offer 0', { exact: true }).waitFor()
    expect(await elements(page)).toBeLessThan(maxElements)
    await page.getByRole('searchbox').fill('offer 1999')
    await page.getByRole('button', { name: 'Add Offer 1999 to the cart' }).click()
    await page.getByText('1 in the cart').waitFor()
    expect(complaints).toEqual([])
  })

  test('10,000 requests', { timeout: 240_000 }, async () => {
    const { page, complaints } = await visit(browser, `${portal}/requests`, 'joan')
    await stay(page)
    for (let sent = 0; sent < requests; sent += 100) {
      const lines = Array.from({ length: 100 }, (_, i) => ({
        uuid: `request-${sent + i}`,
        name: `offer-${(sent + i) % workflows}`,
        reason: 'Many',
      }))
      const answer = await page.request.put(`${portal}/main/workflows`, {
        data: lines,
        headers: { origin: gateway.url, 'x-requested-with': 'portal' },
      })
      expect(answer.status()).toBe(200)
    }
    await page.reload()
    await stay(page)
    await page.getByText(`Offer ${workflows - 1}`, { exact: true }).waitFor()
    for (let pages = 0; pages < 5; pages += 1) {
      const before = await height(page)
      await toEnd(page)
      await until(async () => (await height(page)) > before, 15_000)
    }
    expect(await elements(page)).toBeLessThan(maxElements)
    expect(complaints).toEqual([])
  })
})

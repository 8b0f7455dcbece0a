import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import {
  askForMany,
  expectAccessible,
  expectLooks,
  isFullScale,
  picture,
  usePortal,
} from '#testing/browser/portal-browser.ts'

const [badges, workflows, requests] = [5_000, 2_000, isFullScale ? 10_000 : 1_000]
/** The most elements of a page, however much it shows. */
const maxElements = 2_500

const portal = '/people/of/example'
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

describe.skipIf(!hasChromium())('a portal with very much data', () => {
  // Another mount, other colors, and short sessions.
  const { visit } = usePortal({
    changes: {
      'portal.yaml': (text) =>
        text
          .replaceAll('/portal', portal)
          .replace('timeout: 900', 'timeout: 240')
          .replace('headerTitle: Example', 'headerTitle: Example\n            themePrimaryMain: "#ffee00"'),
    },
    more: { 'many.yaml': [...links, ...offers].join('---\n') },
  })

  const elements = (page: Page): Promise<number> => page.evaluate<number>(`document.querySelectorAll('*').length`)
  const height = (page: Page): Promise<number> => page.evaluate<number>('document.body.scrollHeight')
  const toEnd = (page: Page): Promise<void> => page.evaluate('window.scrollTo(0, document.body.scrollHeight)')

  test('users are warned before a session ends, and not as soon as a short one starts', async () => {
    const { page, complaints } = await visit(portal, 'ada')
    await page.clock.install()
    await page.reload()
    await page.getByRole('link', { name: 'Wiki' }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.route('**/sessioncheck', (route) => route.fulfill({ json: { minsLeft: 1 } }))
    await page.clock.runFor(60_000)
    await page.getByText('Your session ends in 1 minute.').waitFor()
    await expectAccessible(page, 'the warning')
    await picture(page, 'session-ending')
    await page.getByRole('button', { name: 'Stay signed in' }).click()
    expect(complaints).toEqual([])
  })

  test('5,000 badges, in an unreadable color', async () => {
    const { page, complaints } = await visit(portal, 'ada')
    await page.getByRole('link', { name: 'Wiki' }).waitFor()
    await expectLooks(page, 'many-badges')
    expect(await elements(page)).toBeLessThan(maxElements)
    // Rows have their height when they are drawn, so the end may move.
    const isAtEnd = async (): Promise<boolean> => {
      await toEnd(page)
      return await page.getByRole('link', { name: 'Expenses' }).isVisible()
    }
    await expect.poll(isAtEnd).toBe(true)
    await page.getByRole('searchbox').fill('link 4321')
    await page.getByRole('link', { name: 'Link 4321' }).waitFor()
    expect(complaints).toEqual([])
  })

  test('2,000 workflows', async () => {
    const { page, complaints } = await visit(`${portal}/request?org=finance`, 'ada')
    await page.getByText('Offer 0', { exact: true }).waitFor()
    expect(await elements(page)).toBeLessThan(maxElements)
    await page.getByRole('searchbox').fill('offer 1999')
    await page.getByRole('heading', { name: 'Offer 1999' }).waitFor()
    await page.getByRole('button', { name: 'Add Offer 1999 to the cart' }).click()
    await page.getByText('1 in the cart').waitFor()
    expect(complaints).toEqual([])
  })

  test('very many requests', { timeout: 240_000 }, async () => {
    const { page, complaints } = await visit(`${portal}/requests`, 'joan')
    const lines = Array.from({ length: requests }, (_, i) => ({
      uuid: `request-${i}`,
      name: `offer-${i % workflows}`,
      reason: 'Many',
    }))
    await askForMany(page, `${portal}/main`, lines)
    await page.reload()
    await page.getByText(`Offer ${(requests - 1) % workflows}`, { exact: true }).waitFor()
    for (let pages = 0; pages < 3; pages += 1) {
      const before = await height(page)
      await toEnd(page)
      await expect.poll(() => height(page)).toBeGreaterThan(before)
    }
    expect(await elements(page)).toBeLessThan(maxElements)
    expect(complaints).toEqual([])
  })
})

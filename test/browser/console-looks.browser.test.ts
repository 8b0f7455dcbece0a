import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import {
  askForMany,
  expectAccessible,
  isTooWide,
  settled,
  useColors,
  usePortal,
} from '#testing/browser/portal-browser.ts'
import { until } from '#testing/gateway/gateway-process.ts'

const screens = [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
  { width: 390, height: 844 },
] as const

describe.skipIf(!hasChromium())('all pages of the console', () => {
  const { visit } = usePortal()
  let pages: readonly string[] = []

  /** A run of ada that waits for an approval. */
  beforeAll(async () => {
    const ada = await visit('/portal', 'ada')
    await askForMany(ada.page, '/portal/main', [{ uuid: 'one', name: 'vault-access', reason: 'On call' }])
    await ada.page.context().close()
    const { page } = await visit('/portal', 'linus')
    let run = ''
    await until(async () => {
      const { runs } = await (await page.request.get('/portal/main/admin/runs?state=waiting')).json()
      run = runs[0]?.id ?? ''
      return run !== ''
    }, 60_000)
    await page.context().close()
    const tabs = ['groups', 'systems', 'sessions', 'factors', 'runs', 'audit']
    pages = [
      'people',
      'people/ada',
      ...tabs.map((tab) => `people/ada?tab=${tab}`),
      'groups',
      'groups/owners',
      'targets',
      'reconciliations',
      'workflows',
      'workflows/vault-access',
      'runs',
      `runs/${run}`,
      'approvals',
      'scim',
      'tokens',
      'audit',
      'configuration',
      'system',
    ]
  }, 240_000)

  test('fit each screen, are accessible, and mark every control that the Tab key reaches', {
    timeout: 240_000,
  }, async () => {
    const { page, complaints } = await visit('/portal', 'linus')
    for (const path of pages) {
      await page.setViewportSize(screens[0])
      await show(page, path, 'en')
      await expectAccessible(page, `${path}, light`)
      expect({ path, ...(await tabThrough(page)) }).toEqual({ path, unreached: [], unmarked: [] })
      await expectFits(page, path)
      // Now on a phone.
      await expectAccessible(page, `${path}, on a phone`, { rules: 'layout' })
      await useColors(page, 'dark')
      await expectAccessible(page, `${path}, dark`, { rules: 'colors' })
      await useColors(page, 'light')
    }
    expect(complaints).toEqual([])
  })

  test('fit each screen in German too', { timeout: 240_000 }, async () => {
    const { page, complaints } = await visit('/portal', 'linus', { locale: 'de-DE', colorScheme: 'dark' })
    for (const path of pages) {
      await show(page, path, 'de')
      await expectFits(page, path)
    }
    expect(complaints).toEqual([])
  })
})

async function expectFits(page: Page, path: string): Promise<void> {
  for (const screen of screens) {
    await page.setViewportSize(screen)
    await expect.poll(() => isTooWide(page), { message: `${path}, ${screen.width}` }).toBe(false)
  }
}

/** A page of the console with its data. */
async function show(page: Page, path: string, language: string): Promise<void> {
  await page.goto(`/portal/console/${path}`)
  await settled(page)
  expect(await page.locator('html').getAttribute('lang')).toBe(language)
}

interface Walk {
  /** Controls that the Tab key does not reach. */
  readonly unreached: readonly string[]
  /** Controls that do not show that they have the focus. */
  readonly unmarked: readonly string[]
}

/** Presses Tab from the title of the page to the end of its content. */
async function tabThrough(page: Page): Promise<Walk> {
  const controls = await page.evaluate<readonly string[]>(`(() => {
    const wanted = 'a[href], button:not(:disabled), input, select, textarea, [tabindex="0"]'
    window.walk = { reached: [], unmarked: [], hasLeft: false }
    document.querySelector('main h1').focus()
    document.addEventListener('focusin', ({ target: one }) => {
      const { control, border } = one.dataset
      if (control === undefined) return walk.hasLeft = true
      walk.reached.push(control)
      const isMarked = [one, one.parentElement].map((each) => getComputedStyle(each)).some(
        ({ outlineStyle, boxShadow }) => outlineStyle !== 'none' || boxShadow !== 'none',
      ) || getComputedStyle(one).borderColor !== border
      if (!isMarked) walk.unmarked.push(control)
    })
    return [...document.querySelectorAll('main :is(' + wanted + ')')]
      .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.tabIndex >= 0)
      .map((one, i) => {
        one.dataset.border = getComputedStyle(one).borderColor
        return one.dataset.control = i + ' ' + one.outerHTML.slice(0, 120)
      })
  })()`)
  interface Walked {
    readonly reached: readonly string[]
    readonly unmarked: readonly string[]
    readonly hasLeft: boolean
  }
  let walked: Walked
  let presses = 0
  do {
    for (let next = 0; next < 10; next++) await page.keyboard.press('Tab')
    presses += 10
    walked = await page.evaluate<Walked>('window.walk')
    // A field for a time has a stop for each of its parts.
  } while (!walked.hasLeft && presses <= 8 * controls.length)
  return { unreached: controls.filter((control) => !walked.reached.includes(control)), unmarked: walked.unmarked }
}

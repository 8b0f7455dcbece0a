import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { askForMany, expectAccessible, isTooWide, settled, usePortal } from '#testing/browser/portal-browser.ts'
import { until } from '#testing/gateway/gateway-process.ts'

const heights = { 1440: 900, 1024: 768, 390: 844 } as const
const widths = [1440, 1024, 390] as const
const schemes = ['light', 'dark'] as const

/** Every page is measured in all of them, and checked by axe in two that differ in everything. */
const languages = [
  { language: 'en', locale: 'en-GB', checked: ['1440 light', '390 dark'] },
  { language: 'de', locale: 'de-DE', checked: ['1024 dark', '390 light'] },
] as const

describe.skipIf(!hasChromium())('all pages of the console', () => {
  const { visit, open } = usePortal()
  let pages: readonly string[] = []
  let storageState: Awaited<ReturnType<ReturnType<Page['context']>['storageState']>>

  /** A run of ada that waits for an approval, and the session of an administrator. */
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
    storageState = await page.context().storageState()
    await page.context().close()
    const tabs = ['groups', 'sessions', 'factors', 'runs', 'audit']
    pages = [
      'people',
      'people/ada',
      ...tabs.map((tab) => `people/ada?tab=${tab}`),
      'groups',
      'groups/owners',
      'targets',
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

  test.each(languages)('fit each screen and are accessible: $language', { timeout: 240_000 }, async (one) => {
    const { language, locale, checked } = one
    const { page, complaints } = await open('/portal', { locale, storageState })
    await settled(page)
    for (const path of pages) {
      await show(page, path)
      expect(await page.locator('html').getAttribute('lang')).toBe(language)
      for (const width of widths) {
        await page.setViewportSize({ width, height: heights[width] })
        for (const colorScheme of schemes) {
          const look = `${width} ${colorScheme}`
          await page.emulateMedia({ colorScheme })
          await expect.poll(() => isTooWide(page), { message: `${path}, ${look}` }).toBe(false)
          if (!checked.some((known) => known === look)) continue
          await expectAccessible(page, `${path}, ${language}, ${look}`)
        }
      }
    }
    expect(complaints).toEqual([])
  })

  test('every control is reached by the Tab key, and shows that it has the focus', { timeout: 240_000 }, async () => {
    const { page } = await open('/portal', { storageState })
    await settled(page)
    for (const path of pages) {
      await show(page, path)
      expect({ path, ...(await tabThrough(page)) }).toEqual({ path, unreached: [], unmarked: [] })
    }
  })
})

/** A page of the console with its data. */
async function show(page: Page, path: string): Promise<void> {
  await page.goto(`/portal/console/${path}`)
  // Some parts are requested when others have been shown.
  await settled(page)
  await expect.poll(() => page.locator('.mantine-Skeleton-root').count()).toBe(0)
}

interface Walk {
  /** Controls that the Tab key does not reach. */
  readonly unreached: readonly string[]
  /** Controls that do not show that they have the focus. */
  readonly unmarked: readonly string[]
}

/** Presses Tab from the title of the page to the end of its content. */
async function tabThrough(page: Page): Promise<Walk> {
  const [reached, unmarked] = [new Set<string>(), [] as string[]]
  const controls = await page.evaluate<readonly string[]>(`(() => {
    document.querySelector('main h1').focus()
    const wanted = 'a[href], button:not(:disabled), input, select, textarea, [tabindex="0"]'
    return [...document.querySelectorAll('main :is(' + wanted + ')')]
      .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.tabIndex >= 0)
      .map((one, i) => {
        one.dataset.border = getComputedStyle(one).borderColor
        return one.dataset.control = i + ' ' + one.outerHTML.slice(0, 120)
      })
  })()`)
  // A field for a time has a stop for each of its parts.
  for (let presses = 0; presses <= 8 * controls.length; presses++) {
    await page.keyboard.press('Tab')
    const { control, isMarked } = await page.evaluate<{ control: string | undefined; isMarked: boolean }>(`(() => {
      const one = document.activeElement
      const styles = [one, one.parentElement].map((each) => getComputedStyle(each))
      const isMarked = styles.some(({ outlineStyle, boxShadow }) => outlineStyle !== 'none' || boxShadow !== 'none')
        || getComputedStyle(one).borderColor !== one.dataset.border
      return { control: one.dataset.control, isMarked }
    })()`)
    if (control === undefined) break
    reached.add(control)
    if (!isMarked) unmarked.push(control)
  }
  return { unreached: controls.filter((control) => !reached.has(control)), unmarked }
}

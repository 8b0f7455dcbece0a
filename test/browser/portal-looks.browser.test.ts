import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasChromium, startChromium } from '#testing/chromium.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway-process.ts'
import { expectAccessible, open, picture, visit } from '#testing/portal-browser.ts'

/** Pages that not everybody has, as an administrator sees them; portal-pages has the others. */
const pages = [
  'token',
  'register',
  'reports',
  'reports/Open%20Approvals',
  'dashboard',
  'security',
  'signed-in',
  'nowhere',
]
const looks = [
  { name: 'light', options: { colorScheme: 'light' } },
  { name: 'dark', options: { colorScheme: 'dark' } },
  { name: 'phone', options: { colorScheme: 'light', viewport: { width: 390, height: 844 }, hasTouch: true } },
] as const

describe.skipIf(!hasChromium())('the looks of the portal', () => {
  let gateway: GatewayProcess
  let browser: Browser

  beforeAll(async () => {
    gateway = await startGatewayProcess({ config: 'examples/portal' })
    browser = await startChromium()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
  })

  test.each(looks)('pages of an administrator are accessible and fit the window: $name', async ({ name, options }) => {
    const portal = `${gateway.url}/portal`
    const { page, complaints } = await visit(browser, portal, 'linus', options)
    await page.getByRole('heading', { level: 1 }).waitFor()
    for (const path of pages) {
      await page.goto(`${portal}/${path}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.waitForLoadState('networkidle')
      await expectAccessible(page, `${name} ${path}`)
      await picture(page, `${path.replaceAll(/\W+/g, '-')}-${name}`)
      const wide = await page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth')
      expect({ path, wide }).toEqual({ path, wide: false })
    }
    expect(complaints).toEqual([])
  })

  test.each(looks)('so are those for people who are not known: $name', async ({ name, options }) => {
    const { page, complaints } = await open(browser, `${gateway.url}/join`, options)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    await expectAccessible(page, `${name} registration`)
    await picture(page, `join-${name}`)
    await page.goto(`${gateway.url}/portal`)
    await page.getByLabel('User name').waitFor()
    await expectAccessible(page, `${name} login`)
    await picture(page, `login-${name}`)
    expect(complaints.filter((text) => !text.includes('401'))).toEqual([])
  })
})

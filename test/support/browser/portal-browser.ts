import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { startChromium } from '#testing/browser/chromium.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { type PortalChanges, type PortalConfig, portalConfig } from '#testing/stories/portal-config.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const pictures = '.cache/screenshots'

/** The password of every user in examples/portal. */
export const password = 'correct horse battery'

export const looks = [
  { name: 'light', options: { colorScheme: 'light' } },
  { name: 'dark', options: { colorScheme: 'dark' } },
  { name: 'phone', options: { colorScheme: 'light', viewport: { width: 390, height: 844 }, hasTouch: true } },
] as const

export interface Visit {
  readonly page: Page
  /** Errors of the console, and violations of the page's policy. */
  readonly complaints: string[]
}

/** Addresses are paths of the gateway, or full URLs. */
export interface BrowserSite {
  /** The full URL of a path, once the gateway runs. */
  url(path?: string): string
  /** A new browser, signed in at a page of the portal. */
  visit(address: string, login: string, options?: BrowserContextOptions): Promise<Visit>
  /** The same for an anonymous user. */
  open(address?: string, options?: BrowserContextOptions): Promise<Visit>
}

/** A gateway and a browser for the tests of the current suite; `end` runs after both have ended. */
export function useBrowser(start: () => Promise<GatewayProcess>, end: () => void = () => {}): BrowserSite {
  let gateway: GatewayProcess
  let browser: Browser
  beforeAll(async () => {
    gateway = await start()
    browser = await startChromium()
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
    end()
  })
  const open: BrowserSite['open'] = (address = 'about:blank', options = {}) =>
    openPage(browser, address, { baseURL: gateway.url, ...options })
  return {
    url: (path = '') => gateway.url + path,
    open,
    visit: async (address, login, options) => {
      const opened = await open(address, options)
      await signIn(opened.page, login)
      return opened
    },
  }
}

export interface PortalOptions extends PortalChanges {
  /** Read when the gateway starts. */
  readonly environment?: () => Readonly<Record<string, string>>
}

/** The same with examples/portal, changed for a suite. */
export function usePortal({ environment = () => ({}), ...changes }: PortalOptions = {}): BrowserSite {
  let config: PortalConfig | undefined
  return useBrowser(
    () => {
      config = portalConfig(changes)
      return startGatewayProcess({ config: config.folder, environment: environment() })
    },
    () => config?.remove(),
  )
}

/** A new browser window, with its errors. */
export async function openPage(browser: Browser, address: string, options: BrowserContextOptions): Promise<Visit> {
  const context = await browser.newContext({
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    viewport: { width: 1280, height: 860 },
    ...options,
  })
  context.setDefaultTimeout(20_000)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.goto(address)
  return { page, complaints }
}

/** Waits for the next page: a page that is still loading would miss later interceptions. */
export async function signIn(page: Page, login: string): Promise<void> {
  await page.getByLabel('User name').fill(login)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByLabel('User name').waitFor({ state: 'detached' })
}

/** The heading of a page, which appears before its data. */
export const heading = (page: Page, name: string): Promise<void> =>
  page.getByRole('heading', { level: 1, name }).waitFor()

export const follow = (page: Page, name: string): Promise<void> =>
  page.getByRole('navigation').getByRole('link', { name }).click()

/** Any page, with everything that it loads. */
export async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForLoadState('networkidle')
}

/** From the page with the offers: puts this one in the cart, with a reason, and sends nothing. */
export async function fillCart(page: Page, label: string, reason: string): Promise<void> {
  await page.getByRole('button', { name: `Add ${label} to the cart` }).click()
  await page.getByRole('link', { name: 'Check out' }).click()
  await page.getByRole('textbox', { name: 'Reason' }).fill(reason)
}

/** The same, and sent. */
export async function ask(page: Page, label: string, reason: string): Promise<void> {
  await fillCart(page, label, reason)
  await page.getByRole('button', { name: 'Submit request' }).click()
  await page.getByText('1 request submitted').waitFor()
}

/** Many requests, with the calls of the portal. */
export async function askForMany(page: Page, api: string, lines: readonly object[]): Promise<void> {
  const headers = { origin: new URL(page.url()).origin, 'x-requested-with': 'portal' }
  for (let sent = 0; sent < lines.length; sent += 100) {
    const answer = await page.request.put(`${api}/workflows`, { data: lines.slice(sent, sent + 100), headers })
    const outcomes = Object.values(await answer.json())
    expect([answer.status(), outcomes.filter((one) => one !== 'success')]).toEqual([200, []])
  }
}

/** Whether the page is wider than its window. */
export const isTooWide = (page: Page): Promise<boolean> =>
  page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth')

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly string[]
}

/** Waits for animations that end; endless ones are ignored. */
async function still(page: Page): Promise<void> {
  await page.waitForTimeout(350)
  await page.evaluate(`Promise.allSettled(document.getAnimations()
    .filter(({ effect, playState }) => playState === 'running' && effect?.getComputedTiming().endTime !== Infinity)
    .map(({ finished }) => finished)).then(() => {})`)
}

/** No serious or critical finding of axe, by the rules of WCAG 2.2 AA, and landmarks that differ in kind or name. */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  await still(page)
  const found = await page.evaluate<readonly Finding[]>(`${axe};axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    resultTypes: ['violations'],
  }).then(({ violations }) => violations.map(({ id, impact, nodes }) => ({
    id, impact, nodes: nodes.map(({ html, failureSummary }) => html.slice(0, 200) + ' ' + failureSummary),
  })))`)
  const grave = found.filter(
    ({ id, impact }) => impact === 'serious' || impact === 'critical' || id.startsWith('landmark-'),
  )
  expect({ what, grave }).toEqual({ what, grave: [] })
}

/** For developers to look at, outside version control. CI takes none. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env['CI'] === 'true') return
  mkdirSync(pictures, { recursive: true })
  await still(page)
  await page.screenshot({ path: `${pictures}/${name}.png` })
}

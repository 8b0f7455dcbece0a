import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { BrowserContext, BrowserContextOptions, Cookie, Page, Request } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { sharedChromium } from '#testing/browser/chromium.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { type PortalChanges, type PortalConfig, portalConfig } from '#testing/stories/portal-config.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const pictures = '.cache/screenshots'

/** Whether tests use as much data as the portal promises to bear, as `npm run siege` does; otherwise, enough to notice if it does not. */
export const isFullScale = process.env['SIEGE_LISTS'] === 'true'

/** The password of every user in examples/portal. */
export const password = 'correct horse battery'

const desktop = { width: 1280, height: 860 }
const phone = { width: 390, height: 844 }

export interface Visit {
  readonly page: Page
  /** Errors of the console, and violations of the page's policy. */
  readonly complaints: string[]
}

/** Addresses are paths of the gateway, or full URLs. */
export interface BrowserSite {
  /** The data folder of the gateway. */
  data(): string
  /** The full URL of a path, once the gateway runs. */
  url(path?: string): string
  /** A new browser at a page of the portal, with the only session of this user. */
  visit(address: string, login: string, options?: BrowserContextOptions): Promise<Visit>
  /** The same with a session of its own: the user signs in there. */
  visitAnew(address: string, login: string, options?: BrowserContextOptions): Promise<Visit>
  /** The same for an anonymous user. */
  open(address?: string, options?: BrowserContextOptions): Promise<Visit>
}

/** A gateway for the tests of the current suite, and a browser for each; `end` runs after the gateway has ended. */
export function useBrowser(start: () => Promise<GatewayProcess>, end: () => void = () => {}): BrowserSite {
  let gateway: GatewayProcess
  const openPage = usePages()
  const sessions = new Map<string, Cookie[]>()
  beforeAll(async () => {
    gateway = await start()
  })
  afterAll(async () => {
    await gateway?.stop()
    end()
  })
  const open: BrowserSite['open'] = (address = 'about:blank', options = {}) =>
    openPage(address, { baseURL: gateway.url, ...options })
  const visitAnew: BrowserSite['visitAnew'] = async (address, login, options) => {
    const opened = await open(address, options)
    await signIn(opened.page, login)
    return opened
  }
  return {
    data: () => gateway.dataFolder,
    url: (path = '') => gateway.url + path,
    open,
    visitAnew,
    visit: async (address, login, options) => {
      const { origin, hostname, href } = new URL(address, gateway.url)
      // A cookie is for one host.
      const key = `${login} ${hostname}`
      const cookies = sessions.get(key) ?? (await sessionOf(origin, href, login))
      sessions.set(key, cookies)
      const opened = await open(address, { storageState: { cookies, origins: [] }, ...options })
      // A test may have ended the session.
      if (!new URL(opened.page.url()).pathname.startsWith('/auth/')) return opened
      await signIn(opened.page, login)
      sessions.set(key, await opened.page.context().cookies())
      return opened
    },
  }
}

/** The cookies of a user who signs in without a browser, which would take a second. */
async function sessionOf(origin: string, address: string, login: string): Promise<Cookie[]> {
  const browser = new PlainBrowser(origin)
  const { status } = await browser.logIn(address, login, password)
  if (status !== 303) throw new Error(`${login} did not get in: ${status}`)
  const place = { domain: new URL(origin).hostname, path: '/', expires: -1 }
  return [...browser.jar].map(([name, value]) => {
    return { name, value, ...place, httpOnly: true, secure: false, sameSite: 'Lax' }
  })
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

/** What the pages of a window have requested. */
interface Calls {
  /** How many requests have begun. */
  count: number
  readonly open: Set<Request>
}

const callsOf = new WeakMap<BrowserContext, Calls>()

/**
 * Opens a new browser window, with its errors. All are closed after each test, since an open page goes on working.
 * Without motion: only few tests are about it.
 */
export function usePages(): (address: string, options: BrowserContextOptions) => Promise<Visit> {
  const contexts: BrowserContext[] = []
  afterEach(async () => {
    for (const context of contexts.splice(0)) {
      for (const page of context.pages()) await page.unrouteAll({ behavior: 'ignoreErrors' })
      await context.close()
    }
  })
  return async (address, options) => {
    const context = await (await sharedChromium()).newContext({
      locale: 'en-GB',
      timezoneId: 'Europe/Berlin',
      viewport: desktop,
      reducedMotion: 'reduce',
      ...options,
    })
    contexts.push(context)
    context.setDefaultTimeout(60_000)
    context.setDefaultNavigationTimeout(60_000)
    const calls: Calls = { count: 0, open: new Set() }
    callsOf.set(context, calls)
    context.on('request', (request) => {
      // The stream of changes stays open.
      if (request.resourceType() === 'eventsource') return
      calls.count += 1
      calls.open.add(request)
    })
    context.on('requestfinished', (request) => calls.open.delete(request))
    context.on('requestfailed', (request) => calls.open.delete(request))
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(address)
    return { page, complaints }
  }
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
  const race = { isOver: false }
  // Requests of a page that was left may end unnoticed; the browser knows.
  await Promise.race([answered(page, race), page.waitForLoadState('networkidle')])
  race.isOver = true
  await expect.poll(() => page.locator('.mantine-Skeleton-root').count()).toBe(0)
}

/** Every request has its answer, and what the page made of it led to no further one. */
async function answered(page: Page, race: { readonly isOver: boolean }): Promise<void> {
  const calls = callsOf.get(page.context())
  while (calls !== undefined && !race.isOver) {
    const { count } = calls
    if (calls.open.size === 0) {
      await page.evaluate(drawn)
      if (calls.open.size === 0 && calls.count === count) return
    } else await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Runs in the page: what it has received by now is drawn. */
const drawn = 'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve())))'

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
  await page.evaluate(`(async () => {
    for (;;) {
      await ${drawn}
      const running = document.getAnimations().filter(({ effect, playState }) =>
        playState === 'running' && effect?.getComputedTiming().endTime !== Infinity)
      if (running.length === 0) return
      await Promise.allSettled(running.map(({ finished }) => finished))
    }
  })()`)
}

/** What axe checks. */
const rules = {
  /** Those that are turned off take long, and what they find is never serious. */
  all: `{ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    rules: { region: { enabled: false }, 'heading-order': { enabled: false } } }`,
  colors: "{ runOnly: ['color-contrast'] }",
  /** What another layout of the same document can break: sizes, parts that scroll, and what only this layout shows. */
  layout: `{ runOnly: ['target-size', 'scrollable-region-focusable', 'aria-hidden-focus', 'nested-interactive',
    'button-name', 'link-name', 'label', 'landmark-unique', 'landmark-one-main'] }`,
} as const

interface Extent {
  readonly rules?: keyof typeof rules
  /** The selector of what is checked. Unless given, the page; only its dialog where one is open. */
  readonly part?: string | undefined
}

/** No serious or critical finding of axe, by the rules of WCAG 2.2 AA, and landmarks that differ in kind or name. */
export async function expectAccessible(page: Page, what: string, extent: Extent = {}): Promise<void> {
  await still(page)
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(`${axe};undefined`)
  const part = JSON.stringify(extent.part ?? '[role=dialog][aria-modal=true]')
  const found = await page.evaluate<readonly Finding[]>(`axe.run(document.querySelector(${part}) ?? document, {
    ...${rules[extent.rules ?? 'all']},
    resultTypes: ['violations'],
    preload: false,
  }).then(({ violations }) => violations.map(({ id, impact, nodes }) => ({
    id, impact, nodes: nodes.map(({ html, failureSummary }) => html.slice(0, 200) + ' ' + failureSummary),
  })))`)
  const grave = found.filter(
    ({ id, impact }) => impact === 'serious' || impact === 'critical' || id.startsWith('landmark-'),
  )
  expect({ what, grave }).toEqual({ what, grave: [] })
}

/**
 * Accessible, and not wider than its window: light; dark, which only differs in its colors; and on a phone, which only
 * differs in its layout. The page is light and wide before and after. With a part, only that is checked for accessibility.
 */
export async function expectLooks(page: Page, name: string, part?: string): Promise<void> {
  const size = page.viewportSize() ?? desktop
  await expectLook(page, `${name}-light`, { part })
  await useColors(page, 'dark')
  await expectLook(page, `${name}-dark`, { part, rules: 'colors' })
  await page.setViewportSize(phone)
  await expectLook(page, `${name}-phone`, { part, rules: 'layout' })
  await page.setViewportSize(size)
  await useColors(page, 'light')
}

async function expectLook(page: Page, name: string, extent: Extent): Promise<void> {
  await expectAccessible(page, name, extent)
  await expect.poll(() => isTooWide(page), { message: `${name} is too wide` }).toBe(false)
  await picture(page, name)
}

/** The portal notices the browser's choice itself; other pages have it by their styles. */
export async function useColors(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme })
  const used = `document.documentElement.dataset.mantineColorScheme ?? '${colorScheme}'`
  await expect.poll(() => page.evaluate<string>(used)).toBe(colorScheme)
}

/** For developers to look at, outside version control. CI takes none. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env['CI'] === 'true') return
  mkdirSync(pictures, { recursive: true })
  await still(page)
  await page.screenshot({ path: `${pictures}/${name}.png` })
}

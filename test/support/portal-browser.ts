import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const pictures = '.cache/screenshots'

/** Of everybody in examples/portal. */
export const password = 'correct horse battery'

export interface Visit {
  readonly page: Page
  /** What the console complained about, and what was refused by the policy of the page. */
  readonly complaints: string[]
}

/** A browser of somebody's own, signed in at a page of the portal. */
export async function visit(
  browser: Browser,
  address: string,
  login: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const opened = await open(browser, address, options)
  await signIn(opened.page, login)
  return opened
}

/** The same for somebody who is not known. */
export async function open(browser: Browser, address: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext({
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    viewport: { width: 1280, height: 860 },
    ...options,
  })
  const page = await context.newPage()
  page.setDefaultTimeout(15_000)
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.goto(address)
  return { page, complaints }
}

/** Over when the next page is there: in one that is on its way nothing is intercepted that is to be from now on. */
export async function signIn(page: Page, login: string): Promise<void> {
  await page.getByLabel('User name').fill(login)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByLabel('User name').waitFor({ state: 'detached' })
}

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly string[]
}

/** No serious or critical finding of axe, by the rules of WCAG 2.2 AA. */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  // Things that fade in are not yet as they will be.
  await page.waitForTimeout(350)
  const found = await page.evaluate<readonly Finding[]>(`${axe};axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  }).then(({ violations }) => violations.map(({ id, impact, nodes }) => ({
    id, impact, nodes: nodes.map(({ html, failureSummary }) => html.slice(0, 200) + ' ' + failureSummary),
  })))`)
  const grave = found.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  expect({ what, grave }).toEqual({ what, grave: [] })
}

/** For people to look at, outside version control. */
export async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(pictures, { recursive: true })
  await page.waitForTimeout(350)
  await page.screenshot({ path: `${pictures}/${name}.png` })
}

import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { findChromium, launchChromium } from '#testing/browser/chromium-program.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'
import { startMeasured } from './gateway.ts'

export interface PortalFigures {
  /** Milliseconds of each load until the links are visible and the page is idle, the shortest first. */
  readonly interactive: readonly number[]
  /** As sent over the wire, without headers. */
  readonly scriptBytes: number
  readonly allBytes: number
  readonly files: number
}

interface Load {
  readonly interactive: number
  readonly scripts: readonly number[]
  readonly others: readonly number[]
}

const loads = 5

/** In the page, from its start: when the links are visible, and when the last long task ended. */
const watch = `(() => {
  const seen = { shown: 0, busyUntil: 0 }
  window.seen = seen
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) seen.busyUntil = startTime + duration
  }).observe({ type: 'longtask', buffered: true })
  new MutationObserver((_, observer) => {
    if (document.querySelector('main h1') === null || document.querySelector('main [role=listitem] a[href]') === null) return
    seen.shown = performance.now()
    observer.disconnect()
  }).observe(document, { childList: true, subtree: true })
})()`

const read = `(() => {
  const sizes = (entries) => entries.map(({ encodedBodySize }) => encodedBodySize)
  const resources = performance.getEntriesByType('resource')
  const isScript = ({ name }) => new URL(name).pathname.endsWith('.js')
  return {
    interactive: Math.max(window.seen.shown, window.seen.busyUntil),
    scripts: sizes(resources.filter(isScript)),
    others: sizes([...performance.getEntriesByType('navigation'), ...resources.filter((one) => !isScript(one))]),
  }
})()`

/** The front page of the quickstart, for a logged-in user with an empty browser cache. */
export async function measurePortalPage(folder: string): Promise<PortalFigures | undefined> {
  const program = findChromium()
  if (program === undefined) return undefined
  const gateway = await startMeasured('examples/quickstart', join(folder, 'portal-page'))
  const browser = await launchChromium(program)
  try {
    const url = `http://127.0.0.1:${gateway.port}`
    const { browser: person } = await PortalPerson.logIn({ url }, 'ada')
    const cookies = [...person.jar].map(([name, value]) => ({ name, value, url }))
    // The first load is also the gateway's first.
    await load(browser, url, cookies)
    const seen: Load[] = []
    for (let turn = 0; turn < loads; turn++) seen.push(await load(browser, url, cookies))
    const sum = (sizes: readonly number[] = []): number => sizes.reduce((all, one) => all + one, 0)
    const [{ scripts = [], others = [] } = {}] = seen
    return {
      interactive: seen.map(({ interactive }) => interactive).toSorted((a, b) => a - b),
      scriptBytes: sum(scripts),
      allBytes: sum(scripts) + sum(others),
      files: scripts.length + others.length,
    }
  } finally {
    await browser.close()
    await gateway.stop()
  }
}

type Cookies = readonly { readonly name: string; readonly value: string; readonly url: string }[]

async function load(browser: Browser, url: string, cookies: Cookies): Promise<Load> {
  const context = await browser.newContext({ locale: 'en-GB' })
  try {
    await context.addCookies([...cookies])
    await context.addInitScript(watch)
    const page = await context.newPage()
    await page.goto(`${url}/portal`)
    await page.locator('main [role=listitem] a[href]').first().waitFor({ timeout: 30_000 })
    await page.waitForLoadState('networkidle')
    return await page.evaluate<Load>(read)
  } finally {
    await context.close()
  }
}

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32, deflateSync, inflateSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { findChromium, launchChromium } from '#testing/browser/chromium-program.ts'
import { startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { portalConfig } from '#testing/stories/portal-config.ts'

/** Writes the pictures of README and guides: pages of examples/portal in both schemes. Run by `npm run screenshots`. */

const folder = join(import.meta.dirname, 'images')
const maxBytes = 150_000
const password = 'correct horse battery'

interface Scene {
  readonly name: string
  readonly login: string
  readonly path: string
  /** What is visible when the page is complete. */
  readonly ready: (page: Page) => Promise<unknown>
}

const scenes: readonly Scene[] = [
  {
    name: 'home',
    login: 'grace',
    path: '/portal',
    ready: (page) => page.getByRole('link', { name: 'Wiki' }).first().waitFor(),
  },
  {
    name: 'approval',
    login: 'grace',
    path: '/portal/approvals',
    ready: async (page) => {
      await page.getByRole('link', { name: 'Access to the vault for ada' }).first().click()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
    },
  },
  {
    name: 'dashboard',
    login: 'linus',
    path: '/portal/dashboard',
    ready: (page) => page.locator('.recharts-bar-rectangle').first().waitFor(),
  },
]

async function signedIn(browser: Browser, url: string, login: string, colorScheme: 'light' | 'dark'): Promise<Page> {
  const context = await browser.newContext({
    baseURL: url,
    locale: 'en-GB',
    colorScheme,
    reducedMotion: 'reduce',
    viewport: { width: 1280, height: 800 },
  })
  const page = await context.newPage()
  await page.goto('/portal')
  await page.getByLabel('User name').fill(login)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForLoadState('networkidle')
  return page
}

/** A call of the portal's own API, as its pages send it. */
async function send(page: Page, method: 'put' | 'post', path: string, data?: unknown): Promise<void> {
  const headers = { origin: new URL(page.url()).origin, 'x-requested-with': 'portal' }
  const answer = await page.request[method](`/portal/main/${path}`, { data, headers })
  if (!answer.ok()) throw new Error(`${method} ${path}: ${answer.status()} ${await answer.text()}`)
}

/** Requests, decisions and favorites, so that the pages have something to show. */
async function fill(browser: Browser, url: string): Promise<void> {
  for (const login of ['joan', 'mary', 'ada']) {
    const page = await signedIn(browser, url, login, 'light')
    await send(page, 'put', 'workflows', [{ uuid: login, name: 'vault-access', reason: 'On call this week' }])
    await page.context().close()
  }
  const page = await signedIn(browser, url, 'grace', 'light')
  for (const name of ['calendar', 'git', 'tickets']) await send(page, 'put', `favorites/url/${name}`)
  await send(page, 'post', 'recent', { kind: 'url', name: 'mail' })
  let approvals: readonly { readonly approval: string; readonly user: string }[] = []
  await until(async () => {
    approvals = (await (await page.request.get('/portal/main/approvals')).json()).approvals
    return approvals.length === 3
  }, 60_000)
  for (const { approval, user } of approvals) {
    if (user === 'ada') continue
    await send(page, 'put', `approvals/${approval}`, { approved: user === 'joan', reason: 'As agreed' })
  }
  await page.context().close()
}

/** The same picture, compressed as far as zlib can. */
function compressed(png: Buffer): Buffer {
  const kept: Buffer[] = []
  const pixels: Buffer[] = []
  for (let at = 8; at < png.length; ) {
    const size = png.readUInt32BE(at)
    const type = png.toString('latin1', at + 4, at + 8)
    const data = png.subarray(at + 8, at + 8 + size)
    if (type === 'IDAT') pixels.push(data)
    else if (type === 'IEND') kept.push(chunk('IDAT', deflateSync(inflateSync(Buffer.concat(pixels)), { level: 9 })))
    if (type !== 'IDAT') kept.push(chunk(type, data))
    at += size + 12
  }
  return Buffer.concat([png.subarray(0, 8), ...kept])
}

function chunk(type: string, data: Buffer): Buffer {
  const content = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const made = Buffer.alloc(content.length + 8)
  made.writeUInt32BE(data.length)
  content.copy(made, 4)
  made.writeUInt32BE(crc32(content), content.length + 4)
  return made
}

async function take(browser: Browser, url: string, scene: Scene, scheme: 'light' | 'dark'): Promise<void> {
  const page = await signedIn(browser, url, scene.login, scheme)
  await page.goto(scene.path)
  await scene.ready(page)
  await page.waitForLoadState('networkidle')
  const picture = compressed(await page.screenshot({ animations: 'disabled' }))
  const name = `${scene.name}-${scheme}.png`
  if (picture.length > maxBytes) throw new Error(`${name} has ${picture.length} bytes, more than ${maxBytes}`)
  writeFileSync(join(folder, name), picture)
  console.log(`docs/images/${name}: ${Math.ceil(picture.length / 1_000)} KB`)
  await page.context().close()
}

const program = findChromium()
if (program === undefined) throw new Error('Chromium is not installed')
mkdirSync(folder, { recursive: true })
const config = portalConfig({})
const gateway = await startGatewayProcess({ config: config.folder })
const browser = await launchChromium(program)
try {
  await fill(browser, gateway.url)
  for (const scene of scenes) {
    for (const scheme of ['light', 'dark'] as const) await take(browser, gateway.url, scene, scheme)
  }
} finally {
  await browser.close()
  await gateway.stop()
  config.remove()
}

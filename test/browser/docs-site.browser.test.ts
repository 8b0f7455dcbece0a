import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectLooks, isTooWide, picture, usePages } from '#testing/browser/portal-browser.ts'
import { buildSite } from '../../docs/site/build.ts'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
}
/** A subfolder, as where a host has other pages too. */
const base = '/handbook/gatehouse/'
const pages = [
  'next/index.html',
  'next/guides/entra-id.html',
  'next/concepts/protocol-flows.html',
  'next/reference/filters/filters.Portal.html',
]

describe.skipIf(!hasChromium())('the documentation site', () => {
  let server: Server
  let origin: string

  beforeAll(async () => {
    const site = await buildSite()
    server = createServer((request, response) => {
      const path = new URL(request.url ?? '/', 'http://localhost').pathname
      const content = path.startsWith(base) ? site.get(path.slice(base.length)) : undefined
      if (content === undefined) response.writeHead(404).end()
      else response.writeHead(200, { 'content-type': types[extname(path)] ?? '' }).end(content)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => void server?.close())
  const openPage = usePages()

  async function open(path: string, options = {}) {
    const { page, complaints } = await openPage(`${origin}${base}${path}`, options)
    const otherHosts: string[] = []
    page.on('request', (request) => {
      if (new URL(request.url()).origin !== origin) otherHosts.push(request.url())
    })
    return { page, complaints, otherHosts }
  }

  test('is accessible and fits the window', async () => {
    const { page, complaints, otherHosts } = await open('next/index.html')
    for (const path of pages) {
      await page.goto(`${origin}${base}${path}`)
      await page.getByRole('button', { name: /^Search/ }).waitFor()
      // All pages have the same large menu.
      await expectLooks(page, `docs-${path.replaceAll(/\W+/g, '-')}`, path === pages[0] ? undefined : 'main')
    }
    await page.keyboard.press('Control+k')
    await page.getByRole('searchbox').fill('audit')
    await page.getByText(/\d+ results/).waitFor()
    await expectLooks(page, 'docs-search')
    expect([complaints, otherHosts]).toEqual([[], []])
  })

  test('the search finds "deprovision Entra" and leads to its page, by keyboard alone', async () => {
    const { page, complaints } = await open('next/reference/filters/filters.ScimGateway.html')
    await page.getByRole('button', { name: /^Search/ }).waitFor()
    await page.keyboard.press('/')
    await page.getByRole('searchbox').fill('deprovision Entra')
    await page.getByText(/\d+ results?/).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Microsoft Entra ID' }).waitFor()
    expect(page.url()).toContain(`${base}next/guides/entra-id.html`)
    await page.getByRole('button', { name: /^Search/ }).click()
    await page.getByRole('searchbox').fill('xyzzyplugh')
    await page.getByText('No results for “xyzzyplugh”').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('searchbox').waitFor({ state: 'hidden' })
    expect(complaints).toEqual([])
  })

  test('colors are chosen and kept', async () => {
    const { page } = await open('next/index.html', { colorScheme: 'light' })
    const background = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
    const light = await background()
    await page.getByRole('button', { name: 'Colors: system' }).click()
    await page.getByRole('button', { name: 'Colors: light' }).click()
    await page.getByRole('button', { name: 'Colors: dark' }).waitFor()
    const dark = await background()
    expect(dark).not.toBe(light)
    await page.goto(`${origin}${base}next/workflows.html`)
    expect(await background()).toBe(dark)
  })

  test('the address without a version leads to a page, and the menu of versions to another one', async () => {
    const { page } = await open('')
    await page.goto(`${origin}${base}index.html`)
    await page.waitForURL(`${origin}${base}next/index.html`)
    await page.goto(`${origin}${base}next/guides/mail.html`)
    await page.getByRole('button', { name: 'Version next, choose another' }).click()
    await page.getByRole('link', { name: '0.1.0' }).click()
    await page.waitForURL(`${origin}${base}0.1.0/index.html`)
    await page.getByRole('button', { name: 'Version 0.1.0, choose another' }).waitFor()
  })

  test('on a narrow phone the header is one row, and a wide table scrolls in its own box', async () => {
    const { page } = await open('next/reference/filters/filters.ScimGateway.html', {
      viewport: { width: 360, height: 640 },
    })
    await page.getByRole('button', { name: /^Search/ }).waitFor()
    const parts = page.locator('header > :is(a, button):visible')
    const boxes = await Promise.all((await parts.all()).map((part) => part.boundingBox()))
    expect(boxes).toHaveLength(5)
    const middles = boxes.map((box) => Math.round((box?.y ?? 0) + (box?.height ?? 0) / 2))
    expect(Math.max(...middles) - Math.min(...middles)).toBeLessThan(3)
    for (const box of boxes) expect((box?.x ?? 999) + (box?.width ?? 0)).toBeLessThanOrEqual(360)
    expect(await page.locator('.brand').evaluate((brand) => brand.scrollWidth <= brand.clientWidth)).toBe(true)

    await picture(page, 'docs-phone-header')
    expect(await isTooWide(page)).toBe(false)
    const tables = await page.locator('.table').evaluateAll((found) =>
      found.map((box) => {
        box.scrollLeft = 10_000
        const [outer, last] = [box.getBoundingClientRect(), box.querySelector('th:last-child')?.getBoundingClientRect()]
        return {
          fits: outer.right <= 360,
          isWide: box.scrollWidth > box.clientWidth,
          ends: (last?.right ?? 999) <= 361,
        }
      }),
    )
    expect(tables.some(({ isWide }) => isWide)).toBe(true)
    for (const { fits, ends } of tables) expect({ fits, ends }).toEqual({ fits: true, ends: true })
    await page
      .locator('.table')
      .first()
      .evaluate((box) => {
        box.scrollLeft = 0
        box.scrollIntoView()
      })
    await picture(page, 'docs-phone-table')
  })

  test('a phone opens the menu, without scripts too', async () => {
    const { page } = await open('next/guides/mail.html', {
      viewport: { width: 390, height: 844 },
      javaScriptEnabled: false,
    })
    const menu = page.getByRole('navigation', { name: 'Pages', exact: true })
    await menu.waitFor({ state: 'hidden' })
    await page.getByRole('button', { name: 'Menu' }).click()
    await menu.getByText('Concepts').click()
    await menu.getByRole('link', { name: 'Workflows', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Workflows' }).waitFor()
  })
})

import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectAccessible, follow, heading, picture, signIn, usePortal } from '#testing/browser/portal-browser.ts'
import { rawRequest } from '#testing/gateway/raw-request.ts'

/** The portal loads pages on demand; by then the session may have ended or the portal may have been updated. */
describe.skipIf(!hasChromium())('the parts of the portal', () => {
  const { visit, url } = usePortal()

  test('are public; the page is not, and a missing part starts no login', async () => {
    const { page } = await visit('/portal', 'ada')
    await heading(page, 'Welcome')
    const asset = /src="([^"]+\.js)"/.exec(await (await page.request.get('/portal')).text())?.[1] ?? ''
    const ask = async (path: string) => {
      const answer = await fetch(url(path), { headers: { accept: 'text/html,*/*' }, redirect: 'manual' })
      return [answer.status, answer.headers.get('set-cookie')]
    }
    expect(await ask(asset)).toEqual([200, null])
    expect(await ask('/portal/assets/gone-1234.js')).toEqual([404, null])
    // Unchanged: `fetch` would remove the dots from a path.
    const port = Number(new URL(url()).port)
    for (const path of ['/portal', '/portal/assets', '/portal/assets/../main/user', '/portal/assets/..%2fmain/user']) {
      const answer = await rawRequest(port, `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`)
      expect([path, answer]).toEqual([path, expect.stringMatching(/^HTTP\/1\.1 (?:400|401|404) /)])
    }
  })

  test('load after the session has ended, and the page says what to do', async () => {
    const { page, complaints } = await visit('/portal', 'ada')
    await heading(page, 'Welcome')
    await page.waitForLoadState('networkidle')
    await page.context().clearCookies()
    // A background request may open the dialog first, and then no pointer reaches the link below it.
    await page.getByRole('link', { name: 'My requests', includeHidden: true }).first().dispatchEvent('click')
    await page
      .getByRole('heading', { level: 1, name: 'My requests', includeHidden: true })
      .waitFor({ state: 'attached' })
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    const [tab] = await Promise.all([
      page.waitForEvent('popup'),
      dialog.getByRole('link', { name: 'Sign in again' }).click(),
    ])
    await signIn(tab, 'ada')
    await dialog.waitFor({ state: 'hidden' })
    await page.getByText('No requests').waitFor()
    expect(complaints.filter((text) => !text.includes('401'))).toEqual([])
  })

  test('a form keeps its content after a reload without a session, and a login', async () => {
    const { page } = await visit('/portal/profile', 'ada')
    await page.getByRole('textbox', { name: 'Name' }).fill('Ada King')
    await page.context().clearCookies()
    await page.reload()
    await signIn(page, 'ada')
    await heading(page, 'Profile')
    await expect.poll(() => page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Ada King')
  })

  test('a part that fails to load offers a reload, which leads to the requested page', async () => {
    const { page } = await visit('/portal/profile', 'grace')
    await page.getByRole('textbox', { name: 'Name' }).fill('Grace B. Hopper')
    const pattern = /\/assets\/approvals-page-/
    await page.route(pattern, (route) => route.fulfill({ status: 404, body: 'gone' }))
    await follow(page, 'Approvals')
    const failure = page.getByRole('alert')
    await failure.getByText('There may be a new version, or no connection').waitFor()
    await expectAccessible(page, 'a part that is missing')
    await picture(page, 'missing-part')
    await page.unroute(pattern)
    await failure.getByRole('button', { name: 'Reload' }).click()
    await heading(page, 'Approvals')
    await follow(page, 'Profile')
    await expect.poll(() => page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Grace B. Hopper')
  })

  test('without a connection, the current page stays usable', async () => {
    const { page } = await visit('/portal', 'ada')
    await heading(page, 'Welcome')
    // Even if the pointer passes the link before the connection ends, the part is not there.
    await page.route(/\/assets\/approvals-page-/, (route) => route.abort())
    await page.context().setOffline(true)
    await follow(page, 'Approvals')
    await page.getByRole('button', { name: 'Reload' }).waitFor()
    await follow(page, 'Home')
    await heading(page, 'Welcome')
  })

  test('without a connection, a page whose part is loaded says that it waits, and loads when the connection returns', async () => {
    for (const width of [1280, 360]) {
      const { page } = await visit('/portal', 'ada')
      await page.setViewportSize({ width, height: 800 })
      await heading(page, 'Welcome')
      await page.waitForLoadState('networkidle')
      // The part alone, as when the pointer passes the link.
      const asset = await page.evaluate(async () => {
        const sources = Array.from(document.scripts, ({ src }) => src).filter((src) => src.includes('/assets/'))
        const texts = await Promise.all(sources.map(async (src) => (await fetch(src)).text()))
        return /requests-page-[\w-]+\.js/.exec(texts.join())?.[0]
      })
      expect(asset).toBeDefined()
      // As a text, since the test runner would replace the import.
      await page.evaluate(`import('/portal/assets/${asset}').then(() => undefined)`)
      await page.context().setOffline(true)
      if (width < 500) await page.getByRole('button', { name: 'Menu' }).click()
      await follow(page, 'My requests')
      await heading(page, 'My requests')
      const status = page.locator('main').getByRole('status').filter({ hasText: 'No connection' })
      await status.getByText("loads as soon as you're back online").waitFor()
      expect(await page.getByText('No requests').count()).toBe(0)
      await expectAccessible(page, `a page that waits for a connection at ${width}`)
      await picture(page, `no-connection-${width}`)
      await page.context().setOffline(false)
      await page.getByText('No requests').waitFor()
      expect(await status.count()).toBe(0)
    }
  })

  test('a language that fails to load is reported, and the current one stays', async () => {
    const { page } = await visit('/portal', 'ada')
    await heading(page, 'Welcome')
    await page.route(/\/assets\/de-/, (route) => route.abort())
    await page.getByRole('button', { name: 'Language' }).click()
    await page.getByRole('menuitemradio', { name: 'Deutsch' }).click()
    await page.getByRole('status').getByText("couldn't load").waitFor()
    await page.unroute(/\/assets\/de-/)
    await page.reload()
    await page.getByRole('button', { name: 'Language' }).waitFor()
  })

  test('without its texts the portal says so', async () => {
    const { page } = await visit('/portal', 'ada')
    await heading(page, 'Welcome')
    await page.route(/\/assets\/en-/, (route) => route.abort())
    await page.reload()
    await page.getByRole('link', { name: 'Reload' }).waitFor()
    await page.unroute(/\/assets\/en-/)
    await page.getByRole('link', { name: 'Reload' }).click()
    await heading(page, 'Welcome')
  })
})

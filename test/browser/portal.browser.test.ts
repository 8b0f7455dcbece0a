import { rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { settled, useBrowser } from '#testing/browser/portal-browser.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { demoPasswords, PortalPerson, unlimitedQuickstart } from '#testing/stories/portal-story.ts'

describe.skipIf(!hasChromium())('the portal in a browser', () => {
  let config = ''
  let gateway: GatewayProcess
  let foreign: Server
  /** Pages of another site, by path. */
  const pages = new Map<string, string>()
  let port: number

  beforeAll(async () => {
    foreign = createServer((request, response) => {
      const page = pages.get(new URL(request.url ?? '/', 'http://x').pathname)
      response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' }).end(page)
    })
    await new Promise<void>((resolve) => foreign.listen(0, resolve))
    port = (foreign.address() as AddressInfo).port
  })
  afterAll(() => void foreign?.close())
  const { open } = useBrowser(
    async () => {
      config = unlimitedQuickstart()
      gateway = await startGatewayProcess({ config })
      return gateway
    },
    () => rmSync(config, { recursive: true, force: true }),
  )

  async function logIn(page: Page, path = '/main/user', login: keyof typeof demoPasswords = 'ada'): Promise<void> {
    await page.goto(path)
    await page.getByLabel('User name').fill(login)
    await page.getByLabel('Password').fill(demoPasswords[login])
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(`${gateway.url}${path}`)
  }

  const bodyOf = async (page: Page) => JSON.parse((await page.textContent('body')) ?? '')

  test('every page of the quickstart opens without browser errors', async () => {
    const { page, complaints } = await open()
    await logIn(page, '/portal', 'alan')
    for (const path of [
      '',
      'request',
      'requests',
      'approvals',
      'token',
      'register',
      'reports',
      'dashboard',
      'profile',
    ]) {
      await page.goto(`/portal/${path}`)
      await settled(page)
      expect({ path, alerts: await page.getByRole('alert').allTextContents() }).toEqual({ path, alerts: [] })
    }
    // The quickstart has no `account`, so that page does not exist either.
    await page.goto('/portal/security')
    await page.getByRole('heading', { level: 1, name: "We can't find that page" }).waitFor()
    await page.waitForLoadState('networkidle')
    expect(complaints).toEqual([])
    await page.goto('/portal/requests/none')
    await page.getByText("Not found, or you don't have access.").waitFor()
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('My requests')
  })

  test('the login form follows its policy, reports errors, and leads to the requested page', async () => {
    const { page, complaints } = await open()
    await page.goto('/main/user?from=bookmark')
    expect(await page.title()).not.toBe('')
    await page.getByLabel('User name').fill('ada')
    await page.getByLabel('Password').fill('not-the-password')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    expect(await page.getByLabel('Password').inputValue()).toBe('')
    // A browser's console has a line for the 401 itself, and no other.
    expect(complaints.filter((line) => !/status of 401/.test(line))).toEqual([])
    expect(await page.evaluate('document.cookie')).toBe('')

    const fresh = await open()
    await logIn(fresh.page)
    expect(await bodyOf(fresh.page)).toMatchObject({ uid: 'ada' })
    expect(fresh.complaints).toEqual([])
    expect(await fresh.page.evaluate('document.cookie')).toBe('')
    const [cookie] = (await fresh.page.context().cookies()).filter(({ name }) => name === 'portal')
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax' })
  })

  test.each([
    ['of another site', 'localhost'],
    // For a browser, another port is the same site: it sends the cookie along.
    ['of the same site but another origin', '127.0.0.1'],
  ])('D12: no page %s changes anything, by form, by plain text or by script', async (_what, host) => {
    const evil = `http://${host}:${port}`
    const { page } = await open()
    await logIn(page)
    const ada = await PortalPerson.logIn(gateway, 'ada')
    const before = [await registered(), (await ada.get('/main/favorites')).json]
    const line = [{ uuid: 'evil', name: 'vault-access', reason: 'evil' }]
    const profile = { displayName: { value: 'Eve' } }
    const person = { userName: 'eve', mail: 'eve@evil.test', givenName: 'Eve', sn: 'Evil' }
    const writes = [
      { path: '/main/workflows', method: 'PUT', body: line },
      { path: '/main/user', method: 'PUT', body: profile },
      { path: '/main/delegations', method: 'POST', body: { deputy: 'alan', starts: soon(0), ends: soon(1) } },
      { path: '/main/recent', method: 'POST', body: { kind: 'url', name: 'wiki' } },
      { path: '/register/submit', method: 'POST', body: { attributes: person, reason: 'evil' } },
      { path: '/token/user', method: 'POST', body: {} },
    ]
    for (const [i, { path, method, body }] of writes.entries()) {
      const target = `${gateway.url}${path}`
      const text = JSON.stringify(body)
      // A text that parses as JSON: the name is one half of it, the value the other.
      const name = attribute(`${text.slice(0, -1)}${text === '{}' ? '' : ','}"x":"`)
      const form = (encoding: string): string =>
        `<!doctype html><form id="f" method="post" enctype="${encoding}" action="${target}"><input name="${name}" value='"}'></form><script>document.getElementById('f').submit()</script>`
      for (const encoding of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data']) {
        const at = `/form-${i}-${encoding.replaceAll('/', '-')}`
        pages.set(at, form(encoding))
        const answered = page.waitForResponse((response) => response.url() === target)
        // The page leaves automatically, perhaps before it is loaded.
        await page.goto(`${evil}${at}`, { waitUntil: 'commit' })
        // Rejected for its type, for its origin although the cookie came along, or since no cookie came.
        const expected = path.startsWith('/register') ? 415 : host === '127.0.0.1' ? 403 : 401
        expect([path, encoding, (await answered).status()]).toEqual([path, encoding, expected])
        await page.waitForURL(target)
      }
      pages.set(`/script-${i}`, '<!doctype html><title>evil</title>')
      await page.goto(`${evil}/script-${i}`)
      const outcomes = await page.evaluate(
        async ([url, sent, how]) => {
          const attempts: ['cors' | 'no-cors', string, string][] = [
            ['no-cors', 'POST', 'text/plain'],
            ['no-cors', 'POST', 'application/x-www-form-urlencoded'],
            ['no-cors', 'POST', 'application/json'],
            ['cors', how ?? '', 'application/json'],
            ['cors', how ?? '', 'text/plain'],
          ]
          const results: string[] = []
          for (const [mode, verb, type] of attempts) {
            const init = { mode, method: verb, credentials: 'include', headers: { 'content-type': type } } as const
            const answer = await fetch(url ?? '', { ...init, body: sent ?? '' }).catch(() => undefined)
            results.push(answer === undefined ? 'blocked' : `${answer.type} ${answer.status}`)
          }
          return results
        },
        [target, text, method] as const,
      )
      await page.evaluate(`navigator.sendBeacon(${JSON.stringify(target)}, ${JSON.stringify(text)})`)
      // Nothing can be read, and the answer to a request without preflight is opaque.
      expect([path, outcomes.filter((one) => one !== 'blocked' && one !== 'opaque 0')]).toEqual([path, []])
    }
    const grace = await PortalPerson.logIn(gateway, 'grace')
    const alan = await PortalPerson.logIn(gateway, 'alan')
    expect([await registered(), (await ada.get('/main/favorites')).json]).toEqual(before)
    expect((await grace.get('/main/approvals')).json.approvals).toEqual([])
    expect((await alan.get('/main/admin/runs')).json.runs).toEqual([])
    expect((await ada.get('/main/delegations')).json.delegations).toEqual([])
    expect((await ada.get('/main/user')).text).not.toContain('Eve')

    // The same request is accepted from a page of the same site, so the site was the reason.
    await page.goto('/main/user')
    const own = await page.evaluate(
      async (sent) => {
        const headers = { 'content-type': 'application/json', 'x-requested-with': 'test' }
        const init = { method: 'POST', headers, body: sent }
        return (await fetch('/main/recent', init).catch(() => ({ status: 0 }))).status
      },
      JSON.stringify({ kind: 'url', name: 'wiki' }),
    )
    // The policy of an API's answer lets a page made from it connect nowhere.
    expect(own).toBe(0)
    const cookies = await page.context().request.post('/main/recent', {
      data: { kind: 'url', name: 'wiki' },
      headers: { origin: gateway.url, 'sec-fetch-site': 'same-origin', 'x-requested-with': 'test' },
    })
    expect([cookies.status(), await cookies.text()]).toEqual([204, ''])
  })

  test('another site can neither frame nor embed the APIs, nor read the session', async () => {
    const { page, complaints } = await open()
    await logIn(page)
    pages.set(
      '/frame',
      `<!doctype html><iframe src="${gateway.url}/main/user"></iframe><script src="${gateway.url}/main/urls"></script>`,
    )
    await page.goto(`http://localhost:${port}/frame`)
    await expect
      .poll(() => complaints.join('\n'))
      .toMatch(/frame-ancestors|refused to connect|Refused to frame|violates/i)
    for (const frame of page.frames().slice(1)) {
      const text = await frame.evaluate('document.body.textContent').catch(() => '')
      expect(text).not.toContain('ada')
    }
  })

  test('after logging out, the back button shows nothing', async () => {
    const { page } = await open()
    await logIn(page)
    await page.goto('/token/user')
    expect(await bodyOf(page)).toMatchObject({ displayName: 'Ada Lovelace' })
    await page.goto('/main/logout')
    await page.waitForURL('**/auth/signed-out')
    await page.goBack()
    await page.getByLabel('Password').waitFor()
    expect(await page.content()).not.toContain('id_token')
  })

  test('a used login page says so, and another one starts', async () => {
    const { page } = await open()
    await logIn(page)
    await page.goBack()
    await page.getByText('This login has ended').waitFor()
    await page.goto('/main/user')
    expect(await bodyOf(page)).toMatchObject({ uid: 'ada' })
  })

  test.each([
    '%0d%0aSet-Cookie:%20evil=1',
    '%0aX-Evil:%201',
    '%E5%98%8A%E5%98%8DSet-Cookie:evil=1',
    '//evil.test/%2e%2e',
  ])('an address with %s adds no header, and leads nowhere else', async (hostile) => {
    const { page } = await open()
    for (const path of [`/main/user?x=${hostile}`, `/main/${hostile}`, `/auth/formLogin?login=${hostile}`]) {
      const response = await page.goto(path)
      const headers = (await response?.allHeaders()) ?? {}
      expect([path, Object.keys(headers).filter((name) => name.startsWith('x-evil'))]).toEqual([path, []])
      expect(new URL(page.url()).origin).toBe(gateway.url)
    }
    const names = (await page.context().cookies()).map(({ name }) => name)
    expect(names.filter((name) => /evil/i.test(name))).toEqual([])
    await page.goto(`/main/user?x=${hostile}`)
    await page.getByLabel('User name').fill('ada')
    await page.getByLabel('Password').fill(demoPasswords.ada)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL('**/main/user?**')
    expect(new URL(page.url()).origin).toBe(gateway.url)
    expect(await bodyOf(page)).toMatchObject({ uid: 'ada' })
  })

  const soon = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString()

  const attribute = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;')

  /** The number of users. */
  async function registered(): Promise<number> {
    const token = await gateway.token('--subject', 'idp', '--claim', 'role=crm')
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`${gateway.url}/scim/people/Users`, { headers })
    return ((await answer.json()) as { totalResults: number }).totalResults
  }
})

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { AccountFactors, EnrolledFactor } from '#features/account/contract/account.ts'
import { addAuthenticator, hasChromium } from '#testing/browser/chromium.ts'
import { useBrowser } from '#testing/browser/portal-browser.ts'
import { startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { addPerson } from '#testing/stories/add-person.ts'

const config = 'examples/second-factors'
const password = 'correct horse battery'

describe.skipIf(!hasChromium())('in a browser', () => {
  let dataFolder = ''
  let here: string

  const { open } = useBrowser(
    async () => {
      dataFolder = mkdtempSync(join(tmpdir(), 'gatehouse-browser-'))
      for (const login of ['ada', 'grace', 'mary', 'joan']) await addPerson(config, dataFolder, login, password)
      const gateway = await startGatewayProcess({ config, dataFolder })
      // Passkeys are for host names, not for addresses.
      here = gateway.url.replace('127.0.0.1', 'localhost')
      return gateway
    },
    () => rmSync(dataFolder, { recursive: true, force: true }),
  )

  async function enterPassword(page: Page, path: string, login: string): Promise<void> {
    await page.goto(`${here}${path}`)
    await page.getByLabel('User name').fill(login)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
  }

  const factorsOf = async (page: Page): Promise<AccountFactors> =>
    (await (await page.context().request.get(`${here}/keys/account/factors`)).json()) as AccountFactors

  const bodyOf = async (page: Page): Promise<unknown> => JSON.parse((await page.textContent('body')) ?? '')

  test('a passkey is created at the first login and required at the next; the pages follow their policy', async () => {
    const { page, complaints } = await open()
    const device = await addAuthenticator(page)
    let release = (): void => undefined
    const checked = new Promise<void>((resolve) => {
      release = resolve
    })
    await page.route('**/passkey.js', async (route) => {
      await checked
      await route.continue()
    })
    await enterPassword(page, '/hello/passkey', 'ada')
    // Before its script has loaded, a click would send the form without a passkey.
    const make = page.getByRole('button', { name: 'Make passkey' })
    expect(await make.isDisabled()).toBe(true)
    release()
    await make.click()
    await page.getByRole('button', { name: "I've saved them" }).click()
    await page.waitForURL('**/hello/passkey')
    expect(await bodyOf(page)).toEqual({ uid: 'ada', level: 20 })
    expect(await device.credentials()).toHaveLength(1)

    await page.context().clearCookies()
    await enterPassword(page, '/hello/passkey?again', 'ada')
    await page.getByRole('button', { name: 'Use passkey' }).click()
    await page.waitForURL('**/hello/passkey?again*')
    expect(await bodyOf(page)).toEqual({ uid: 'ada', level: 20 })
    expect((await device.credentials())[0]?.signCount).toBeGreaterThan(1)
    expect(complaints).toEqual([])
  })

  test('another device fails, and the page says so; a recovery code works, once', async () => {
    const { page } = await open()
    const device = await addAuthenticator(page)
    await enterPassword(page, '/hello/passkey', 'grace')
    await page.getByRole('button', { name: 'Make passkey' }).click()
    await page.getByRole('button', { name: "I've saved them" }).waitFor()
    const codes = await page.locator('li code').allTextContents()
    await page.getByRole('button', { name: "I've saved them" }).click()
    await page.waitForURL('**/hello/passkey')

    await page.context().clearCookies()
    await device.refuse()
    await enterPassword(page, '/hello/passkey', 'grace')
    await page.getByRole('button', { name: 'Use passkey' }).click()
    expect(await page.getByRole('alert').textContent()).toContain('The browser gave no passkey')
    await page.getByText('Use a recovery code instead').click()
    await page.getByLabel('Recovery code').fill(codes[0] ?? '')
    await page.getByRole('button', { name: 'Use the code' }).click()
    await page.waitForURL('**/hello/passkey')
    expect(await bodyOf(page)).toEqual({ uid: 'grace', level: 20 })
  })

  test('the account API enrols a passkey by a page of the same origin, which then logs in', async () => {
    // The page replaces a portal, whose policy lets it connect to its own origin.
    const { page } = await open('about:blank', { bypassCSP: true })
    await addAuthenticator(page)
    await enterPassword(page, '/hello', 'mary')
    await page.waitForURL('**/hello')
    const enrolled = await page.evaluate<{ status: number; body: EnrolledFactor }>(enrolByPortal)
    expect([enrolled.status, enrolled.body.factor.name]).toEqual([201, 'My laptop'])
    expect(enrolled.body.recoveryCodes).toHaveLength(10)
    await page.context().clearCookies()
    await enterPassword(page, '/hello/passkey', 'mary')
    await page.getByRole('button', { name: 'Use passkey' }).click()
    await page.waitForURL('**/hello/passkey')
    const { factors } = await factorsOf(page)
    expect(factors.map(({ kind, name, lastUsed }) => [kind, name, lastUsed !== undefined])).toEqual([
      ['passkey', 'My laptop', true],
    ])
  })

  test('D12: a page of another site changes nothing, however it sends', async () => {
    const { page } = await open()
    await addAuthenticator(page)
    await enterPassword(page, '/hello/passkey', 'joan')
    await page.getByRole('button', { name: 'Make passkey' }).click()
    await page.getByRole('button', { name: "I've saved them" }).click()
    await page.waitForURL('**/hello/passkey')
    // The goal of the attack: with a fresh second factor, only the origin prevents it.
    const before = await factorsOf(page)
    const address = `${here}/keys/account`
    const attack = `<!doctype html><title>evil</title>
<form id="form" method="post" action="${address}/recovery-codes"><input name="a" value="b"></form>
<form id="text" method="post" enctype="text/plain" action="${address}/recovery-codes"><input name='{"a":"' value='"}'></form>`
    const evil: Server = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end(attack)
    })
    await new Promise<void>((resolve) => evil.listen(0, '127.0.0.1', resolve))
    const statuses: number[] = []
    try {
      const elsewhere = `http://127.0.0.1:${(evil.address() as AddressInfo).port}/`
      for (const form of ['form', 'text']) {
        const tab = await page.context().newPage()
        await tab.goto(elsewhere)
        const [answer] = await Promise.all([
          tab.waitForResponse((response) => response.url().startsWith(address)),
          tab.evaluate(`document.getElementById('${form}').submit()`),
        ])
        statuses.push(answer.status())
      }
      const tab = await page.context().newPage()
      tab.on('response', (response) => void statuses.push(response.status()))
      await tab.goto(elsewhere)
      await tab.evaluate(attackByScript(address))
    } finally {
      evil.close()
    }
    expect(statuses.length).toBeGreaterThan(3)
    expect(statuses.filter((status) => status === 204 || status === 201)).toEqual([])
    expect(await factorsOf(page)).toEqual(before)
    await page.goto(`${here}/hello/passkey`)
    expect(await bodyOf(page)).toEqual({ uid: 'joan', level: 20 })
    const own = await page.context().request.post(`${address}/recovery-codes`, {
      headers: { origin: here, 'x-requested-with': 'test' },
    })
    expect(own.status()).toBe(200)
  })
})

/** Runs in the browser, like the portal's code. */
const enrolByPortal = `(async () => {
  const post = async (path, body) => {
    const headers = { 'content-type': 'application/json', 'x-requested-with': 'portal' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const response = await fetch(path, init)
    return { status: response.status, body: await response.json() }
  }
  const { enrolment, options } = (await post('/keys/account/factors/passkey')).body
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
  const made = await navigator.credentials.create({ publicKey })
  const sent = { enrolment, response: made.toJSON(), name: 'My laptop' }
  return post('/keys/account/factors/passkey/confirm', sent)
})()`

/** Runs in the browser, at another site. */
const attackByScript = (address: string): string => `(async () => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
    const init = { method: 'POST', mode: 'no-cors', credentials: 'include', headers: { 'content-type': type }, body: '{}' }
    await fetch('${address}/recovery-codes', init).catch(() => undefined)
  }
  await fetch('${address}/sessions', { method: 'DELETE', credentials: 'include' }).catch(() => undefined)
})()`

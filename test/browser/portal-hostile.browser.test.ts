import type { Page, Route } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import {
  expectAccessible,
  fillCart,
  follow,
  heading,
  isTooWide,
  settled,
  signIn,
  useColors,
  usePortal,
} from '#testing/browser/portal-browser.ts'

const script = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
const turned = 'Ada\u202eecalevoL'
const long = 'Donaudampfschifffahrtsgesellschaftskapitänswitwenrentenauszahlungsstelle'.repeat(2)
const hour = 3_600_000

const rules = '  azRules:\n    - scope: dn\n      constraint: ou=people,o=Tremolo\n'
const object = (kind: string, name: string, spec: string): string =>
  `apiVersion: openunison.tremolo.io/v1\nkind: ${kind}\nmetadata:\n  name: ${name}\nspec:\n${spec}`
const written = (text: string): string => JSON.stringify(text)

/** An approval that any owner decides. */
const workflow = (name: string, label: string): string =>
  object(
    'Workflow',
    name,
    `  label: ${written(label)}
  description: ${written(label)}
  inList: true
  orgId: root
  tasks: |-
    - taskType: approval
      label: ${written(label)}
      emailTemplate: hello
      mailAttr: mail
      failureEmailSubject: no
      failureEmailMsg: no
      approvers:
        - scope: group
          constraint: cn=owners,ou=groups,ou=people,o=Tremolo
      onSuccess: []
`,
  )

const objects = [
  object('Org', 'long', `  uuid: long\n  parent: root\n  label: ${long}\n  description: ${written(script)}\n${rules}`),
  object('PortalUrl', 'script', `  label: ${written(script)}\n  url: https://a.example.com/\n  org: long\n${rules}`),
  object('PortalUrl', 'long', `  label: ${long}\n  url: https://b.example.com/\n  org: root\n${rules}`),
  workflow('script', script),
  workflow('long', long),
].join('---\n')

/** The portal again, at other addresses. */
const mount = (host: string, uri: string): string => `    - hosts: ["${host}"]
      uri: ${uri}
      authChain: login
      azRules:
        - scope: dn
          constraint: ou=people,o=Tremolo
      filterChain:
        - className: filters.Portal
          params:
            main: /portal/main
            sessionCheck: /portal/sessioncheck
            token: /api/token
`

describe.skipIf(!hasChromium())('the portal with hostile data', () => {
  const { visit, open, url } = usePortal({
    changes: {
      'seed/people.json': (text) => {
        const people = JSON.parse(text)
        people.groups.push({ name: long }, { name: script })
        for (const user of people.users) {
          if (user.userID !== 'ada') continue
          user.attributes.displayName = [turned]
          user.groups = [long, script]
        }
        return JSON.stringify(people)
      },
      'portal.yaml': (text) =>
        text
          .replace(
            '    - hosts: ["127.0.0.1", "localhost"]\n      uri: /portal/main\n',
            (found) => mount('127.0.0.1', '/a/b/portal') + mount('localhost', '/') + found,
          )
          .replace(
            '            headerTitle: Example\n',
            '            headerTitle: Example\n            themePrimaryMain: "#ffff00"\n            errorColor: "#ffeeee"\n',
          ),
    },
    more: { 'hostile.yaml': objects },
  })

  async function fillNewCart(page: Page, label: string, reason: string): Promise<void> {
    await page.goto('/portal/request')
    await fillCart(page, label, reason)
  }
  const send = (page: Page) => page.getByRole('button', { name: 'Submit request' })

  test('texts of other users stay texts: they run nothing, reverse nothing and fit a phone', async () => {
    const { page: ada, complaints } = await visit('/portal/request', 'ada')
    await settled(ada)
    for (const label of [script, long]) {
      await fillNewCart(ada, label, `${turned} ${script}`)
      await send(ada).click()
      await ada.getByText('1 request submitted').waitFor()
    }
    expect(await ada.getByRole('button', { name: 'Account of AdaecalevoL' }).count()).toBe(1)

    const phone = { viewport: { width: 360, height: 740 }, hasTouch: true }
    const { page: grace, complaints: hers } = await visit('/portal/approvals', 'grace', phone)
    const approvals = grace.getByRole('list', { name: 'Approvals' })
    await approvals.getByText(script).first().waitFor()
    const list = await approvals.innerText()
    expect(list).toContain('AdaecalevoL')
    expect(list).not.toMatch(/[\u202a-\u202e]/)
    const addresses = await grace.evaluate<string[]>(
      `[...document.querySelectorAll('a[href*="/portal/approvals/0"]')].map(({ href }) => href)`,
    )
    expect(addresses).toHaveLength(2)
    for (const address of [
      ...addresses,
      '/portal',
      '/portal/request',
      '/portal/request?org=long',
      '/portal/approvals',
    ]) {
      await grace.goto(address)
      await settled(grace)
      expect({ address, wide: await isTooWide(grace) }).toEqual({ address, wide: false })
      expect(await grace.title()).toMatch(/ – Example$/)
    }
    const { page: narrow, complaints: on } = await visit('/portal/profile', 'ada', phone)
    const group = narrow.getByText(long)
    await group.waitFor()
    const isCut = await group.evaluate<boolean, { scrollWidth: number; clientWidth: number }>(
      (element) => element.scrollWidth > element.clientWidth + 1,
    )
    expect([isCut, await isTooWide(narrow)]).toEqual([false, false])
    expect([complaints, hers, on]).toEqual([[], [], []])
  })

  test('another user who signs in in another tab sees and sends nothing of the first user', async () => {
    const { page } = await visit('/portal/request', 'mary')
    await settled(page)
    await fillNewCart(page, 'Access to the vault', 'Mary asks')
    // A page that gets no notice, such as a sleeping one: the gateway rejects its requests.
    const asleep = await page.context().newPage()
    await asleep.addInitScript('window.BroadcastChannel = class { postMessage() {} close() {} }')
    await asleep.goto('/portal/profile')
    await settled(asleep)
    await asleep.getByRole('textbox', { name: 'Name' }).fill('Mary, by herself')

    const other = await page.context().newPage()
    await other.goto('/portal/logout')
    await other.goto('/portal/requests')
    await signIn(other, 'linus')
    await settled(other)
    await page.getByRole('button', { name: 'Account of Linus Pauling' }).waitFor()
    await page.getByText('Your cart is empty').waitFor()
    expect(await page.evaluate<string>('JSON.stringify({ ...sessionStorage })')).not.toContain('Mary')

    const answered = asleep.waitForResponse((response) => response.request().method() === 'PUT')
    await asleep.getByRole('button', { name: 'Save' }).click()
    expect((await answered).status()).toBe(412)
    await asleep.getByRole('button', { name: 'Account of Linus Pauling' }).waitFor()
    await expect.poll(() => asleep.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Linus Pauling')
    await other.reload()
    await other.getByText('No requests').waitFor()
  })

  test('a next page that is rejected is reported, and only the user requests it again', async () => {
    const { page } = await visit('/portal', 'grace')
    await settled(page)
    const asked: string[] = []
    const refuse = async (route: Route, list: object): Promise<void> => {
      const { pathname, searchParams } = new URL(route.request().url())
      if (!searchParams.has('after')) return route.fulfill({ json: { ...list, next: 'more' } })
      asked.push(pathname)
      return route.fulfill({ status: 429, json: { errors: ['Too many requests.'], code: 'TOO_MANY_REQUESTS' } })
    }
    const approval = { workflow: 'w', approval: '1', label: 'One', user: 'u', displayName: 'U', requestor: 'r' }
    const run = { wfStart: 0, approvalStart: 0, wfName: 'w', wfLabel: 'W', wfDescription: '', reason: '' }
    await page.route('**/main/approvals?**', (route) => refuse(route, { approvals: [{ ...approval, ...run }] }))
    await page.goto('/portal/approvals')
    await page.getByRole('alert').getByText('Too many requests.').waitFor()
    await page.waitForTimeout(1_000)
    expect(asked).toHaveLength(1)
    await page.getByRole('button', { name: 'Try again' }).click()
    await expect.poll(() => asked.length).toBe(2)

    const at = new Date().toISOString()
    const request = { id: '1', name: 'w', label: 'One', state: 'waiting', subject: 'u', requestor: 'u' }
    await page.route('**/main/requests?**', (route) =>
      refuse(route, { requests: [{ ...request, created: at, updated: at }] }),
    )
    asked.length = 0
    await page.goto('/portal/requests')
    await page.getByRole('alert').getByText('Too many requests.').waitFor()
    await page.waitForTimeout(1_000)
    expect(asked.filter((path) => path.endsWith('/requests'))).toHaveLength(1)
    await page.getByRole('button', { name: 'Show more' }).click()
    await expect.poll(() => asked.filter((path) => path.endsWith('/requests')).length).toBe(2)
  })

  test('on a phone no key moves the focus outside the window', async () => {
    const { page } = await visit('/portal', 'ada', { viewport: { width: 360, height: 740 } })
    await settled(page)
    const names: string[] = []
    for (let stops = 0; stops < 8; stops += 1) {
      await page.keyboard.press('Tab')
      const [name, left] = await page.evaluate<[string, number]>(
        `[document.activeElement.ariaLabel ?? document.activeElement.textContent, document.activeElement.getBoundingClientRect().left]`,
      )
      expect({ name, isBeside: left < 0 }).toEqual({ name, isBeside: false })
      names.push(name)
    }
    expect(names).toContain('Menu')
    await page.getByRole('button', { name: 'Menu' }).focus()
    await page.keyboard.press('Enter')
    await follow(page, 'Profile')
    await heading(page, 'Profile')
    await page.getByRole('navigation').getByRole('link', { name: 'Profile' }).waitFor({ state: 'hidden' })
  })

  test('a browser whose clock is hours off uses the gateway’s', async () => {
    for (const off of [3 * hour, -3 * hour]) {
      const { page } = await open('/portal')
      await page.clock.install({ time: Date.now() + off })
      await signIn(page, 'linus')
      await settled(page)
      await page.goto('/portal/token')
      await page.getByText('Valid for').waitFor()
      const left = (await page.getByRole('timer').textContent()) ?? ''
      expect({ off, left }).toEqual({ off, left: expect.stringMatching(/^[01]:\d\d$/) })
      await page.context().close()
    }
  })

  test('a rejected or lost request is reported; the typed text stays, and is sent when possible', async () => {
    const { page } = await visit('/portal', 'joan')
    await settled(page)
    await fillNewCart(page, 'Access to the vault', 'Typed once')
    const typed = () => page.getByRole('textbox', { name: 'Reason' }).inputValue()
    const failures = [
      { status: 409, body: '{"errors":["It is not so any more."]}', says: 'It is not so any more.' },
      { status: 429, body: '{"errors":["Too many requests."]}', says: 'Too many requests.' },
      { status: 502, body: '<html>Bad gateway</html>', says: 'If this persists, contact support.' },
      { status: 200, body: '<html>Pay for this network</html>', says: 'If this persists, contact support.' },
    ]
    for (const { status, body, says } of failures) {
      await page.route('**/main/workflows?*', (route) => route.fulfill({ status, body }))
      await send(page).click()
      await page.getByRole('alert').getByText(says).waitFor()
      expect([status, await typed()]).toEqual([status, 'Typed once'])
      await page.unroute('**/main/workflows?*')
    }
    await page.context().setOffline(true)
    await send(page).click()
    await page.getByRole('alert').getByText("We can't reach the server.").waitFor()
    await page.context().setOffline(false)
    expect(await typed()).toBe('Typed once')
    let times = 0
    const held = Promise.withResolvers<void>()
    await page.route('**/main/workflows?*', async (route) => {
      times += 1
      await held.promise
      await route.continue()
    })
    await send(page).dblclick()
    expect(await send(page).isDisabled()).toBe(true)
    held.resolve()
    await page.getByText('1 request submitted').waitFor()
    expect(times).toBe(1)
  })

  test('an expired session asks the user to sign in and keeps the registration draft', async () => {
    const { page } = await visit('/portal/register', 'linus')
    await settled(page)
    await page.getByLabel('Login').fill('newcomer')
    await page.getByLabel('Mail address').fill('newcomer@example.com')
    await page.getByRole('textbox', { name: 'Name' }).fill('New Comer')
    await page.getByLabel('Team').selectOption('red')
    await page.getByRole('textbox', { name: 'Reason' }).fill('New')
    await page.getByRole('checkbox', { name: 'I accept the terms' }).check()
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Submit Registration' }).click()
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor({ timeout: 60_000 })
    await dialog.getByRole('button', { name: "I've signed in" }).click()
    await dialog.getByText("You aren't signed in yet.").waitFor()
    expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('New Comer')
  })

  test('the focus is visible in every color, and stays on the page when its element disappears', async () => {
    const { page } = await visit('/portal/request', 'mary')
    await settled(page)
    for (const label of ['Access to the vault', long]) {
      await page.getByRole('button', { name: `Add ${label} to the cart` }).click()
    }
    await page.getByRole('link', { name: 'Check out' }).click()
    const reason = page.getByRole('textbox', { name: 'Reason' })
    await reason.fill('For both')
    await expect.poll(() => page.evaluate('document.activeElement.getAnimations().length')).toBe(0)
    const color = await page.evaluate<string>('getComputedStyle(document.activeElement).borderColor')
    expect(color).toMatch(/^rgb/)
    expect(color).not.toBe('rgb(255, 255, 0)')
    await page.getByRole('button', { name: `Remove ${long} from the cart` }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: long }).waitFor({ state: 'detached' })
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe('Checkout')
    // The text typed for several is not lost with them.
    expect(await reason.inputValue()).toBe('For both')
  })

  test('works below any path and at the root, also after a reload', async () => {
    const root = url().replace('127.0.0.1', 'localhost')
    for (const base of [url('/a/b/portal'), root]) {
      const { page, complaints } = await visit(`${base}/requests?state=open`, 'linus')
      await heading(page, 'My requests')
      expect(page.url()).toBe(`${base}/requests?state=open`)
      await follow(page, 'Token')
      await heading(page, 'Your token')
      await page.reload()
      await heading(page, 'Your token')
      await page.goBack()
      await heading(page, 'My requests')
      expect([page.url(), complaints]).toEqual([`${base}/requests?state=open`, []])
    }
  })

  test('is readable in every color', async () => {
    const { page } = await visit('/portal/request', 'linus')
    const expectReadable = async (what: string): Promise<void> => {
      for (const colors of ['light', 'dark'] as const) {
        await useColors(page, colors)
        await expectAccessible(page, `${what}, ${colors}`, { rules: 'colors' })
      }
    }
    await settled(page)
    await page.getByRole('button', { name: 'Add Access to the vault to the cart' }).click()
    await expectReadable('yellow requests')
    await page.getByRole('link', { name: 'Check out' }).click()
    await send(page).click()
    await page.getByText('Enter a reason.').waitFor()
    await expectReadable('a yellow cart')
    await page.goto('/portal')
    await settled(page)
    await expectReadable('a yellow front page')
  })
})

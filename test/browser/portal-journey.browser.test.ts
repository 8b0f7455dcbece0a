import type { Page } from 'playwright-core'
import { describe, expect, test, vi } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import {
  ask,
  expectAccessible,
  fillCart,
  follow,
  heading,
  picture,
  signIn,
  usePortal,
} from '#testing/browser/portal-browser.ts'

describe.skipIf(!hasChromium())('the portal', () => {
  const { visit } = usePortal()

  async function askForVault(page: Page, reason: string): Promise<void> {
    await page.goto('/portal/request')
    await ask(page, 'Access to the vault', reason)
  }

  test('the front page finds links, keeps favorites and remembers recent items', async () => {
    const { page, complaints } = await visit('/portal', 'ada')
    await heading(page, 'Welcome')
    const links = page.getByRole('list', { name: 'Links' })
    await links.getByRole('link', { name: 'Wiki' }).waitFor()
    expect(await links.getByRole('link', { name: 'Console' }).count()).toBe(0)

    await page.getByRole('button', { name: 'Favorite: Tickets' }).click()
    const favorites = page.getByRole('region', { name: 'Favorites' })
    await favorites.getByRole('link', { name: 'Tickets' }).waitFor()
    await page.context().route('https://wiki.example.com/**', (route) => route.fulfill({ body: 'wiki' }))
    const [opened] = await Promise.all([page.waitForEvent('popup'), links.getByRole('link', { name: 'Wiki' }).click()])
    expect(opened.url()).toBe('https://wiki.example.com/')
    await opened.close()
    await page.reload()
    await page.getByRole('region', { name: 'Recent' }).getByRole('link', { name: 'Wiki' }).waitFor()
    await favorites.getByRole('link', { name: 'Tickets' }).waitFor()

    await page.getByRole('button', { name: 'Finance Counts things' }).click()
    await links.getByRole('link', { name: 'Wiki' }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'All', exact: true }).click()
    await page.getByRole('searchbox', { name: 'Search links and access' }).fill('vault')
    const offer = page
      .getByRole('region', { name: 'Available to request' })
      .getByRole('link', { name: 'Access to the vault' })
    await offer.waitFor()
    expect(await page.getByText('No results').count()).toBe(0)
    await page.getByRole('searchbox').fill('nothing like it')
    await page.getByText('No results for “nothing like it”.').waitFor()
    await page.getByRole('searchbox').fill('vault')
    await offer.click()
    await heading(page, 'Request access')
    expect(complaints).toEqual([])
  })

  test('a request for oneself and a colleague is followed to its end, while the owner decides', async () => {
    const { page: ada, complaints } = await visit('/portal/request', 'ada')
    await ada.getByRole('searchbox').fill('a')
    await ada.getByRole('button', { name: 'Add Access to the vault to the cart' }).click()
    await ada.getByRole('button', { name: 'Add A new laptop to the cart' }).click()
    await ada.getByText('2 in the cart').waitFor()
    await ada.reload()
    await ada.getByRole('link', { name: 'Check out' }).click()
    await ada.getByRole('button', { name: 'Submit request' }).click()
    await ada.getByText('Enter a reason.').waitFor()
    const laptop = ada.getByRole('region', { name: 'A new laptop' })
    await ada.getByRole('checkbox', { name: 'Same reason for all' }).uncheck()
    await laptop.getByRole('textbox', { name: 'Reason' }).fill('The old one broke')
    await ada.reload()
    expect(await laptop.getByRole('textbox', { name: 'Reason' }).inputValue()).toBe('The old one broke')
    await ada.getByRole('checkbox', { name: 'Same reason for all' }).check()
    await ada.getByRole('textbox', { name: 'Reason' }).fill('New project')
    await laptop.getByText('For others').click()
    await ada.getByRole('textbox', { name: 'People' }).fill('clarke')
    await ada.getByRole('option', { name: 'Joan Clarke' }).click()
    await ada.getByRole('button', { name: 'Submit request' }).click()
    await ada.getByText('2 requests submitted').waitFor()
    await ada.getByRole('link', { name: 'View in My requests' }).click()
    await ada.getByRole('link', { name: 'A new laptop for Joan Clarke, by Ada Lovelace' }).waitFor()
    await ada.getByRole('link', { name: 'Access to the vault for Ada Lovelace, by Ada Lovelace' }).click()
    await ada.getByText('Waiting for: Grace Hopper, Mary Jackson').waitFor()

    const { page: grace, complaints: hers } = await visit('/portal', 'grace', { colorScheme: 'dark' })
    await grace.getByRole('link', { name: /^\d+ requests need your decision/ }).click()
    await grace.getByRole('link', { name: 'Access to the vault for ada' }).click()
    await grace.getByText('Puts the person into the group vault').waitFor()
    await grace.getByText('ada@example.com').waitFor()
    await grace.getByRole('textbox', { name: 'Comment' }).fill('Until tonight')
    await grace.getByRole('button', { name: 'Approve' }).click()
    await grace.getByText('Approved: Access to the vault for Ada Lovelace').waitFor()

    await ada.getByText('approved by Grace Hopper').waitFor()
    await ada.getByText('Automated step').waitFor()
    expect(await ada.getByText('customTask').count()).toBe(0)
    await ada.getByText('Until tonight').waitFor()
    await ada.getByText('Done').first().waitFor()
    await follow(ada, 'My access')
    await ada.getByRole('heading', { name: 'Temporary access' }).waitFor()
    await follow(ada, 'Home')
    await ada.getByText('Your access to vault expires in 8 hours').waitFor()
    expect([complaints, hers]).toEqual([[], []])
  })

  test('a request is cancelled, and its timeline shows the reason', async () => {
    const { page, complaints } = await visit('/portal', 'joan', { reducedMotion: 'no-preference' })
    await heading(page, 'Welcome')
    await askForVault(page, 'By mistake')
    await follow(page, 'My requests')
    // On a narrow phone the state is one line beside an icon of full size.
    const desktop = page.viewportSize()
    await page.setViewportSize({ width: 320, height: 700 })
    const state = page.locator('.status').first()
    await state.waitFor()
    await expect.poll(async () => (await state.boundingBox())?.height).toBeLessThan(30)
    await expect.poll(async () => (await state.locator('svg').boundingBox())?.width).toBe(16)
    if (desktop !== null) await page.setViewportSize(desktop)
    await page.getByRole('link', { name: 'Access to the vault' }).click()
    await page.getByRole('button', { name: 'Cancel this request' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox').fill('Not needed')
    await expectAccessible(page, 'the dialog that cancels')
    await dialog.getByRole('button', { name: 'Cancel request' }).click()
    const alert = page.getByRole('alert').filter({ hasText: 'Cancelled by Joan Clarke' })
    await alert.getByText('If you still need this, request it again.').waitFor()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByRole('region', { name: 'Timeline' }).getByText('Not needed').waitFor()
    expect(await page.getByRole('button', { name: 'Cancel this request' }).count()).toBe(0)
    expect(complaints).toEqual([])
  })

  test('a request that an administrator stopped says so, and what to do', async () => {
    const { page, complaints } = await visit('/portal', 'joan')
    await heading(page, 'Welcome')
    await askForVault(page, 'To be stopped')
    await follow(page, 'My requests')
    await page.getByRole('link', { name: 'Access to the vault' }).first().click()
    await page.getByText(/^Waiting for approval/).waitFor()
    const { page: linus } = await visit('/portal', 'linus')
    await linus.evaluate(`(async () => {
      const { runs } = await (await fetch('/portal/main/admin/runs?state=waiting&subject=joan')).json()
      const run = runs.find(({ reason }) => reason === 'To be stopped')
      const headers = { 'content-type': 'application/json', 'x-requested-with': 'test' }
      await fetch('/portal/main/admin/runs/' + run.id + '/cancel', {
        method: 'POST', headers, body: JSON.stringify({ fence: run.fence, reason: 'No budget' }),
      })
    })()`)
    const alert = page.getByRole('alert').filter({ hasText: 'Stopped by an administrator, Linus Pauling' })
    await alert.getByText('No budget').waitFor()
    await alert.getByText('If you still need this, request it again.').waitFor()
    await page.getByRole('region', { name: 'Timeline' }).getByText('Stopped by Linus Pauling').waitFor()
    await expectAccessible(page, 'a request that was stopped')
    expect(complaints).toEqual([])
  })

  test('several are decided together; one that another user decided first is reported, and not counted', async () => {
    for (const [login, reason] of Object.entries({ linus: 'First', joan: 'Second', ada: 'Third' })) {
      const { page } = await visit('/portal', login)
      await heading(page, 'Welcome')
      await askForVault(page, `${reason} of three`)
    }
    const { page: mary } = await visit('/portal/approvals?q=of+three', 'mary')
    await mary.getByText('Third').waitFor()
    await mary.getByRole('checkbox', { name: 'Select all' }).check()
    await mary.getByText('3 selected').waitFor()
    await mary.getByRole('button', { name: 'Review selected…' }).click()
    await expectAccessible(mary, 'the dialog that decides')

    const { page: grace } = await visit('/portal/approvals?q=second', 'grace')
    await grace.getByRole('link', { name: 'Second' }).click()
    await grace.getByRole('textbox', { name: 'Comment' }).fill('No')
    const { page: slow } = await visit(grace.url(), 'mary')
    // Without the event, her page still shows the buttons when Grace has decided.
    await slow.route('**/portal/main/events', (route) => route.fulfill({ status: 404 }))
    await slow.reload()
    await slow.getByRole('textbox', { name: 'Comment' }).fill('Yes')
    await grace.getByRole('button', { name: 'Deny' }).click()
    await grace.getByText('Denied:').waitFor()

    await slow.getByRole('button', { name: 'Approve' }).click()
    await slow.getByText('This request changed while you were reviewing it').waitFor()
    await slow.getByText('Grace Hopper (grace) ·').waitFor()
    await slow.getByText('Denied', { exact: true }).waitFor()

    await mary.getByRole('textbox', { name: 'Comment' }).fill('All of them')
    await mary.getByRole('button', { name: 'Approve' }).click()
    await mary.getByText("1 request couldn't be decided").waitFor()
    await mary.getByText('Someone else already decided this.').waitFor()
    await mary.getByText('2 requests approved').waitFor()
  })

  test('a deputy is appointed, decides on behalf of the other, and is dismissed', async () => {
    const { page, complaints } = await visit('/portal/approvals/deputies', 'grace')
    await page.getByText('You have no deputy.').waitFor()
    await page.getByRole('button', { name: 'Appoint' }).click()
    await page.getByText('Choose a person.').waitFor()
    // She may not request for others, but everyone may here: users are looked up.
    await page.getByRole('textbox', { name: 'Deputy' }).fill('joan')
    await page.getByRole('option', { name: 'Joan Clarke' }).click()
    await page.getByRole('button', { name: 'Appoint' }).click()
    await page.getByText('Joan Clarke is now your deputy').waitFor()

    const { page: linus } = await visit('/portal', 'linus')
    await heading(linus, 'Welcome')
    await askForVault(linus, 'For the deputy')
    const { page: joan } = await visit('/portal/approvals', 'joan')
    await joan.getByRole('link', { name: 'For the deputy' }).click()
    await joan.getByText("You're deciding on behalf of Grace Hopper (grace).").waitFor()

    await page.getByRole('button', { name: 'Remove Joan Clarke' }).click()
    await page.getByText('You have no deputy.').waitFor()
    expect(complaints).toEqual([])
  })

  test('the profile is changed by its own rules, and typed text survives a reload', async () => {
    const { page, complaints } = await visit('/portal/profile', 'mary')
    const name = page.getByRole('textbox', { name: 'Name' })
    await name.fill('')
    await page.getByText('Required').waitFor()
    await name.fill('Mary W. Jackson')
    await page.reload()
    expect(await name.inputValue()).toBe('Mary W. Jackson')
    await page.getByRole('combobox', { name: 'Team' }).selectOption('Blue')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Profile saved').waitFor()
    await page.reload()
    expect(await name.inputValue()).toBe('Mary W. Jackson')
    expect(await page.getByRole('combobox', { name: 'Team' }).inputValue()).toBe('blue')
    expect(complaints).toEqual([])
  })

  test('when the session ends during a form, nothing is lost and it is sent once', async () => {
    const { page } = await visit('/portal/request', 'joan')
    await fillCart(page, 'Access to the vault', 'Typed before the session ended')
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Submit request' }).click()
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    await expectAccessible(page, 'the dialog of a session that ended')
    const [tab] = await Promise.all([
      page.waitForEvent('popup'),
      dialog.getByRole('link', { name: 'Sign in again' }).click(),
    ])
    await signIn(tab, 'joan')
    await tab.getByRole('heading', { level: 1, name: "You're signed in" }).waitFor()
    await tab.close()
    await page.getByText('1 request submitted').waitFor()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByRole('link', { name: 'View in My requests' }).click()
    await page.getByText('Waiting').first().waitFor()
    expect(await page.getByRole('link', { name: /Waiting/ }).count()).toBe(1)
  })

  test('another user who signs in there does not get the typed text', async () => {
    const { page } = await visit('/portal/profile', 'ada')
    await page.getByRole('textbox', { name: 'Name' }).fill('Ada, Countess')
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Save' }).click()
    const [tab] = await Promise.all([
      page.waitForEvent('popup'),
      page.getByRole('link', { name: 'Sign in again' }).click(),
    ])
    await signIn(tab, 'linus')
    await tab.getByRole('heading', { level: 1, name: "You're signed in" }).waitFor()
    await page.getByRole('button', { name: 'Account of Linus Pauling' }).waitFor()
    await expect.poll(() => page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Linus Pauling')
  })

  test('pages without a session lead to the login and back; unknown addresses say so', async () => {
    const { page, complaints } = await visit('/portal/nothing/here?x=1', 'ada')
    await heading(page, "We can't find that page")
    await page.getByRole('link', { name: 'Go home' }).click()
    await heading(page, 'Welcome')
    await page.goto('/portal/requests/00000000-0000-0000-0000-000000000000')
    await page.getByText("Not found, or you don't have access.").waitFor()
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([])
    await page.getByRole('button', { name: 'Account of Ada Lovelace' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.waitForURL('**/auth/signed-out')
    await page.goto('/portal/requests')
    await page.getByLabel('User name').waitFor()
  })

  test('a page in the background does not use the session', async () => {
    const { page } = await visit('/portal', 'grace')
    await heading(page, 'Welcome')
    await page.clock.install()
    // Without events, an open page asks at short intervals.
    await page.route('**/portal/main/events', (route) => route.fulfill({ status: 404 }))
    await page.reload()
    await heading(page, 'Welcome')
    await page.waitForLoadState('networkidle')
    let asked: string[] = []
    let waiting = 0
    page.on('request', (request) => {
      asked.push(new URL(request.url()).pathname)
      waiting++
    })
    page.on('requestfinished', () => waiting--)
    page.on('requestfailed', () => waiting--)
    // In steps, since answers come in real time: a page that waits for one sends no requests meanwhile.
    const passUntilAsked = async (path: string): Promise<void> => {
      for (let step = 0; step < 60 && !asked.includes(path); step++) {
        await page.clock.runFor(30_000)
        await vi.waitFor(() => expect(waiting).toBeLessThanOrEqual(0), { timeout: 20_000 })
      }
    }
    await passUntilAsked('/portal/main/approvals')
    expect(asked).toContain('/portal/main/approvals')
    await page.clock.runFor(3 * 60_000)
    asked = []
    await passUntilAsked('/portal/sessioncheck')
    await page.clock.runFor(10 * 60_000)
    expect([...new Set(asked)]).toEqual(['/portal/sessioncheck'])
  })

  test('offline is reported, and ends', async () => {
    const { page } = await visit('/portal', 'ada')
    await heading(page, 'Welcome')
    await page.context().setOffline(true)
    await page.getByText("You're offline").waitFor()
    await picture(page, 'offline')
    await page.context().setOffline(false)
    await page.getByText("You're offline").waitFor({ state: 'detached' })
  })
})

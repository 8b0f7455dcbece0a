import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectLooks, follow, heading, usePortal } from '#testing/browser/portal-browser.ts'

const wide = { viewport: { width: 1440, height: 900 } }

/** A configuration with errors. */
const broken = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: tickets }
spec: { className: targets.Tickets }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: open-ticket }
spec: { label: A ticket, inList: true, orgId: root, tasks: [{ taskType: provision, target: tickets, sync: true, attributes: [uid] }] }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: order }
spec: { label: An order, inList: true, orgId: root, tasks: [{ taskType: provision, target: shop, sync: true, attributes: [uid] }] }
`

describe.skipIf(!hasChromium())('the console about the installation', () => {
  const { visit, url } = usePortal({ more: { 'broken.yaml': broken } })

  test('administrators search the audit, open an entry and verify all records, with the keyboard alone', async () => {
    const { page, complaints } = await visit('/portal', 'linus', wide)
    await page.getByRole('button', { name: 'Console', exact: true }).click()
    await follow(page, 'Audit')
    await heading(page, 'Audit')
    const rows = page.getByRole('table', { name: 'Audit' }).getByRole('row')
    await rows.nth(1).waitFor()
    await expectLooks(page, 'console-audit')

    await page.getByLabel('User or workload').focus()
    await page.keyboard.type('LINUS')
    await page.keyboard.press('Enter')
    await page.waitForURL(/subject=LINUS/)
    await rows.nth(1).waitFor()
    expect(await rows.nth(1).textContent()).toContain('linus')
    await rows.nth(1).getByRole('button').focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByText('Entry ID').waitFor()
    expect(
      await page
        .getByRole('dialog')
        .getByText(/Linus Pauling.? \(.?linus/)
        .count(),
    ).toBe(2)
    await expectLooks(page, 'console-audit-entry')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await page.getByRole('button', { name: 'Verify the audit' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('all unchanged').waitFor()
    await page.getByText('Anchors and exports outside the database were not compared').waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.goto('/portal/console/audit?target=audit')
    await rows.filter({ hasText: 'verification' }).first().waitFor()
    await page.goto('/portal/console/audit?subject=nobody-at-all')
    await page.getByText('No entry matches this filter.').waitFor()
    expect(complaints).toEqual([])
  })

  test('the system, the configuration, the token service and the SCIM journal are shown on all screens', async () => {
    const { page, complaints } = await visit('/portal/console/system', 'linus', wide)
    await page.getByRole('heading', { name: 'Listener: public' }).waitFor()
    await page.getByText('SQLite').waitFor()
    await expectLooks(page, 'console-system')

    await page.goto('/portal/console/configuration?kind=Application')
    const objects = page.getByRole('table', { name: 'Objects' }).getByRole('row')
    await objects.filter({ hasText: 'Application' }).first().waitFor()
    await expectLooks(page, 'console-configuration')

    await page.goto('/portal/console/tokens')
    await page.getByText('Tokens in the last 24 hours').waitFor()
    await expectLooks(page, 'console-tokens')

    await page.goto('/portal/console/scim')
    await page.getByText('No calls yet.').waitFor()
    await page.goto('/portal/console/scim?failed=true&since=7d')
    await page.getByText('No call matches this filter.').waitFor()
    await expectLooks(page, 'console-scim')
    expect(complaints).toEqual([])
  })

  test('every entry of the navigation can be reached in a low window', async () => {
    const { page } = await visit('/portal', 'linus', { viewport: { width: 1280, height: 500 } })
    await page.getByRole('button', { name: 'Console', exact: true }).click()
    const last = page.getByRole('navigation').getByRole('link').last()
    await last.click()
    await page.waitForURL(/\/console\//)
    const { y = 0, height = 0 } = (await last.boundingBox()) ?? {}
    expect([y > 0, y + height <= 500]).toEqual([true, true])
  })

  test('a request is explained for a user and for an anonymous caller', async () => {
    const { page, complaints } = await visit('/portal/console/configuration', 'linus', wide)
    await page.getByLabel('URL').fill(url('/portal'))
    await page.getByLabel('As user').fill('ada')
    await page.keyboard.press('Enter')
    await page.getByText('The rules would allow it', { exact: true }).waitFor()
    await expectLooks(page, 'console-explain')
    await page.getByLabel('As user').fill('')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('Would be denied').waitFor()
    await page.getByLabel('As user').fill('no-such-user')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('No user of the directory has this login.').waitFor()
    expect(complaints.filter((text) => !text.includes('400'))).toEqual([])
  })

  test('users who are not administrators see that the console is not for them', async () => {
    const { page } = await visit('/portal/console/audit', 'ada', wide)
    await page.getByText('Administrators only').waitFor()
    expect(await page.getByRole('button', { name: 'Verify the audit' }).count()).toBe(0)
  })

  test('the configuration begins with what is set aside: how much, why, and what to do', async () => {
    const { page, complaints } = await visit('/portal/console/configuration', 'linus', wide)
    const alert = page.getByRole('alert').filter({ hasText: '3 objects are set aside' })
    const causes = alert.getByRole('listitem')
    await causes.nth(1).waitFor()
    const texts = (await causes.allInnerTexts()).map((text) => text.replaceAll(/[\u2066-\u2069]/g, ''))
    expect(texts[0]).toMatch(/^Target "tickets"\s+spec\.className: no target named "targets\.Tickets"/)
    expect(texts[0]).toContain('correct it at broken.yaml:5:')
    expect(texts[0]).toContain('Not served because of it: Target "tickets", Workflow "open-ticket"')
    expect(texts[1]).toContain('create target "shop", or remove the references to it')
    const rows = page.getByRole('table', { name: 'Objects' }).getByRole('row')
    await rows.nth(4).waitFor()
    const statuses = (await rows.allInnerTexts()).slice(1, 5).map((text) => text.includes('Set aside'))
    expect(statuses).toEqual([true, true, true, false])
    await expectLooks(page, 'console-set-aside')
    expect(complaints).toEqual([])
  })
})

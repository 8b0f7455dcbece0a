import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectLooks, heading, isTooWide, usePortal } from '#testing/browser/portal-browser.ts'

const wide = { viewport: { width: 1440, height: 900 } }
const tablet = { width: 1024, height: 768 }
const phone = { width: 390, height: 844 }

const operationsOf = (page: Page) => page.getByRole('navigation', { name: 'Operations' }).getByRole('link')

describe.skipIf(!hasChromium())('the API documentation', () => {
  const { visit, url } = usePortal()

  test('users find it in their menu, choose an API and an operation, and copy a command', async () => {
    const { page, complaints } = await visit('/portal', 'ada', wide)
    await page.getByRole('button', { name: /^Account of/ }).click()
    await page.getByRole('menuitem', { name: 'API documentation' }).click()
    await heading(page, 'API documentation')
    await page.getByRole('link', { name: /Main API/ }).waitFor()
    expect(await page.getByRole('link', { name: /OpenID Connect/ }).count()).toBe(0)
    await page.getByRole('link', { name: /Main API/ }).click()
    await heading(page, 'Main API')
    await page.getByText(url('/portal'), { exact: true }).waitFor()
    await page.getByText('Session of a signed-in user (cookie portal)').waitFor()
    expect(await operationsOf(page).filter({ hasText: '/admin/' }).count()).toBe(0)

    await page.getByRole('searchbox', { name: 'Search operations' }).fill('submits')
    await page.getByText('1 operation', { exact: true }).waitFor()
    await operationsOf(page).click()
    await page.waitForURL(/operation=submit/)
    await page.getByRole('heading', { level: 2, name: 'Submits requests' }).waitFor()
    await page.getByText('encryptedParams').first().waitFor()
    await page.getByText('Set $SESSION to the value of the cookie portal.').waitFor()
    await page.getByText('The name of the workflow, as in the list.').first().waitFor()
    const command = page.getByRole('region', { name: 'curl command' })
    expect(await command.textContent()).toContain(`curl -X PUT "${url('/portal/main/workflows')}"`)
    expect(await command.textContent()).toContain('portal=$SESSION')
    await page.getByRole('button', { name: 'Copy curl command' }).click()
    await page.getByRole('button', { name: /Copied/ }).waitFor()
    expect(complaints).toEqual([])
  })

  test('administrators see every API, and all operations', async () => {
    const { page, complaints } = await visit('/portal/apis', 'linus', wide)
    await page.getByRole('link', { name: /OpenID Connect issuer/ }).waitFor()
    await page.getByRole('link', { name: /Main API/ }).click()
    await operationsOf(page).filter({ hasText: '/main/admin/runs' }).first().waitFor()
    expect(complaints).toEqual([])
  })

  test('the documents are downloaded as JSON', async () => {
    const { page } = await visit('/portal/apis/portal-main', 'ada', wide)
    for (const [format, version] of [
      ['OpenAPI 3.1', { openapi: '3.1.0' }],
      ['Swagger 2.0', { swagger: '2.0' }],
    ] as const) {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: `Download ${format}` }).click(),
      ])
      expect(JSON.parse(readFileSync(await download.path(), 'utf8'))).toMatchObject(version)
    }
  })

  test('the address of an operation leads to it, by keyboard too', async () => {
    const { page, complaints } = await visit('/portal/apis/portal-main?operation=decideApproval', 'ada', wide)
    await page.getByRole('heading', { level: 2, name: 'Decides an approval' }).waitFor()
    await page.getByText('It was decided, or has changed').waitFor()
    await operationsOf(page).filter({ hasText: 'GET /main/user' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 2, name: "The caller's profile" }).waitFor()
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe("The caller's profile")
    await page.goBack()
    await page.getByRole('heading', { level: 2, name: 'Decides an approval' }).waitFor()
    expect(complaints).toEqual([])
  })

  test('an unknown operation and an unknown API say so', async () => {
    const { page } = await visit('/portal/apis/portal-main?operation=listRuns', 'ada', wide)
    await page.getByText('No such operation').waitFor()
    await page.goto('/portal/apis/nothing')
    await page.getByText("Not found, or you don't have access.").waitFor()
  })

  test('texts of a document stay text', async () => {
    const { page, complaints } = await visit('/portal', 'ada', wide)
    const evil = '<img src=x onerror="document.title=1"> [a](javascript:alert(1)) \u202Eevil'
    await page.route('**/main/apis/*/openapi.json', (route) =>
      route.fulfill({
        json: {
          openapi: '3.1.0',
          info: { title: evil, version: evil },
          servers: [{ url: `javascript:${evil}` }],
          paths: {
            [`/${evil}`]: {
              get: {
                operationId: 'evil',
                summary: evil,
                description: evil,
                tags: [evil],
                parameters: [{ name: evil, in: evil, description: evil, schema: { $ref: '#/components/schemas/Me' } }],
                responses: { '200': { description: evil, content: { [evil]: { schema: { $ref: evil } } } } },
              },
            },
          },
          components: { schemas: { Me: { properties: { me: { $ref: '#/components/schemas/Me' } } } } },
        },
      }),
    )
    await page.goto('/portal/apis/portal-main?operation=evil')
    await page
      .getByRole('heading', { level: 2, name: /onerror/ })
      .last()
      .waitFor()
    expect(await page.locator('main img, main a[href^="javascript"]').count()).toBe(0)
    expect(await page.locator('main').textContent()).not.toContain('\u202E')
    await page.locator('summary', { hasText: 'me Me' }).last().click()
    await page.getByText('More members are in the document.').first().waitFor()
    await expectLooks(page, 'apis-hostile')
    expect(complaints).toEqual([])
  })

  test('list, document and operation are usable on all screens', async () => {
    const { page, complaints } = await visit('/portal/apis', 'linus', wide)
    await page.getByRole('link', { name: /Main API/ }).waitFor()
    await expectLooks(page, 'apis')
    await page.goto('/portal/apis/portal-main')
    await operationsOf(page).first().waitFor()
    await expectLooks(page, 'apis-document')
    await operationsOf(page).filter({ hasText: 'PUT /main/approvals/{id}' }).click()
    await page.getByRole('heading', { level: 2, name: 'Decides an approval' }).waitFor()
    await expectLooks(page, 'apis-operation')
    await page.setViewportSize(tablet)
    await expect.poll(() => isTooWide(page)).toBe(false)
    await page.setViewportSize(phone)
    await operationsOf(page).first().waitFor({ state: 'hidden' })
    await page.getByRole('link', { name: 'All operations' }).click()
    await operationsOf(page).first().waitFor()
    await page.setViewportSize(tablet)
    await expect.poll(() => isTooWide(page)).toBe(false)
    expect(complaints).toEqual([])
  })

  test('it is in the language of the portal', async () => {
    const { page } = await visit('/portal/apis', 'ada', wide)
    await heading(page, 'API documentation')
    await page.getByRole('button', { name: 'Language' }).click()
    await page.getByRole('menuitemradio', { name: 'Deutsch' }).click()
    await heading(page, 'API-Dokumentation')
    await page.getByRole('link', { name: /Main API/ }).click()
    await page.getByRole('searchbox', { name: 'Operationen suchen' }).waitFor()
  })
})

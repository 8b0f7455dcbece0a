import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { expectAccessible, expectLooks, picture, usePortal } from '#testing/browser/portal-browser.ts'

/** A workflow that the token of the page may start. */
const callWorkflow = `
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: jwt }
spec: { className: auth.OAuth2JWT, uri: /auth/jwt }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: id-token }
spec:
  level: 20
  root: o=Tremolo
  authMechs:
    - name: jwt
      required: required
      params:
        issuer: "#[GATEHOUSE_URL]/auth/idp/portal"
        audience: kubernetes
        fromWellKnown: "true"
        linkToDirectory: "true"
        noMatchOU: api
        uidAttr: sub
        lookupFilter: (uid=\${sub})
        defaultObjectClass: inetOrgPerson
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: call-workflow }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /call-workflow
      authChain: id-token
      azRules: [{ scope: dn, constraint: "ou=people,o=Tremolo" }]
      filterChain: [{ className: filters.CallWorkflow, params: { allowedWorkflow: newsletter } }]
    - hosts: ["127.0.0.1"]
      uri: /call-for-others
      authChain: id-token
      azRules: [{ scope: dn, constraint: "ou=people,o=Tremolo" }]
      filterChain:
        - className: filters.CallWorkflow
          params: { allowedWorkflow: vault-access, requireRequestorMatch: "false" }
`

describe.skipIf(!hasChromium())('the token page', () => {
  const { visit, visitAnew, url } = usePortal({
    changes: {
      'token.yaml': (text) =>
        text
          .replace('accessTokenTimeToLive: "120000"', 'accessTokenTimeToLive: "9000"')
          .replace('warnMinutesLeft: "5"', 'warnMinutesLeft: "5"\n            qrCodeAttribute: refresh_token'),
    },
    more: { 'call-workflow.yaml': callWorkflow },
  })

  const value = (page: Page, name: string) => page.getByRole('region', { name, exact: true }).locator('pre')

  test('counts down, expires, and returns another token, which a workflow accepts', async () => {
    const { page, complaints } = await visitAnew('/portal/token', 'ada', {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const timer = page.getByRole('timer')
    const first = await timer.textContent()
    await expect.poll(() => timer.textContent()).not.toBe(first)
    const before = await value(page, 'id_token').textContent()
    await page.getByText('This token has expired').waitFor()
    expect(await timer.textContent()).toBe('0:00')
    await expectAccessible(page, 'a token that has ended')
    await picture(page, 'token-expired')

    await page.getByRole('button', { name: 'Get a new token' }).click()
    await page.getByText('You have a new token').waitFor()
    await expect.poll(() => value(page, 'id_token').textContent()).not.toBe(before)
    await page.getByRole('button', { name: 'Copy id_token' }).click()
    await page.getByRole('button', { name: 'Copied: id_token' }).waitFor()
    const token = await page.evaluate<string>('navigator.clipboard.readText()')
    expect(token).toBe(await value(page, 'id_token').textContent())

    const call = (bearer: string) =>
      fetch(url('/call-workflow'), {
        method: 'POST',
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          name: 'newsletter',
          uidAttributeName: 'uid',
          user: { uid: 'ada', attributes: [{ name: 'uid', values: ['ada'] }] },
          reason: 'By the token page',
        }),
      })
    const answer = await call(token)
    expect([answer.status, await answer.text()]).toMatchObject([200, expect.anything()])
    expect((await call(`${token}x`)).status).toBe(401)

    const claims = page.getByRole('region', { name: 'Claims' })
    await claims.getByText('Ada Lovelace').waitFor()
    await claims.getByText('kubernetes', { exact: true }).waitFor()
    await page.getByRole('img', { name: 'QR code' }).waitFor()
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download kubeconfig' }).click()
    const file = await saved
    expect(file.suggestedFilename()).toBe('kubeconfig.yaml')
    const kubeconfig = readFileSync(await file.path(), 'utf8')
    expect(kubeconfig).toContain('server: https://k8s.example.com:6443')
    // The command changes the user of the file.
    expect(kubeconfig).toContain('user: ada@example\n')
    expect(await value(page, 'kubectl command').textContent()).toContain(' set-credentials ada@example ')
    expect(complaints).toEqual([])
  })

  test('approver, requester and caller see who submitted a request in the name of another user', async () => {
    const { page: ada } = await visitAnew('/portal/token', 'ada')
    const bearer = await value(ada, 'id_token').textContent()
    const answer = await fetch(url('/call-for-others'), {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        name: 'vault-access',
        requestor: 'linus',
        uidAttributeName: 'uid',
        user: { attributes: [{ name: 'uid', values: ['ada'] }] },
        reason: 'By the token page',
      }),
    })
    expect(answer.status).toBe(202)
    const { workflowId } = JSON.parse(await answer.text())
    const both = 'Linus Pauling (submitted by Ada Lovelace)'

    const { page: grace, complaints } = await visit('/portal/approvals', 'grace')
    const bothWithLogins = 'Linus Pauling (linus) (submitted by Ada Lovelace (ada))'
    await grace.getByText(`requested by ${bothWithLogins}`).click()
    await grace.getByText(bothWithLogins, { exact: true }).waitFor()
    await picture(grace, 'approval-submitted-for-another')
    for (const login of ['linus', 'ada']) {
      const { page } = await visit(`/portal/requests/${workflowId}`, login)
      await page.getByText(`Requested by ${both}`).waitFor()
      await page.getByText(both, { exact: true }).waitFor()
    }
    expect(complaints).toEqual([])
  })

  test('is accessible and fits the window', async () => {
    const { page, complaints } = await visitAnew('/portal/token', 'ada')
    await page.getByRole('timer').waitFor()
    await expectLooks(page, 'token')
    expect(complaints).toEqual([])
  })
})

describe.skipIf(!hasChromium())('the token page without renewTokens', () => {
  const { visitAnew } = usePortal({
    changes: {
      'token.yaml': (text) =>
        text
          .replace('accessTokenTimeToLive: "120000"', 'accessTokenTimeToLive: "5000"')
          .replace(/ +renewTokens: "true"\n/, ''),
    },
  })

  test('offers no new token, and explains how to get one', async () => {
    const { page, complaints } = await visitAnew('/portal/token', 'ada')
    await page.getByRole('timer').waitFor()
    expect(await page.getByRole('button', { name: 'Get a new token' }).count()).toBe(0)
    const said = page.getByText('To get a new token, sign out and sign in again.')
    await said.waitFor()
    expect(await said.getByRole('link', { name: 'Sign out' }).count()).toBe(1)
    expect(await page.getByRole('button', { name: 'Get a new token' }).count()).toBe(0)
    expect(complaints).toEqual([])
  })
})

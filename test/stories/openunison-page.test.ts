import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { type DemoLogin, demoPasswords, PortalPerson } from '#testing/stories/portal-story.ts'

const people = `
      authChain: login
      azRules: [{ scope: dn, constraint: "ou=people,o=Tremolo" }]`

/** The objects that OpenUnison's pages need besides those of the quickstart, with its class names. */
const objects = `
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: pages }
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig: { sessionCookieName: portal, domain: "*", timeout: 900, logoutURI: /main/logout, secure: false, httpOnly: true, sameSite: Lax, cookiesEnabled: true }
  urls:
    - hosts: ["127.0.0.1", "localhost"]
      uri: /ops
      authChain: login
      azRules: [{ scope: group, constraint: "cn=administrators,ou=groups,ou=people,o=Tremolo" }]
      filterChain:
        - className: com.tremolosecurity.scalejs.ws.ScaleJSOperator
          params:
            bases: ["People=ou=people,o=Tremolo"]
            searchableAttributes: ["uid=Login ID", "mail=Email Address"]
            resultAttributes: ["uid=Login ID", "displayName=Name", "mail=Email Address"]
            scaleMainAppName: portal
            scaleMainURI: /main
            homeUrl: /portal
            approveChecked: "false"
            rolesWith: "6"
    - hosts: ["127.0.0.1", "localhost"]
      uri: /password${people}
      filterChain:
        - className: com.tremolosecurity.scalejs.password.ws.ScalePassword
          params:
            displayNameAttribute: displayName
            frontPage.title: New password
            frontPage.text: Choose a new password
            homeURL: /portal
            logoutURL: /main/logout
            uidAttributeName: uid
            reason: Set on the password page
            workflowName: set-password
            synchronous: "true"
            validatorClassName: com.tremolosecurity.scalejs.password.validators.BasicValidator
            validator.params: ["minChars=10", "requireNumber=true"]
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: register-page }
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ["127.0.0.1", "localhost"]
      uri: /page
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: com.tremolosecurity.scalejs.register.ws.ScaleRegister
          params:
            configFormat: openunison
            frontPage.title: Join
            frontPage.text: Come in
            homeURL: /portal
            logoutURL: /main/logout
            uidAttributeName: userName
            workflowName: register-person
            jsUris: [js/register-functions.js]
            attributeNames: [userName, mail, givenName, sn]
            userName.displayName: Login
            mail.displayName: Mail
            givenName.displayName: First name
            sn.displayName: Last name
            sn.type: textarea
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: set-password }
spec:
  label: Set a password
  inList: false
  orgId: internal
  tasks: |-
    - taskType: provision
      target: people
      sync: false
      setPassword: true
      attributes: [userName]
---
apiVersion: openunison.tremolo.io/v1
kind: Report
metadata: { name: mine-mariadb }
spec:
  name: Mine (MariaDB)
  orgId: example
  parameters: { beginDate: false, endDate: false, userKey: false, currentUser: true }
  groupings: true
  groupBy: id
  headerFields: [Approval, Subject]
  dataFields: [First Name, Email]
  sql: |-
    select approvals.id, approvals.label AS Approval, concat((SELECT value FROM userAttributes WHERE name='givenname' AND userid=users.id),' ',
    (SELECT value FROM userAttributes WHERE name='sn' AND userid=users.id)) as \`Subject\`,
    (SELECT value FROM approverAttributes WHERE name='givenname' AND approverid=approvers.id) as \`First Name\`,
    (SELECT value FROM approverAttributes WHERE name='mail' AND approverid=approvers.id) as \`Email\`
    from approvals inner join workflows on approvals.workflow=workflows.id inner join users on workflows.userid=users.id
    inner join allowedApprovers on approvals.id=allowedApprovers.approval inner join approvers on approvers.id=allowedApprovers.approver
    where users.userKey=? AND approvedTS is null order by approvals.createTS ASC, approvals.id ASC
`

describe("OpenUnison's portal pages", () => {
  let gateway: GatewayProcess
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-pages-'))
  const config = join(folder, 'config')

  beforeAll(async () => {
    cpSync('examples/quickstart', config, { recursive: true })
    writeFileSync(join(config, 'pages.yaml'), objects)
    gateway = await startGatewayProcess({ config })
  }, 180_000)
  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** What a browser adds to the requests of the page. */
  const page = (): Record<string, string> => ({ 'sec-fetch-site': 'same-origin', origin: gateway.url })
  const logIn = (login: DemoLogin) => PortalPerson.logIn(gateway, login)
  const put = (person: PortalPerson, path: string, body: unknown) => person.send('PUT', path, body, page())
  const post = (person: PortalPerson, path: string, body: unknown) => person.send('POST', path, body, page())

  /** Changes that another site, or no page at all, could send with the cookie. */
  const foreign = (): Record<string, string>[] => {
    const { port } = new URL(gateway.url)
    return [
      {},
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
      { 'sec-fetch-site': 'same-site', origin: gateway.url },
      { 'sec-fetch-site': 'same-origin', origin: 'null' },
      { origin: 'null' },
      { origin: 'https://evil.test' },
      { origin: gateway.url.replace(`:${port}`, `:${Number(port) === 65535 ? 1 : Number(port) + 1}`) },
      { ...page(), 'content-type': 'text/plain' },
      { ...page(), 'content-type': 'application/x-www-form-urlencoded' },
    ]
  }

  test('check finds no error', async () => {
    expect(await commandOutput('check', '--config', config)).not.toContain('error')
  })

  test('profile, request and decision are saved as the page sends them', async () => {
    const [ada, grace] = [await logIn('ada'), await logIn('grace')]
    const profile = (value: string) => ({ displayName: { name: 'displayName', value } })
    for (const headers of foreign()) {
      const { status } = await ada.send('PUT', '/main/user', profile('Mallory'), headers)
      expect([403, 415], JSON.stringify(headers)).toContain(status)
    }
    expect((await ada.get('/main/user')).text).not.toContain('Mallory')
    expect((await put(ada, '/main/user', profile('Ada King'))).status).toBe(200)
    expect((await ada.get('/main/user')).text).toContain('Ada King')

    const [workflow] = (await ada.get('/main/workflows/org/example')).json
    const { uuid, name } = workflow
    const rights = await ada.get(`/main/workflows/candelegate?workflowName=${name}&uuid=${uuid}`)
    expect(rights.json).toMatchObject({ canDelegate: true })
    const cart = [{ uuid, name, reason: 'On call', encryptedParams: workflow.encryptedParams }]
    expect((await put(ada, '/main/workflows', cart)).json).toEqual({ [uuid]: 'success' })
    let approval = ''
    await until(async () => {
      approval = (await grace.get('/main/approvals')).json.approvals[0]?.approval ?? ''
      return approval !== ''
    }, 30_000)
    const report = await ada.get('/main/reports/Mine%20(MariaDB)')
    expect(report.json).toMatchObject({
      grouping: [
        {
          header: { Approval: 'Access to the vault for Ada King', Subject: 'Ada Lovelace' },
          data: [{ 'First Name': 'Grace', Email: 'grace@example.com' }],
        },
      ],
    })
    for (const group of report.json.grouping) for (const [id, row] of group.data.entries()) row.id = id
    const file = await put(ada, '/main/reports/excelx', { ...report.json, when: new Date().toString() })
    expect([file.status, file.text.slice(0, 2)]).toEqual([200, 'PK'])
    expect((await put(grace, '/main/reports/excelx', report.json)).status).toBe(404)
    for (const headers of foreign()) {
      const { status } = await ada.send('PUT', '/main/reports/excelx', report.json, headers)
      expect([403, 415], JSON.stringify(headers)).toContain(status)
    }

    const vote = { reason: 'Fine', approved: true }
    for (const headers of foreign()) {
      const { status } = await grace.send('PUT', `/main/approvals/${approval}`, vote, headers)
      expect([403, 415], JSON.stringify(headers)).toContain(status)
    }
    expect((await put(grace, `/main/approvals/${approval}`, vote)).status).toBe(200)
    expect((await ada.get('/main/reports/Mine%20(MariaDB)')).json.grouping).toEqual([])
  })

  test('the registration page gets its form, and sends it', async () => {
    const form = await (await fetch(`${gateway.url}/page/register/config`)).json()
    expect(form).toMatchObject({ jsUris: ['js/register-functions.js'], frontPage: { title: 'Join' } })
    expect(form.attributeNameList.map((name: string) => form.attributes[name].show)).toEqual([true, true, true, true])
    expect(form.attributes.sn.type).toBe('textarea')
    const values = { userName: 'joan', mail: 'joan@example.com', givenName: 'Joan', sn: 'Clarke' }
    const body = { attributes: values, extraData: {}, enabledAttrs: { userName: true }, reason: '' }
    const send = () =>
      fetch(`${gateway.url}/page/register/submit`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...page() },
        body: JSON.stringify(body),
      })
    expect((await send()).status).toBe(200)
    const again = await send()
    expect([again.status, (await again.json()).errors.length > 0]).toEqual([500, true])
  })

  test('operators find, see and change users; others do not', async () => {
    const [ada, alan] = [await logIn('ada'), await logIn('alan')]
    const config = (await alan.get('/ops/config')).json
    expect(config).toMatchObject({ searchBases: ['People'], rolesWidth: 6, scaleJsMainUri: '/main' })
    const search = (value: string, name = 'mail') => ({
      base: config.searchBases[0],
      toSearch: [
        { ...config.searchableAttributes.find((one: { name: string }) => one.name === name), value, picked: true },
      ],
    })
    const found = await put(alan, '/ops/search', search('gra*'))
    expect(found.json).toEqual([
      { dn: 'uid=grace,ou=people,o=Tremolo', uid: 'grace', displayName: 'Grace Hopper', mail: 'grace@example.com' },
    ])
    for (const value of ['*)(uid=*', "' or '1'='1", 'grace@example.com)(objectClass=*', '\\', '%', '_']) {
      expect((await put(alan, '/ops/search', search(value))).json, value).toEqual([])
    }
    expect((await put(alan, '/ops/search', search('*'))).json.length).toBeGreaterThanOrEqual(3)
    expect((await put(alan, '/ops/search', { ...search('x'), base: 'o=Tremolo' })).status).toBe(400)
    const user = `/ops/user?dn=${encodeURIComponent(found.json[0].dn)}`
    const shown = (await alan.get(user)).json
    expect(shown).toMatchObject({
      uid: 'grace',
      canEditUser: true,
      metaData: { displayName: { displayName: 'Name' } },
      groups: expect.arrayContaining(['managers']),
    })
    const group = encodeURIComponent('cn=managers,ou=groups,ou=people,o=Tremolo')
    expect((await alan.get(`/ops/user?dn=${group}`)).status).toBe(404)
    const update = (values: Record<string, string>) => ({
      dn: shown.dn,
      reason: 'Married',
      attributes: Object.entries(values).map(([name, value]) => ({ name, values: [value], dataType: 'string' })),
    })
    for (const headers of foreign()) {
      const { status } = await alan.send('POST', '/ops/user', update({ displayName: 'Mallory' }), headers)
      expect([403, 415], JSON.stringify(headers)).toContain(status)
    }
    expect((await post(alan, '/ops/user', update({ mail: 'x@evil.test' }))).json).toEqual({
      errors: ['Mail cannot be changed'],
    })
    expect((await post(alan, '/ops/user', update({ displayName: 'Grace Murray' }))).json).toEqual({
      status: 'completed',
    })
    expect((await alan.get(user)).text).toContain('Grace Murray')
    const saved = await put(alan, '/ops/user', { displayName: { name: 'displayName', value: 'Mallory' } })
    expect([saved.status, saved.json.errors.length > 0]).toEqual([400, true])
    for (const answer of [
      await ada.get('/ops/config'),
      await ada.get(user),
      await put(ada, '/ops/search', search('*')),
      await post(ada, '/ops/user', update({ displayName: 'Mallory' })),
    ]) {
      expect([answer.status, answer.text.includes('Hopper')]).toEqual([403, false])
    }
    expect((await alan.get(user)).text).not.toContain('Mallory')
    const audit = await alan.get('/main/admin/audit?subject=grace')
    expect(audit.text).toContain('alan')
  })

  test('users set their own password, and other sites do not', async () => {
    const [ada, elsewhere] = [await logIn('ada'), await logIn('ada')]
    expect((await ada.get('/password/config')).json).toMatchObject({
      config: { frontPage: { title: 'New password' }, runSynchronously: true },
      homeURL: '/portal',
    })
    const password = 'countess 1852'
    const body = { password1: password, password2: password }
    for (const headers of foreign()) {
      const { status } = await ada.send('POST', '/password/submit', body, headers)
      expect([403, 415], JSON.stringify(headers)).toContain(status)
    }
    const weak = await post(ada, '/password/submit', { password1: 'no number here', password2: 'no number here' })
    expect([weak.status, weak.json.errors]).toEqual([500, ['The password needs a number']])
    const canSignIn = async (secret: string): Promise<boolean> =>
      (await new PlainBrowser(gateway.url).logIn('/main/user', 'ada', secret)).status === 303
    expect([await canSignIn(password), await canSignIn(demoPasswords.ada)]).toEqual([false, true])
    const set = await post(ada, '/password/submit', body)
    expect([set.status, set.json]).toEqual([200, { status: 'completed' }])
    expect([await canSignIn(password), await canSignIn(demoPasswords.ada)]).toEqual([true, false])
    expect([(await ada.get('/main/user')).status, (await elsewhere.get('/main/user')).status]).toEqual([200, 401])
    expect(gateway.output()).not.toContain(password)
  })
})

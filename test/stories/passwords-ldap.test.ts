import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway-process.ts'
import { addEntry } from '#testing/ldap-target.ts'
import { type MailServer, mailServer } from '#testing/mail-server.ts'
import { PlainBrowser } from '#testing/plain-browser.ts'
import { PortalPerson } from '#testing/portal-story.ts'
import { type Slapd, startSlapd } from '#testing/slapd.ts'
import { developmentLogin, staffPages, tokenMechanism } from '#testing/story-documents.ts'

const password = 'correct horse battery'
const another = 'another horse battery'

/** Users sign in by an insert on an LDAP server; a target on the same server writes. */
const configuration = (slapd: Slapd, mailPort: number): string => `
apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: staff }
spec:
  className: directory.Ldap
  suffix: ou=staff,o=Tremolo
  params:
    - { name: url, value: "${slapd.url}" }
    - { name: adminDN, value: "${slapd.adminDn}" }
    - { name: adminPasswd, value: "${slapd.adminPassword}" }
    - { name: searchBase, value: "${slapd.baseDn}" }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: staff }
spec:
  className: targets.Ldap
  params:
    - { name: url, value: "${slapd.url}" }
    - { name: adminDN, value: "${slapd.adminDn}" }
    - { name: adminPasswd, value: "${slapd.adminPassword}" }
    - { name: searchBase, value: "${slapd.peopleDn}" }
    - { name: objectClass, value: inetOrgPerson }
    - { name: dnPattern, value: "uid=\${uid},${slapd.peopleDn}" }
    - { name: default.cn, value: "\${uid}" }
    - { name: default.sn, value: "\${uid}" }
---
apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: { name: default }
spec:
  className: notifiers.Smtp
  params:
    - { name: host, value: 127.0.0.1 }
    - { name: port, value: "${mailPort}" }
    - { name: from, value: gatehouse@corp.test }
    - { name: security, value: none }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: login-form }
spec: { className: auth.FormLogin, uri: /auth/formLogin, init: {}, secretParams: [] }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: login }
spec:
  level: 10
  root: o=Tremolo
  authMechs: [{ name: login-form, required: required, params: { uidAttr: uid } }]
---
${tokenMechanism}
---
${developmentLogin}
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: sync-person }
spec:
  tasks:
    - { taskType: provision, sync: true, setPassword: true, target: staff, attributes: [mail] }
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: scim }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /scim
      authChain: development
      azRules: [{ scope: dn, constraint: "sub=idp,ou=api,o=Tremolo" }]
      filterChain:
        - className: filters.ScimGateway
          params: { lookupTarget: staff, workflowName: sync-person, mapping: scim, uidAttributeName: uid, lookupAttributeName: uid }
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: passwords }
spec:
  cookieConfig: { sessionCookieName: people, domain: "*", timeout: 900, secure: false, cookiesEnabled: true }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /account
      authChain: login
      azRules: [{ scope: dn, constraint: "ou=staff,o=Tremolo" }]
      filterChain:
        - { className: filters.Account, params: { stepUpChain: login, changePassword: "true", passwordTarget: staff } }
    - hosts: ["127.0.0.1"]
      uri: /password
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: filters.Passwords
          params: { publicURL: "#[GATEHOUSE_URL]/password", passwordTarget: staff }
---
${staffPages}
`

describe.skipIf(inject('slapd') === '')('passwords that users set themselves, on OpenLDAP', () => {
  let slapd: Slapd
  let gateway: GatewayProcess
  let mails: MailServer
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-passwords-ldap-'))

  beforeAll(async () => {
    slapd = await startSlapd()
    mails = await mailServer()
    const config = join(folder, 'config')
    mkdirSync(config)
    writeFileSync(join(config, 'passwords.yaml'), configuration(slapd, mails.port))
    for (const login of ['rosa', 'vera', 'nora']) await add(login, slapd.peopleDn)
    // In another branch than the target's, where no account has this login.
    await addEntry(slapd, `ou=contractors,${slapd.baseDn}`, {
      objectClass: ['organizationalUnit'],
      ou: ['contractors'],
    })
    await add('carl', `ou=contractors,${slapd.baseDn}`)
    gateway = await startGatewayProcess({ config, dataFolder: join(folder, 'data') })
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    await mails?.close()
    await slapd?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const add = (login: string, branch: string) =>
    addEntry(slapd, `uid=${login},${branch}`, {
      objectClass: ['inetOrgPerson'],
      uid: [login],
      cn: [login],
      sn: [login],
      mail: [`${login}@corp.test`],
      userPassword: [password],
    })

  async function signedIn(login: string): Promise<PortalPerson> {
    const browser = new PlainBrowser(gateway.url)
    expect((await browser.logIn('/staff', login, password)).status).toBe(303)
    return new PortalPerson(gateway.url, browser)
  }
  const canSignIn = async (login: string, secret: string): Promise<boolean> =>
    (await new PlainBrowser(gateway.url).logIn('/staff', login, secret)).status === 303
  const statusOf = async (person: PortalPerson): Promise<number> => (await person.get('/account')).status
  const change = (person: PortalPerson, currentPassword: string) =>
    person.send('POST', '/account/password', { currentPassword, newPassword: another })

  test('change: the target writes what the insert checks', async () => {
    const [here, elsewhere] = [await signedIn('rosa'), await signedIn('rosa')]
    expect((await change(here, 'wrong horse')).json).toMatchObject({ code: 'WRONG_PASSWORD' })
    expect((await change(here, password)).json).toEqual({ ended: 1 })
    expect([await statusOf(here), await statusOf(elsewhere)]).toEqual([200, 401])
    expect([await canSignIn('rosa', password), await canSignIn('rosa', another)]).toEqual([false, true])
  })

  test('change: a user who has no account at the target keeps the password and the sessions', async () => {
    const [carl, elsewhere] = [await signedIn('carl'), await signedIn('carl')]
    expect((await change(carl, password)).json).toMatchObject({ code: 'CONFLICT' })
    expect([await statusOf(elsewhere), await canSignIn('carl', password)]).toEqual([200, true])
  })

  test('reset: by a mail link, once', async () => {
    const nora = await signedIn('nora')
    const post = (path: string, body: unknown) =>
      fetch(`${gateway.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    expect((await post('/password', { user: 'nora' })).status).toBe(202)
    await until(async () => mails.mails.length > 0, 30_000)
    const token = /#([\w-]{43})\s/.exec(mails.mails[0]?.parts[0]?.body ?? '')?.[1]
    expect((await post('/password/set', { token, newPassword: another })).status).toBe(204)
    expect(await statusOf(nora)).toBe(401)
    expect([await canSignIn('nora', password), await canSignIn('nora', another)]).toEqual([false, true])
    expect((await post('/password/set', { token, newPassword: password })).status).toBe(404)
  })

  test('a password that SCIM sets ends the sessions of the entry on the same server', async () => {
    const [vera, carl] = [await signedIn('vera'), await signedIn('carl')]
    const bearer = `Bearer ${await gateway.token('--subject', 'idp')}`
    const headers = { authorization: bearer, 'content-type': 'application/scim+json' }
    const found = await fetch(`${gateway.url}/scim/Users?filter=userName%20eq%20%22vera%22`, { headers })
    const id = ((await found.json()) as { Resources: { id: string }[] }).Resources[0]?.id
    const body = JSON.stringify({
      schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
      Operations: [{ op: 'replace', path: 'password', value: another }],
    })
    const answer = await fetch(`${gateway.url}/scim/Users/${id}`, { method: 'PATCH', headers, body })
    expect([answer.status, answer.ok ? '' : await answer.text()]).toEqual([200, ''])
    expect([await statusOf(vera), await statusOf(carl)]).toEqual([401, 200])
    expect(await canSignIn('vera', another)).toBe(true)
  })
})

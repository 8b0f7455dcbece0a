import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'ldapts'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { passwordModifyOid } from '#protocols/ldap/ldap-server.ts'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { addEntry } from '#testing/ldap/ldap-target.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'
import { type MailServer, mailServer } from '#testing/servers/mail-server.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'
import { developmentLogin, staffPages, tokenMechanism } from '#testing/stories/story-documents.ts'

const password = 'correct horse battery'
const another = 'another horse battery'

/** Users sign in by an insert on an LDAP server; a target on the same server writes. */
const configuration = (slapd: Slapd, url: string, mailPort: number): string => `
apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: staff }
spec:
  className: directory.Ldap
  suffix: ou=staff,o=Tremolo
  params:
    - { name: url, value: "${url}" }
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
    - { name: url, value: "${url}" }
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

/** Forwards everything, except what a test withholds once: a password on its way to the server, or the answer to it. */
async function passwordProxy(slapd: Slapd) {
  const { port } = new URL(slapd.url)
  const state = { withhold: undefined as 'request' | 'answer' | undefined, hasSeen: false }
  const server = createServer((client) => {
    const upstream = connect(Number(port), '127.0.0.1')
    for (const socket of [client, upstream]) socket.on('error', () => client.destroy() && upstream.destroy())
    let isSilent = false
    client.on('data', (data) => {
      if (state.withhold !== undefined && data.includes(passwordModifyOid)) {
        isSilent = true
        if (state.withhold === 'answer') upstream.write(data)
        state.hasSeen = true
        state.withhold = undefined
      } else if (!isSilent) upstream.write(data)
    })
    upstream.on('data', (data) => void (isSilent || client.write(data)))
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port: own } = server.address() as AddressInfo
  return { state, url: `ldap://127.0.0.1:${own}`, close: () => server.close() }
}

describe.skipIf(inject('slapd') === '')('passwords that users set themselves, on OpenLDAP', () => {
  let slapd: Slapd
  let gateway: GatewayProcess
  let mails: MailServer
  let proxy: Awaited<ReturnType<typeof passwordProxy>>
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-passwords-ldap-'))
  const config = join(folder, 'config')

  beforeAll(async () => {
    slapd = await startSlapd()
    mails = await mailServer()
    proxy = await passwordProxy(slapd)
    mkdirSync(config)
    writeFileSync(join(config, 'passwords.yaml'), configuration(slapd, proxy.url, mails.port))
    for (const login of ['rosa', 'vera', 'nora', 'mira', 'nils']) await add(login, slapd.peopleDn)
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
    proxy?.close()
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

  test('change: the target writes the password that the insert checks', async () => {
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

  const post = (path: string, body: unknown) =>
    fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const linkOf = async (login: string): Promise<string | undefined> => {
    expect((await post('/password', { user: login })).status).toBe(202)
    const ofUser = () => mails.mails.find(({ to }) => to.includes(`${login}@corp.test`))
    await until(async () => ofUser() !== undefined, 30_000)
    return /#([\w-]{43})\s/.exec(ofUser()?.parts[0]?.body ?? '')?.[1]
  }

  test('reset: by a mail link, once', async () => {
    const nora = await signedIn('nora')
    const token = await linkOf('nora')
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

  /** Kills the gateway while the server has, or lacks, the password, and the gateway does not know. */
  async function killDuring(withheld: 'request' | 'answer', write: () => Promise<unknown>): Promise<void> {
    Object.assign(proxy.state, { withhold: withheld, hasSeen: false })
    const lost = write().then(
      () => 'answered',
      () => 'lost',
    )
    await until(async () => proxy.state.hasSeen, 30_000)
    if (withheld === 'answer') await until(() => binds('nils', another), 30_000)
    // Registered before the kill: the event may come before the connection is lost.
    const exited = once(gateway.process, 'exit')
    gateway.process.kill('SIGKILL')
    expect(await lost).toBe('lost')
    await exited
    const port = Number(new URL(gateway.url).port)
    gateway = await startGatewayProcess({ config, dataFolder: join(folder, 'data'), port })
  }
  async function binds(login: string, secret: string): Promise<boolean> {
    const client = new Client({ url: slapd.url })
    try {
      return await client.bind(`uid=${login},${slapd.peopleDn}`, secret).then(
        () => true,
        () => false,
      )
    } finally {
      await client.unbind()
    }
  }
  const audited = async (login: string): Promise<string> => {
    return await commandOutput('audit', 'tail', '--subject', login, '--data', join(folder, 'data'))
  }

  test('killed before the password is written: the old one stays, and the link can be used', async () => {
    const mira = await signedIn('mira')
    const token = await linkOf('mira')
    await killDuring('request', () => post('/password/set', { token, newPassword: another }))
    expect([await binds('mira', password), await binds('mira', another)]).toEqual([true, false])
    // No one knows that it was not written, so the session ended.
    expect(await statusOf(mira)).toBe(401)
    expect(await audited('mira')).toContain('outcome unknown')
    expect((await post('/password/set', { token, newPassword: another })).status).toBe(204)
    expect(await canSignIn('mira', another)).toBe(true)
  })

  test('killed after the password is written: other sessions and links end at the next start', async () => {
    const [here, elsewhere] = [await signedIn('nils'), await signedIn('nils')]
    const token = await linkOf('nils')
    await killDuring('answer', () => change(here, password))
    expect([await statusOf(here), await statusOf(elsewhere)]).toEqual([200, 401])
    expect([await canSignIn('nils', password), await canSignIn('nils', another)]).toEqual([false, true])
    const audit = await audited('nils')
    expect([audit.includes('outcome unknown'), audit.includes('password changed')]).toEqual([true, true])
    expect((await post('/password/set', { token, newPassword: 'third horse battery' })).status).toBe(404)
  })
})

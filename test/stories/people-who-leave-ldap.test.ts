import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Attribute, Change } from 'ldapts'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { commandOutput } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { addEntry, asAdmin } from '#testing/ldap/ldap-target.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'
import { staffPages } from '#testing/stories/story-documents.ts'

const password = 'correct horse battery'
const graceSeconds = 12

const configuration = (slapd: Slapd): string => `
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
  authMechs:
    - name: login-form
      required: required
      params: { uidAttr: "(&(uid=\${user})(employeeType=staff))", uidIsFilter: "true" }
---
${staffPages}
`

describe.skipIf(inject('slapd') === '')('users who leave an OpenLDAP server', () => {
  let slapd: Slapd
  let gateway: GatewayProcess
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-leaving-ldap-'))
  const dataFolder = join(folder, 'data')

  beforeAll(async () => {
    slapd = await startSlapd()
    await addEntry(slapd, `cn=crew,${slapd.groupsDn}`, {
      objectClass: ['groupOfNames'],
      cn: ['crew'],
      member: [slapd.adminDn],
    })
    const config = join(folder, 'config')
    mkdirSync(config)
    writeFileSync(join(config, 'pages.yaml'), configuration(slapd))
    const args = ['--person-check-seconds', '1', '--person-grace-seconds', String(graceSeconds)]
    gateway = await startGatewayProcess({ config, dataFolder, args })
  })
  afterAll(async () => {
    await gateway?.stop()
    await slapd?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const nameOf = (login: string): string => `uid=${login},${slapd.peopleDn}`
  const add = (login: string) =>
    addEntry(slapd, nameOf(login), {
      objectClass: ['inetOrgPerson'],
      uid: [login],
      cn: [login],
      sn: [login],
      employeeType: ['staff'],
      userPassword: [password],
    })
  const remove = (login: string) => asAdmin(slapd, (client) => client.del(nameOf(login)))
  const change = (dn: string, operation: 'add' | 'delete' | 'replace', type: string, ...values: string[]) =>
    asAdmin(slapd, (client) =>
      client.modify(dn, [new Change({ operation, modification: new Attribute({ type, values }) })]),
    )

  const logIn = async (browser: PlainBrowser, login: string): Promise<number> =>
    (await browser.logIn('/staff', login, password)).status

  /** A new user who is logged in, in one browser or in several. */
  async function loggedIn(login: string, browsers = 1) {
    await add(login)
    const status: ((path?: string) => Promise<number>)[] = []
    for (let i = 0; i < browsers; i++) {
      const browser = new PlainBrowser(gateway.url)
      expect(await logIn(browser, login)).toBe(303)
      const api = { accept: 'application/json', 'sec-fetch-mode': 'cors' }
      status.push(async (path = '/staff') => (await browser.get(path, api)).status)
    }
    const [own = async () => 0, other = own] = status
    expect([await own(), await other()]).toEqual([200, 200])
    return { status: own, elsewhere: other }
  }

  /** Repeats the request until it gets that answer, which is soon: the directory is read again after a second. */
  const comesTo = (wanted: number, status: () => Promise<number>, millis = 10_000) =>
    until(async () => (await status()) === wanted, millis)

  async function audited(login: string): Promise<string> {
    return await commandOutput('audit', 'tail', '--data', dataFolder, '--subject', login)
  }

  test('a deleted user is logged out in all browsers, and a new user with the same name does not inherit the sessions', async () => {
    const { status, elsewhere } = await loggedIn('ada', 2)
    await remove('ada')
    await comesTo(401, status)
    expect(await elsewhere()).toBe(401)
    expect(await audited('ada')).toMatch(/the directory has no active user of that name/)
    const { status: again } = await loggedIn('ada')
    expect([await status(), await elsewhere()]).toEqual([401, 401])
    await remove('ada')
    await add('ada')
    await comesTo(401, again)
    expect(await audited('ada')).toMatch(/the name is another’s now/)
  })

  test('a user locked by an administrator is logged out and cannot log in; a lock after wrong passwords ends nothing', async () => {
    const { status } = await loggedIn('grace')
    const lock = (time: string) => change(nameOf('grace'), 'replace', 'pwdAccountLockedTime', time)
    await lock('20300101120000Z')
    // Longer than the directory's answer is cached.
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(await status()).toBe(200)
    await lock('000001010000Z')
    await comesTo(401, status)
    expect(await audited('grace')).toMatch(/switched off in the directory/)
    expect(await logIn(new PlainBrowser(gateway.url), 'grace')).toBe(401)
    await change(nameOf('grace'), 'delete', 'pwdAccountLockedTime')
    expect(await logIn(new PlainBrowser(gateway.url), 'grace')).toBe(303)
  })

  test('a user whom the login filter no longer finds is logged out', async () => {
    const { status } = await loggedIn('alan')
    await change(nameOf('alan'), 'replace', 'employeeType', 'guest')
    await comesTo(401, status)
  })

  test('a user who leaves a group loses its access, and nothing else', async () => {
    const crew = `cn=crew,${slapd.groupsDn}`
    const { status } = await loggedIn('barbara')
    await change(crew, 'add', 'member', nameOf('barbara'))
    expect(await status('/crew')).toBe(200)
    await change(crew, 'delete', 'member', nameOf('barbara'))
    await comesTo(403, () => status('/crew'))
    expect(await status()).toBe(200)
  })

  test('a server that is down logs no one out: requests wait, then get an error, and continue when it is back', async () => {
    const { status } = await loggedIn('edsger')
    await slapd.kill()
    const failed = /the directory does not answer for a signed-in user/
    await until(async () => {
      expect(await status()).toBe(200)
      return failed.test(gateway.output())
    }, 1000 * graceSeconds)
    expect(await status()).toBe(200)
    await comesTo(503, status, 3000 * graceSeconds)
    await slapd.restart()
    await comesTo(200, status, 30_000)
    expect(await audited('edsger')).not.toMatch(/directory/)
  })
})

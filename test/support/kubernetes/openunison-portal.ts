import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { expect } from 'vitest'
import { stringify } from 'yaml'
import { type GatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import type { DrivenCharts } from '#testing/kubernetes/driven-charts.ts'
import type { KubeClient } from '#testing/kubernetes/kube-client.ts'
import { addEntry } from '#testing/ldap/ldap-target.ts'
import type { Slapd } from '#testing/ldap/slapd.ts'
import type { FakeGitHub, FakeGitHubAccount } from '#testing/login/fake-github.ts'
import type { OutsideIssuer } from '#testing/login/outside-issuer.ts'

/** The meaning of "within seconds" on a busy machine. */
export const soon = 120_000
export const password = 'correct horse battery'
export const org = '0b1f6a52-54d1-4d0e-9a63-1f2f6a1c7c11'

export const object = (kind: string, name: string, spec: object, version = 'v1') => ({
  apiVersion: `openunison.tremolo.io/${version}`,
  kind,
  metadata: { name },
  spec,
})
export const pairs = (params: Readonly<Record<string, string>>) =>
  Object.entries(params).map(([name, value]) => ({ name, value }))

/** A signed-in browser that calls the APIs as the pages do. */
export class SignedIn {
  readonly #url: string
  readonly #browser: PlainBrowser

  private constructor(url: string, browser: PlainBrowser) {
    this.#url = url
    this.#browser = browser
  }

  static async as(login: string, { url }: GatewayProcess): Promise<SignedIn> {
    const browser = new PlainBrowser(url)
    const done = await browser.logIn('/scale/main/user', login, password)
    expect([done.status, done.location], done.body).toEqual([303, '/scale/main/user'])
    return new SignedIn(url, browser)
  }

  /** By a login at the issuer. */
  static async at(issuer: OutsideIssuer, login: string, { url }: GatewayProcess): Promise<SignedIn> {
    const [here, there] = [new PlainBrowser(url), new PlainBrowser(issuer.url)]
    const begun = await here.get('/scale/main/user')
    const page = await there.get(begun.location)
    const resumed = await there.get(`${page.location}?as=${login}`)
    const done = await here.get((await there.get(resumed.location)).location)
    expect([done.status, done.location], done.body).toEqual([303, '/scale/main/user'])
    return new SignedIn(url, here)
  }

  /** By a login at GitHub. */
  static async atGitHub(github: FakeGitHub, account: FakeGitHubAccount, { url }: GatewayProcess): Promise<SignedIn> {
    const browser = new PlainBrowser(url)
    const begun = await browser.get('/scale/main/user')
    const done = await browser.get(github.consent(new URL(begun.location), account).toString())
    expect([done.status, done.location], done.body).toEqual([303, '/scale/main/user'])
    return new SignedIn(url, browser)
  }

  async call(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> {
    const cookie = Array.from(this.#browser.jar, ([name, value]) => `${name}=${value}`).join('; ')
    const headers = {
      ...{ cookie, accept: 'application/json', origin: this.#url },
      ...{ 'content-type': 'application/json', 'x-requested-with': 'XMLHttpRequest' },
    }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await fetch(`${this.#url}${path}`, { method, headers, redirect: 'manual', ...sent })
    const text = await answer.text()
    return { status: answer.status, body: (text === '' ? undefined : JSON.parse(text)) as unknown }
  }

  /** What works after the login, as docs/openunison.md says it: the portal's lists, and the tokens for kubectl. */
  async driven(): Promise<Omit<DrivenCharts, 'namespaces'>> {
    const portal = await Promise.all(
      ['user', 'orgs', `urls/org/${org}`].map((path) => this.call('GET', `/scale/main/${path}`)),
    )
    expect(portal.map(({ status }) => status)).toEqual([200, 200, 200])
    const { status, body } = await this.call('GET', '/k8stoken/token/user')
    expect(status).toBe(200)
    const { token, claims } = body as { token: Record<string, string>; claims: { iss: string; sub: string } }
    // As kubectl and its plug-ins ask for the next token.
    const form = { grant_type: 'refresh_token', client_id: 'kubernetes', refresh_token: token['refresh_token'] ?? '' }
    const answer = await fetch(`${claims.iss}/token`, { method: 'POST', body: new URLSearchParams(form) })
    const { id_token = '', refresh_token = '' } = (await answer.json()) as Record<string, string>
    expect([answer.status, refresh_token === '']).toEqual([200, false])
    expect([id_token === token['id_token'], decodeJwt(id_token).sub]).toEqual([false, claims.sub])
    return {
      login: 'works',
      portal: 'works',
      kubectl: 'tokens, refreshed',
      dashboards: 'not served: [instead](guides/dashboards.md)',
    }
  }

  async groups(): Promise<string[]> {
    const { body } = await this.call('GET', '/scale/main/user')
    return (body as { groups: string[] }).groups
  }

  /** Waits for the approval of a run of this workflow, and approves it. */
  async approve(workflow: string): Promise<void> {
    let id = ''
    await until(async () => {
      const { body } = await this.call('GET', '/scale/main/approvals')
      const { approvals } = body as { approvals: { approval: string; wfName: string }[] }
      id = approvals.find(({ wfName }) => wfName === workflow)?.approval ?? ''
      return id !== ''
    }, soon)
    const decision = { approved: true, reason: 'Yes' }
    expect(await this.call('PUT', `/scale/main/approvals/${id}`, decision)).toMatchObject({ status: 200 })
  }
}

/** What an operator gives the charts as values: the host, the namespace, and here another cluster than the gateway's. */
export function valueObjects({ connection }: KubeClient, values: Readonly<Record<string, string>>): object[] {
  const { url, ca, adminToken } = connection
  const kubernetes = { url, token: adminToken, certificate: Buffer.from(ca).toString('base64'), useToken: 'true' }
  const hosts = [{ names: [{ env_var: 'OU_HOST', name: '127.0.0.1' }] }]
  return [
    object('OpenUnison', 'orchestra', { hosts, non_secret_data: pairs(values) }, 'v6'),
    object('Target', 'k8s', {
      className: 'com.tremolosecurity.unison.openshiftv3.OpenShiftTarget',
      params: pairs(kubernetes),
    }),
  ]
}

/** People with the usual password, as members of groups. */
export async function addPeople(slapd: Slapd, memberOf: Readonly<Record<string, readonly string[]>>): Promise<void> {
  for (const [login, groups] of Object.entries(memberOf)) {
    const dn = `uid=${login},${slapd.peopleDn}`
    await addEntry(slapd, dn, {
      objectClass: ['inetOrgPerson'],
      ...{ cn: [login], sn: ['Example'], givenName: [login], mail: [`${login}@acme.test`] },
      userPassword: [password],
    })
    for (const name of groups) {
      await addEntry(slapd, `cn=${name},${slapd.groupsDn}`, { objectClass: ['groupOfNames'], member: [dn] })
    }
  }
}

/** Where the charts' accounts are, as User objects. */
const userObjects = {
  params: { target: 'accounts' },
  mapping: { mail: 'email', givenName: 'first_name', sn: 'last_name' },
}

/** The directory in the place of the ConfigMap that the charts make of their values. */
export function directoryObjects(
  slapd: Pick<Slapd, 'url' | 'adminDn' | 'baseDn'>,
  accounts: { readonly params: Readonly<Record<string, string>>; readonly mapping: object } = userObjects,
): object[] {
  const bindPassword = {
    name: 'adminPasswd',
    secretName: 'orchestra-secrets-source',
    secretKey: 'AD_BIND_PASSWORD',
  }
  return [
    object('DirectoryInsert', 'activedirectory', {
      className: 'directory.Ldap',
      suffix: 'ou=activedirectory,o=Data',
      params: pairs({ url: slapd.url, adminDN: slapd.adminDn, searchBase: slapd.baseDn }),
      secretParams: [bindPassword],
    }),
    object('DirectoryInsert', 'shadow', {
      className: 'directory.Target',
      suffix: 'ou=shadow,o=Tremolo',
      params: pairs(accounts.params),
      mapping: accounts.mapping,
    }),
  ]
}

/** Copies the sets as they are, and adds what the operator gives. */
export function writeConfig(folder: string, sets: readonly string[], objects: readonly object[]): void {
  mkdirSync(folder)
  for (const name of sets) cpSync(`test/openunison-portal/${name}.yaml`, join(folder, `${name}.yaml`))
  writeFileSync(join(folder, 'values.yaml'), objects.map((one) => stringify(one)).join('---\n'))
}

export function writeSecret(folder: string, name: string, key: string, text: string): void {
  mkdirSync(join(folder, 'secrets', name), { recursive: true })
  writeFileSync(join(folder, 'secrets', name, key), text, { mode: 0o600 })
}

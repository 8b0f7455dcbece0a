import { randomUUID } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { defineAll } from '#testing/kubernetes/custom-resources.ts'
import type { KubeClient } from '#testing/kubernetes/kube-client.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { addEntry } from '#testing/ldap/ldap-target.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'
import { type OutsideIssuer, startOutsideIssuer } from '#testing/login/outside-issuer.ts'

/** The meaning of "within seconds" on a busy machine. */
const soon = 120_000
const password = 'correct horse battery'
const org = '0b1f6a52-54d1-4d0e-9a63-1f2f6a1c7c11'

const object = (kind: string, name: string, spec: object, version = 'v1') => ({
  apiVersion: `openunison.tremolo.io/${version}`,
  kind,
  metadata: { name },
  spec,
})
const pairs = (params: Readonly<Record<string, string>>) =>
  Object.entries(params).map(([name, value]) => ({ name, value }))

/** A signed-in browser that calls the APIs as the pages do. */
class SignedIn {
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
function valueObjects({ connection }: KubeClient, values: Readonly<Record<string, string>>): object[] {
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

/** Copies the sets as they are, and adds what the operator gives. */
function writeConfig(folder: string, sets: readonly string[], objects: readonly object[]): void {
  mkdirSync(folder)
  for (const name of sets) cpSync(`test/openunison-portal/${name}.yaml`, join(folder, `${name}.yaml`))
  writeFileSync(join(folder, 'values.yaml'), objects.map((one) => stringify(one)).join('---\n'))
}

function writeSecret(folder: string, name: string, key: string, text: string): void {
  mkdirSync(join(folder, 'secrets', name), { recursive: true })
  writeFileSync(join(folder, 'secrets', name, key), text, { mode: 0o600 })
}

onKubernetes('a portal in the form of OpenUnison’s charts, with a login at a directory', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openunison-portal-'))
  const config = join(folder, 'config')
  const nameSpace = `team-${randomUUID().slice(0, 13)}`
  let own = ''
  let gateway: GatewayProcess
  let slapd: Slapd

  /** The directory in the place of the ConfigMap that the charts make of their values. */
  function directoryObjects(): object[] {
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
        params: pairs({ target: 'accounts' }),
        mapping: { mail: 'email', givenName: 'first_name', sn: 'last_name' },
      }),
    ]
  }

  async function addPeople(): Promise<void> {
    const people: Record<string, string[]> = {
      ada: ['k8s-cluster-k8s-administrators'],
      grace: ['administrators'],
    }
    for (const [login, groups] of Object.entries(people)) {
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

  beforeAll(async () => {
    await defineAll(cluster)
    own = await cluster.namespace()
    slapd = await startSlapd()
    await addPeople()
    const sets = ['portal', 'login-active-directory', 'namespaces', 'privileged-access']
    writeConfig(config, sets, [...valueObjects(cluster, { K8S_OPENUNISON_NS: own }), ...directoryObjects()])
    writeSecret(config, 'orchestra-secrets-source', 'AD_BIND_PASSWORD', slapd.adminPassword)
    gateway = await startGatewayProcess({ config, dataFolder: join(folder, 'data') })
  })
  afterAll(async () => {
    await gateway?.stop()
    await slapd?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('a user signs in, finds the badge and requests; the approver approves; the namespace has its RoleBindings, and the user the group', {
    timeout: 600_000,
  }, async () => {
    // The first login creates the account by which the approver is found.
    const grace = await SignedIn.as('grace', gateway)
    expect(await grace.groups()).toEqual(['administrators'])
    const ada = await SignedIn.as('ada', gateway)
    expect(await ada.groups()).toEqual(['k8s-cluster-k8s-administrators'])
    expect(await ada.call('GET', `/scale/main/urls/org/${org}`)).toMatchObject({
      status: 200,
      body: expect.arrayContaining([expect.objectContaining({ label: 'New namespace' })]),
    })
    expect(await ada.call('GET', '/newproject/register/config')).toMatchObject({
      status: 200,
      body: { attributes: expect.arrayContaining([expect.objectContaining({ name: 'cluster' })]) },
    })
    const register = (name: string) =>
      ada.call('POST', '/newproject/register/submit', { attributes: { cluster: 'k8s', nameSpace: name } })
    expect(await register('default')).toEqual({ status: 500, body: { errors: ['This namespace exists'] } })
    expect(await register(nameSpace)).toMatchObject({ status: 200 })
    expect(await ada.call('GET', '/scale/main/approvals')).toMatchObject({ body: { approvals: [] } })

    const namespacePath = `/api/v1/namespaces/${nameSpace}`
    expect((await cluster.call('GET', namespacePath)).status).toBe(404)
    await grace.approve('new-namespace')

    const group = (role: string) => `k8s-namespace-${role}-k8s-${nameSpace}-internal`
    const bindings = `/apis/rbac.authorization.k8s.io/v1/namespaces/${nameSpace}/rolebindings`
    await until(async () => (await cluster.call('GET', `${bindings}/viewers`)).status === 200, soon)
    expect(await cluster.must('GET', namespacePath)).toMatchObject({
      metadata: { labels: { 'acme.test/requests': 'enabled' } },
    })
    for (const [name = '', role] of [
      ['administrators', 'admin'],
      ['viewers', 'view'],
    ]) {
      expect(await cluster.must('GET', `${bindings}/${name}`)).toMatchObject({
        subjects: [{ kind: 'Group', name: group(name) }],
        roleRef: { kind: 'ClusterRole', name: role },
      })
    }
    await until(
      async () => (await (await SignedIn.as('ada', gateway)).groups()).includes(group('administrators')),
      soon,
    )
    const again = await SignedIn.as('ada', gateway)
    expect((await again.groups()).sort()).toEqual(['k8s-cluster-k8s-administrators', group('administrators')])
    expect(await register(nameSpace)).toEqual({ status: 500, body: { errors: ['This namespace exists'] } })
  })

  test('more rights come with an approval, and end when the job finds that they expired', {
    timeout: 600_000,
  }, async () => {
    const privileged = 'k8s-cluster-k8s-privileged-internal'
    const groupsOf = async (login: string): Promise<string[]> => {
      const path = `/apis/openunison.tremolo.io/v1/namespaces/${own}/users/${login}`
      return (await cluster.must<{ spec: { groups: string[] } }>('GET', path)).spec.groups
    }
    const [ada, grace] = [await SignedIn.as('ada', gateway), await SignedIn.as('grace', gateway)]
    const request = { attributes: { cluster: 'k8s', incident: 'INC42' } }
    expect((await grace.call('POST', '/priv-access/register/submit', request)).status).not.toBe(200)
    expect(await ada.call('POST', '/priv-access/register/submit', request)).toMatchObject({ status: 200 })
    expect(await groupsOf('ada')).not.toContain(privileged)
    await grace.approve('request-privilege')
    await until(async () => (await groupsOf('ada')).includes(privileged), soon)
    expect(await (await SignedIn.as('ada', gateway)).groups()).toContain(privileged)

    const sessions = `/api/v1/namespaces/${own}/secrets`
    const list = () =>
      cluster.must<{ items: { metadata: { name: string }; data: { session: string } }[] }>(
        'GET',
        `${sessions}?labelSelector=acme.test%2Fusage%3Dprivileged-session`,
      )
    const [session] = (await list()).items
    const data = JSON.parse(Buffer.from(session?.data.session ?? '', 'base64').toString()) as { expires: string }
    expect(data).toMatchObject({ user: 'ada', cluster: 'k8s', incident: 'INC42' })
    // An hour passes.
    const expired = { ...data, expires: new Date(Date.now() - 1000).toISOString() }
    const patch = { data: { session: Buffer.from(JSON.stringify(expired)).toString('base64') } }
    const path = `${sessions}/${session?.metadata.name}`
    const changed = await cluster.call('PATCH', path, patch, undefined, 'application/merge-patch+json')
    expect(changed.status).toBe(200)

    await until(async () => (await list()).items.length === 0, soon)
    expect(await groupsOf('ada')).not.toContain(privileged)
    const after = await (await SignedIn.as('ada', gateway)).groups()
    expect(after).not.toContain(privileged)
    expect(after).toContain('k8s-cluster-k8s-administrators')
  })
})

onKubernetes('a portal in the form of OpenUnison’s charts, with a login at an identity provider', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openunison-provider-'))
  const config = join(folder, 'config')
  const secret = 'a secret of the client'
  let own = ''
  let gateway: GatewayProcess
  let issuer: OutsideIssuer

  beforeAll(async () => {
    await defineAll(cluster)
    own = await cluster.namespace()
    const port = await freePort()
    const values = { K8S_OPENUNISON_NS: own, IDP_ISSUER: `http://127.0.0.1:${port}` }
    writeConfig(config, ['portal', 'login-openid-connect'], valueObjects(cluster, values))
    writeSecret(config, 'acme-secrets', 'OIDC_CLIENT_SECRET', secret)
    gateway = await startGatewayProcess({ config, dataFolder: join(folder, 'data') })
    issuer = await startOutsideIssuer(port, [
      {
        client_id: 'acme-portal',
        client_secret: secret,
        token_endpoint_auth_method: 'client_secret_post',
        redirect_uris: [`${gateway.url}/auth/oidc`],
      },
    ])
  })
  afterAll(async () => {
    await gateway?.stop()
    await issuer?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('a user signs in there and has an account, the portal and a token here', { timeout: 300_000 }, async () => {
    const ada = await SignedIn.at(issuer, 'ada', gateway)
    const path = `/apis/openunison.tremolo.io/v1/namespaces/${own}/users/ada`
    expect(await cluster.must('GET', path)).toMatchObject({ spec: { sub: 'ada', email: 'ada@corp.test' } })
    expect(await ada.call('GET', '/scale/main/user')).toMatchObject({
      status: 200,
      body: { dn: 'uid=ada,ou=accounts,o=Tremolo' },
    })
    expect(await ada.call('GET', `/scale/main/urls/org/${org}`)).toMatchObject({
      body: [expect.objectContaining({ label: 'Tokens' })],
    })
    expect(await ada.call('GET', '/k8stoken/token/user')).toMatchObject({ status: 200 })
  })
})

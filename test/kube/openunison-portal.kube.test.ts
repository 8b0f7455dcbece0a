import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { defineAll } from '#testing/kubernetes/custom-resources.ts'
import { expectDocumented } from '#testing/kubernetes/driven-charts.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import {
  addPeople,
  directoryObjects,
  org,
  SignedIn,
  soon,
  valueObjects,
  writeConfig,
  writeSecret,
} from '#testing/kubernetes/openunison-portal.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'
import { type OutsideIssuer, startOutsideIssuer } from '#testing/login/outside-issuer.ts'

onKubernetes('a portal in the form of OpenUnison’s charts, with a login at a directory', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openunison-portal-'))
  const config = join(folder, 'config')
  const nameSpace = `team-${randomUUID().slice(0, 13)}`
  let own = ''
  let gateway: GatewayProcess
  let slapd: Slapd

  beforeAll(async () => {
    await defineAll(cluster)
    own = await cluster.namespace()
    slapd = await startSlapd()
    await addPeople(slapd, { ada: ['k8s-cluster-k8s-administrators'], grace: ['administrators'] })
    const sets = ['portal', 'login-active-directory', 'namespaces', 'privileged-access']
    writeConfig(config, sets, [...valueObjects(cluster, { K8S_OPENUNISON_NS: own }), ...directoryObjects(slapd)])
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
    const charts = ['portal', 'login-active-directory']
    // The test of tokens for kubectl says what becomes of them.
    const { kubectl: _, ...driven } = await ada.driven()
    expectDocumented('Login portal, Active Directory', charts, { ...driven, namespaces: '–' })
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

  test('more rights come with an approval, are kept encrypted, and end by a job when the password was set again', {
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
    // Only the gateway reads what the session is about.
    const stored = Buffer.from(session?.data.session ?? '', 'base64').toString()
    expect(stored).toMatch(/^\{"msg":"g1\.[\w.-]+"\}$/)
    // Her password is set again, which Active Directory counts in 100 nanoseconds since 1601.
    const passwordSet = String((BigInt(Date.now()) + 11_644_473_600_000n) * 10_000n)
    const patch = { metadata: { annotations: { 'acme.test/password-set': passwordSet } } }
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
    const charts = ['portal', 'login-openid-connect']
    expectDocumented('Login portal, OpenID Connect', charts, { ...(await ada.driven()), namespaces: '–' })
  })
})

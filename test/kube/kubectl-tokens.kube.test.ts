import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { MovedClock } from '#testing/gateway/moved-clock.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { defineAll } from '#testing/kubernetes/custom-resources.ts'
import { expectDocumented } from '#testing/kubernetes/driven-charts.ts'
import { type KubeApiServer, startKubeApiServer } from '#testing/kubernetes/kube-api-server.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import {
  directoryObjects,
  password,
  valueObjects,
  writeConfig,
  writeSecret,
} from '#testing/kubernetes/openunison-portal.ts'
import { addEntry } from '#testing/ldap/ldap-target.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'

const group = 'k8s-cluster-k8s-administrators'
const [minute, hour] = [60_000, 3_600_000]

/** On its own API server, which has to trust the issuer of the portal. */
onKubernetes('kubectl with tokens of a portal in the form of OpenUnison’s charts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-kubectl-tokens-'))
  const config = join(folder, 'config')
  let server: KubeApiServer
  let slapd: Slapd
  let gateway: GatewayProcess
  /** Behind that of the API server by an hour, which passes in the test. */
  const clock = new MovedClock(folder, -hour)

  async function startServer(issuer: string): Promise<void> {
    const mapping = { username: { claim: 'sub', prefix: '' }, groups: { claim: 'groups', prefix: '' } }
    const authentication = {
      apiVersion: 'apiserver.config.k8s.io/v1beta1',
      kind: 'AuthenticationConfiguration',
      jwt: [
        {
          issuer: { url: issuer, audiences: ['kubernetes'], certificateAuthority: testServerCertificate },
          claimMappings: mapping,
        },
      ],
    }
    const file = join(folder, 'authentication.json')
    writeFileSync(file, JSON.stringify(authentication))
    server = await startKubeApiServer(await kubeBinaries(), [`--authentication-config=${file}`])
    await server.client.must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: 'administrators' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
    })
  }

  beforeAll(async () => {
    const port = await freePort()
    await startServer(`https://127.0.0.1:${port}/auth/idp/k8sidp`)
    await defineAll(server.client)
    const own = await server.client.namespace()
    slapd = await startSlapd()
    const dn = `uid=ada,${slapd.peopleDn}`
    await addEntry(slapd, dn, {
      objectClass: ['inetOrgPerson'],
      ...{ cn: ['ada'], sn: ['Example'], givenName: ['ada'], mail: ['ada@acme.test'], userPassword: [password] },
    })
    await addEntry(slapd, `cn=${group},${slapd.groupsDn}`, { objectClass: ['groupOfNames'], member: [dn] })
    const values = valueObjects(server.client, { K8S_OPENUNISON_NS: own })
    writeConfig(config, ['portal', 'login-active-directory'], [...values, ...directoryObjects(slapd)])
    writeSecret(config, 'orchestra-secrets-source', 'AD_BIND_PASSWORD', slapd.adminPassword)
    const authority = join(folder, 'authority.pem')
    writeFileSync(authority, testServerCertificate)
    const environment = { ...clock.environment, NODE_EXTRA_CA_CERTS: authority }
    gateway = await startGatewayProcess({ config, port, tls: true, environment })
  }, 600_000)
  afterAll(async () => {
    await gateway?.stop()
    await slapd?.stop()
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  }, 60_000)

  /** As kubectl sends it, for the client of the copied configuration. */
  async function refresh(refreshToken: string) {
    const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: 'kubernetes' }
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const options = { method: 'POST', headers, ca: testServerCertificate }
    const sent = request(`${gateway.url}/auth/idp/k8sidp/token`, options).end(new URLSearchParams(form).toString())
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return { status: response.statusCode, body: (await json(response)) as Record<string, string> }
  }

  /** What the API server answers to kubectl with the token. */
  const asKubectl = async (token: string) =>
    (await server.client.call('GET', '/api/v1/namespaces/default', undefined, token)).status

  test('an hour after the login, and long after the logout, the refreshed token is authorized; unused for too long, it has ended', {
    timeout: 900_000,
  }, async () => {
    const browser = new PlainBrowser(gateway.url)
    const loggedIn = await browser.logIn('/k8stoken/token/config', 'ada', password)
    expect([loggedIn.status, loggedIn.location], loggedIn.body).toEqual([303, '/k8stoken/token/config'])
    const headers = { accept: 'application/json', 'sec-fetch-mode': 'cors' }
    const { body } = await browser.get('/k8stoken/token/user', headers)
    const { token } = JSON.parse(body) as { token: Record<string, string> }
    await browser.get('/logout')
    let { refresh_token: refreshToken = '', id_token: idToken = '' } = token
    const first = idToken
    const next = async () => {
      const answer = await refresh(refreshToken)
      expect([answer.status, answer.body['error']]).toEqual([200, undefined])
      ;({ refresh_token: refreshToken = '', id_token: idToken = '' } = answer.body)
    }
    for (let behind = hour; behind > 0; behind -= 10 * minute) {
      await clock.move(-behind)
      await next()
    }
    await clock.move(0)
    // The API server looks for the keys of a new issuer every ten seconds.
    await until(async () => {
      await next()
      return (await asKubectl(idToken)) === 200
    }, 120_000)
    expect(await asKubectl(first)).toBe(401)

    await clock.move(16 * minute)
    expect(await refresh(refreshToken)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    const charts = ['portal', 'login-active-directory']
    expectDocumented('Login portal, Active Directory', charts, { kubectl: 'authorized an hour later' })
  })
})

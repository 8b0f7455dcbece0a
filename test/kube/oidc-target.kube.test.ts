import { randomUUID } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { stringify } from 'yaml'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { type KubeApiServer, startKubeApiServer } from '#testing/kubernetes/kube-api-server.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'

const group = 'openunison.tremolo.io'
const [user, audience] = ['gatehouse-control-plane', 'satellite']
/** The meaning of "within seconds" on a busy machine. */
const soon = 60_000

describe.skipIf(inject('kube') === undefined)('a cluster that trusts our issuer', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-oidc-target-'))
  const config = join(folder, 'config')
  let server: KubeApiServer
  let gateway: GatewayProcess

  const objects = (host: string, url: string): object[] => {
    const params = {
      url,
      certificate: Buffer.from(testServerCertificate).toString('base64'),
      useToken: 'true',
      tokenType: 'oidc',
      oidcIdp: 'satellite',
      oidcSub: user,
      oidcAudience: audience,
      oidcIssuerHost: host,
    }
    const template = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: '$nameSpace$' } }
    const tasks = [
      { taskType: 'addAttribute', name: 'nameSpace', value: 'made-by-token', remove: false, addToRequest: true },
      {
        taskType: 'customTask',
        className: 'com.tremolosecurity.provisioning.tasks.CreateK8sObject',
        params: { targetName: 'satellite', srcType: 'yaml', template: stringify(template) },
      },
    ]
    return [
      {
        apiVersion: `${group}/v1`,
        kind: 'Target',
        metadata: { name: 'satellite' },
        spec: {
          className: 'com.tremolosecurity.unison.openshiftv3.OpenShiftTarget',
          params: Object.entries(params).map(([name, value]) => ({ name, value })),
        },
      },
      {
        apiVersion: `${group}/v2`,
        kind: 'Application',
        metadata: { name: 'satellite-idp' },
        spec: {
          isApp: false,
          cookieConfig: { cookiesEnabled: true, sessionCookieName: 'satellite', domain: '*', timeout: 900 },
          urls: [
            {
              hosts: ['127.0.0.1'],
              uri: '/auth/idp/satellite',
              azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
              idp: {
                className: 'com.tremolosecurity.idp.providers.OpenIDConnectIdP',
                params: {},
                mappings: {
                  strict: true,
                  map: [{ targetAttributeName: 'sub', targetAttributeSource: 'uid', sourceType: 'user' }],
                },
                trusts: [],
              },
            },
          ],
        },
      },
      {
        apiVersion: `${group}/v1`,
        kind: 'Workflow',
        metadata: { name: 'new-namespace' },
        spec: { label: 'New', description: 'New', inList: true, orgId: 'root', tasks: stringify(tasks) },
      },
    ]
  }

  /** Another user each time: a second equal request of a user is the first one while that is open. */
  const requesters = ['ada', 'grace', 'linus', 'mary', 'joan'].values()

  async function requestNamespace(): Promise<void> {
    const authorization = `Bearer ${await gateway.token('--subject', requesters.next().value ?? 'ada')}`
    const body = JSON.stringify([{ uuid: randomUUID(), name: 'new-namespace', reason: 'A new team' }])
    const answer = await new Promise<{ status: number | undefined; content: string }>((resolve, reject) => {
      const headers = { authorization, 'content-type': 'application/json' }
      const options = { method: 'PUT', headers, ca: testServerCertificate, signal: AbortSignal.timeout(30_000) }
      const sent = request(`${gateway.url}/portal/main/workflows`, options, (response) => {
        text(response).then((content) => resolve({ status: response.statusCode, content }), reject)
      })
      sent.once('error', reject).end(body)
    })
    expect(answer).toMatchObject({ status: 200 })
  }

  beforeAll(async () => {
    const port = await freePort()
    const host = `127.0.0.1:${port}`
    const trust = {
      issuer: {
        url: `https://${host}/auth/idp/satellite`,
        audiences: [audience],
        certificateAuthority: testServerCertificate,
      },
      claimMappings: { username: { claim: 'sub', prefix: '' } },
    }
    const authentication = {
      apiVersion: 'apiserver.config.k8s.io/v1beta1',
      kind: 'AuthenticationConfiguration',
      jwt: [trust],
    }
    const file = join(folder, 'authentication.json')
    writeFileSync(file, JSON.stringify(authentication))
    server = await startKubeApiServer(await kubeBinaries(), [`--authentication-config=${file}`])
    await server.client.must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', {
      metadata: { name: 'namespaces' },
      rules: [{ apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'create'] }],
    })
    await server.client.must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: 'namespaces' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'namespaces' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    })
    cpSync('examples/portal-api', config, { recursive: true })
    const written = objects(host, server.url).map((object) => stringify(object))
    writeFileSync(join(config, 'satellite.yaml'), written.join('---\n'))
    const authority = join(folder, 'authority.pem')
    writeFileSync(authority, testServerCertificate)
    gateway = await startGatewayProcess({
      config,
      port,
      tls: true,
      environment: { NODE_EXTRA_CA_CERTS: authority },
    })
  }, 240_000)

  afterAll(async () => {
    await gateway?.stop()
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  }, 60_000)

  test('a workflow creates a namespace there with a token of the issuer', { timeout: 300_000 }, async () => {
    const path = '/api/v1/namespaces/made-by-token'
    const exists = async () => (await server.client.call('GET', path)).status === 200
    // The API server looks for the keys of a new issuer every ten seconds, and refuses its tokens before.
    await until(async () => {
      if (await exists()) return true
      await requestNamespace()
      return until(exists, 10_000).then(
        () => true,
        () => false,
      )
    }, 3 * soon)
    expect(await server.client.must('GET', path)).toMatchObject({ metadata: { name: 'made-by-token' } })
  })
})

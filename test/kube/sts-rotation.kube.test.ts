import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  type JSONWebKeySet,
  jwtVerify,
  SignJWT,
} from 'jose'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { keyIn, leastWaitSeconds, marginSeconds, signsUnseenSeconds, skewSeconds } from '#keys/key-ring.ts'
import type { Pod } from '#protocols/admission/pod.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { gatehouse } from '#testing/gateway/gateway-process.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { type KubeApiServer, startKubeApiServer } from '#testing/kubernetes/kube-api-server.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import { type AdmittedSidecar, runAdmittedSidecar } from '#testing/sts/admitted-sidecar.ts'
import { ageKeys, storedKeys } from '#testing/sts/aged-keys.ts'
import { type IssuerSite, openIssuerSite } from '#testing/sts/issuer-site.ts'
import { type StsGateway, startStsGateway, trustingEnvironment } from '#testing/sts/sts-gateway.ts'

/**
 * An API server fetches an unknown key only if its copy has 30 s left, so for 20 s after it first read the keys it
 * would reject a new one.
 */
const cacheSeconds = 50
const ttlSeconds = 60
const audience = 'https://kubernetes.example.com'
const tokenFile = (endpoint: string): string => `/var/run/secrets/gatehouse/${endpoint}/token`
const wait = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms))
const run = promisify(execFile)

interface UserAnswer {
  readonly status: { readonly userInfo: { readonly username: string } }
}

/** Reads the sidecar's files, like the pod's application, and presents them to their audiences. */
class Application {
  readonly refusals: string[] = []
  readonly kids = new Set<string>()
  accepted = 0
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined

  start(look: () => Promise<string>): void {
    this.#running = this.#loop(look)
  }

  async #loop(look: () => Promise<string>): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        this.kids.add(await look())
        this.accepted++
      } catch (error) {
        this.refusals.push(`${new Date().toISOString()} ${String(error)}`)
      }
      await wait(150)
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }
}

describe.skipIf(inject('kube') === undefined)('an API server that trusts our issuer', { timeout: 400_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-rotation-'))
  const documents = join(folder, 'documents')
  let site: IssuerSite
  let server: KubeApiServer
  let gateway: StsGateway
  let admitted: Pod
  let sidecar: AdmittedSidecar
  let namespace = ''

  beforeAll(async () => {
    mkdirSync(documents)
    site = await openIssuerSite(documents, '', true)
    site.headers = { 'cache-control': `public, max-age=${cacheSeconds}` }
    const trust = (path: string, prefix: string): object => ({
      issuer: { url: `${site.url}${path}`, audiences: [audience], certificateAuthority: testServerCertificate },
      claimMappings: { username: { claim: 'sub', prefix } },
    })
    const authentication = {
      apiVersion: 'apiserver.config.k8s.io/v1beta1',
      kind: 'AuthenticationConfiguration',
      jwt: [trust('/cluster', 'sts:'), trust('/hasty', 'hasty:')],
    }
    const file = join(folder, 'authentication.json')
    writeFileSync(file, JSON.stringify(authentication))
    server = await startKubeApiServer(await kubeBinaries(), [`--authentication-config=${file}`])
    const { client } = server
    namespace = await client.namespace({ 'pod-security.kubernetes.io/enforce': 'restricted' })
    await client.serviceAccount({ namespace, name: 'app' })

    const [port, webhookPort] = [await freePort(), await freePort()]
    const webhook = { listen: `127.0.0.1:${webhookPort}`, url: `https://127.0.0.1:${webhookPort}` }
    const host = new URL(site.url).host
    const endpoint = (name: string, more: object): object => ({
      name,
      path: `/sts/${name}`,
      issuer: { host, path: `/${name}` },
      publish: [{ type: 'folder', folder: join(documents, name) }],
      azRules: [{ scope: 'filter', constraint: `(&(namespace=${namespace})(saname=app))` }],
      ttlSeconds,
      rateLimit: { burst: 1000, perMinute: 60_000 },
      explicit_certificate_trust: true,
      ...more,
    })
    gateway = await startStsGateway(client, {
      tls: true,
      port,
      webhookConfiguration: 'gatehouse-sts',
      sts: {
        injector: { tokenService: `https://127.0.0.1:${port}`, trustedCertificates: 'trusted.pem', webhook },
        endpoints: [
          endpoint('cluster', {
            audience,
            preset: 'kubernetes',
            injector: { label: 'cluster', token_environment_variable_name: 'CLUSTER_TOKEN_FILE' },
          }),
          endpoint('vault', {
            audience: 'https://vault.example.com',
            preset: 'vault',
            algorithm: 'ES256',
            injector: {
              label: 'vault',
              token_environment_variable_name: 'VAULT_TOKEN_FILE',
              label_value_environment_variable_name: 'VAULT_ROLE',
            },
          }),
        ],
      },
    })
  }, 240_000)

  afterAll(async () => {
    sidecar?.destroy()
    await gateway?.stop()
    site?.close()
    server?.client.close()
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  }, 60_000)

  const userOf = async (token: string): Promise<string> => {
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const { status, body } = await server.client.call<UserAnswer>('POST', path, review, token)
    if (status !== 201) throw new Error(`the API server answers ${status}`)
    return body.status.userInfo.username
  }

  /** The credential that the sidecar presents to the gateway. */
  const credential = (): string => {
    const sidecarEnv = admitted.spec.initContainers?.[0]?.env ?? []
    const [line = ''] = sidecarEnv.find(({ name }) => name === 'STS_TARGETS')?.value?.split('\n') ?? []
    return readFileSync(sidecar.place(line.split(' ')[2] ?? ''), 'utf8')
  }

  const keysAt = (name: string): JSONWebKeySet =>
    JSON.parse(readFileSync(join(documents, name, 'certs'), 'utf8')) as JSONWebKeySet

  test('the gateway’s own webhook admits a pod with the labels at the restricted level', async () => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'app-1',
        labels: { 'tremolo.io/cluster': 'true', 'tremolo.io/vault': 'true' },
        annotations: { 'tremolo.io/vault': 'reader' },
      },
      spec: {
        serviceAccountName: 'app',
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            name: 'app',
            image: 'example.test/app:1',
            securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          },
        ],
      },
    }
    const path = `/api/v1/namespaces/${namespace}/pods`
    // The gateway registers its webhook with the API server, which calls it a second or so later.
    await vi.waitFor(
      async () => {
        const asked = await server.client.must<Pod>('POST', `${path}?dryRun=All`, pod)
        expect(asked.spec.initContainers?.map(({ name }) => name)).toEqual(['sts-creds-sidecar'])
      },
      { timeout: 40_000, interval: 250 },
    )
    admitted = await server.client.must<Pod>('POST', path, pod)
    expect(admitted.spec.containers?.[0]?.env).toEqual([
      { name: 'CLUSTER_TOKEN_FILE', value: tokenFile('cluster') },
      { name: 'VAULT_TOKEN_FILE', value: tokenFile('vault') },
      { name: 'VAULT_ROLE', value: 'reader' },
      { name: 'VAULT_AUTH_PATH', value: 'jwt' },
    ])
  })

  test('its admitted script writes the two tokens, each to its own file', async () => {
    sidecar = await runAdmittedSidecar(admitted, server.client)
    await vi.waitFor(() => expect(sidecar.ready(), sidecar.log()).toBe(true), { timeout: 20_000, interval: 100 })
    for (const [name, wanted] of [
      ['cluster', audience],
      ['vault', 'https://vault.example.com'],
    ] as const) {
      const file = sidecar.place(tokenFile(name))
      expect(statSync(file).mode & 0o777).toBe(0o400)
      const expected = { issuer: `${site.url}/${name}`, audience: wanted }
      const keys = createLocalJWKSet(keysAt(name))
      const { payload } = await jwtVerify(readFileSync(file, 'utf8'), keys, expected)
      expect(payload).toMatchObject({ sub: `k8s:${namespace}:app` })
    }
  })

  // Both mostly wait.
  test.concurrent('the API server rejects a key that signs before its copy of the keys may be renewed', async () => {
    const pairs = await Promise.all(['first', 'second'].map(() => generateKeyPair('RS256', { extractable: true })))
    const publish = async (count: number): Promise<void> => {
      const keys = await Promise.all(
        pairs.slice(0, count).map(async ({ publicKey }, n) => ({ ...(await exportJWK(publicKey)), kid: `hasty-${n}` })),
      )
      const issuer = `${site.url}/hasty`
      const discovery = { issuer, jwks_uri: `${issuer}/certs`, id_token_signing_alg_values_supported: ['RS256'] }
      mkdirSync(join(documents, 'hasty', '.well-known'), { recursive: true })
      writeFileSync(join(documents, 'hasty', '.well-known', 'openid-configuration'), JSON.stringify(discovery))
      writeFileSync(join(documents, 'hasty', 'certs'), JSON.stringify({ keys }))
    }
    const signed = async (n: number): Promise<string> => {
      const key = pairs[n]?.privateKey
      if (key === undefined) throw new Error('no such key')
      const claims = new SignJWT({ iss: `${site.url}/hasty`, aud: audience, sub: 'x' })
      return claims
        .setProtectedHeader({ alg: 'RS256', kid: `hasty-${n}` })
        .setIssuedAt()
        .setExpirationTime('10m')
        .sign(key)
    }
    await publish(1)
    const first = await signed(0)
    await vi.waitFor(async () => expect(await userOf(first)).toBe('hasty:x'), { timeout: 40_000, interval: 250 })
    await publish(2)
    await expect(userOf(await signed(1))).rejects.toThrow('401')
    await vi.waitFor(async () => expect(await userOf(await signed(1))).toBe('hasty:x'), {
      timeout: cacheSeconds * 1000,
      interval: 500,
    })
  })

  test.concurrent('through expiry, a restart of the gateway and a rotation it accepts every token, and both files stay fresh', async () => {
    const read = (name: string): string => readFileSync(sidecar.place(tokenFile(name)), 'utf8')
    await vi.waitFor(async () => expect(await userOf(read('cluster'))).toBe(`sts:k8s:${namespace}:app`), {
      timeout: 40_000,
      interval: 250,
    })
    const first = read('cluster')
    const [oldKid] = keysAt('cluster').keys.map(({ kid }) => kid ?? '')
    const application = new Application()
    const show = async (token: string): Promise<string> => {
      const user = await userOf(token)
      if (user !== `sts:k8s:${namespace}:app`) throw new Error(`it is ${user} to the API server`)
      return decodeProtectedHeader(token).kid ?? ''
    }
    application.start(async () => {
      // A token that was just signed; there is none while the gateway restarts.
      const fresh = await gateway.exchange('cluster', credential()).catch(() => undefined)
      if (fresh?.status === 200) await show(fresh.body)
      else if (fresh !== undefined && fresh.status < 500) throw new Error(`the gateway answers ${fresh.status}`)
      const token = read('cluster')
      const left = (decodeJwt(token).exp ?? 0) - Date.now() / 1000
      if (left < 1) throw new Error('the token in the file is expired')
      const kid = await show(token)
      const vault = read('vault')
      await jwtVerify(vault, createLocalJWKSet(keysAt('vault')), { audience: 'https://vault.example.com' })
      return kid
    })
    try {
      // During: the next key is published, and the old one still signs.
      const args = ['--config', gateway.config, '--data', gateway.dataFolder, '--endpoint', 'cluster']
      const env = { ...process.env, ...trustingEnvironment(folder) }
      const { stdout } = await run(gatehouse, ['keys', 'rotate', ...args], { env, timeout: 60_000 })
      expect(stdout).toMatch(/^ {2}next .*published since/m)
      expect(keysAt('cluster').keys).toHaveLength(2)
      // Skips the wait, except for the lifetime of copies.
      await ageKeys(gateway.dataFolder, 'cluster', leastWaitSeconds + marginSeconds - cacheSeconds)
      await wait(5000)
      expect([...application.kids]).toEqual([oldKid])
      await gateway.restart()
      await sidecar.project()

      await vi.waitFor(
        async () => {
          expect(keyIn(await storedKeys(gateway.dataFolder, 'cluster'), 'active')?.kid).not.toBe(oldKid)
        },
        { timeout: (cacheSeconds + 30) * 1000, interval: 500 },
      )
      const newKid = keyIn(await storedKeys(gateway.dataFolder, 'cluster'), 'active')?.kid ?? ''
      await vi.waitFor(() => expect(application.kids.has(newKid)).toBe(true), {
        timeout: ttlSeconds * 1000,
        interval: 250,
      })
      const published = (): (string | undefined)[] => keysAt('cluster').keys.map(({ kid }) => kid)
      expect(new Set(published())).toEqual(new Set([newKid, oldKid]))
      // The signing key comes first as soon as the document is published again.
      await vi.waitFor(() => expect(published()).toEqual([newKid, oldKid]), { timeout: 30_000, interval: 250 })
      expect(decodeJwt(first).exp).toBeLessThan(Date.now() / 1000)

      // After: tokens of the old key have expired, and it is removed.
      await wait(ttlSeconds * 1000 - 40_000)
      await ageKeys(gateway.dataFolder, 'cluster', signsUnseenSeconds + skewSeconds + marginSeconds)
      await vi.waitFor(() => expect(published()).toEqual([newKid]), {
        timeout: (ttlSeconds + 40) * 1000,
        interval: 500,
      })
      await wait(3000)
      expect([...application.kids]).toEqual([oldKid, newKid])
    } finally {
      await application.stop()
    }
    expect(application.refusals).toEqual([])
    expect(application.accepted).toBeGreaterThan(100)
    expect(sidecar.process.exitCode).toBeNull()
  })

  test('our own tokens are not credentials for us', async () => {
    const token = readFileSync(sidecar.place(tokenFile('cluster')), 'utf8')
    expect((await gateway.exchange('vault', token)).error).toBe('invalid_grant')
  })

  test('when the pod is deleted its credential gets no more tokens, and SIGTERM ends the sidecar at once', async () => {
    const token = credential()
    expect((await gateway.exchange('cluster', token)).status).toBe(200)
    await server.client.deletePod(namespace, 'app-1')
    await vi.waitFor(async () => expect((await gateway.exchange('cluster', token)).error).toBe('invalid_grant'), {
      timeout: 25_000,
      interval: 250,
    })
    const asked = Date.now()
    const ended = new Promise((resolve) => sidecar.process.once('close', (code) => resolve(code)))
    sidecar.process.kill('SIGTERM')
    expect(await ended).toBe(0)
    expect(Date.now() - asked).toBeLessThan(10_000)
  })
})

import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { freePort } from '#testing/gateway/free-port.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { type KubeApiServer, startKubeApiServer } from '#testing/kubernetes/kube-api-server.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import { blocksOf } from '#testing/stories/documented-commands.ts'
import { type AdmittedSidecar, runAdmittedSidecar } from '#testing/sts/admitted-sidecar.ts'
import { type IssuerSite, openIssuerSite } from '#testing/sts/issuer-site.ts'
import { type StsGateway, startStsGateway } from '#testing/sts/sts-gateway.ts'
import type { Presented } from '#testing/sts/token-consumers.ts'

const run = promisify(execFile)
const tokenFolder = '/var/run/secrets/gatehouse'

/** The commands of a guide. */
export const commandsOf = (guide: string): string => blocksOf(`docs/guides/${guide}.md`, 'sh').join('\n')

/** The YAML block of a guide that begins with `# name`. */
export function blockOf<T = unknown>(guide: string, name: string): T {
  const block = blocksOf(`docs/guides/${guide}.md`, 'yaml').find((text) => text.startsWith(`# ${name}\n`))
  if (block === undefined) throw new Error(`docs/guides/${guide}.md has no block ${name}`)
  return parse(block) as T
}

interface GuideEndpoint {
  readonly name: string
  readonly audience: string
  readonly issuer: { readonly host: string; readonly path: string }
  readonly injector: { readonly settings?: object; readonly environment?: object }
}

interface GuideValues {
  readonly sts: { readonly endpoints: readonly [GuideEndpoint] }
}

/** The parts of a guide that a test changes, since its consumer is on this machine. */
export interface Changes {
  readonly settings?: object
  readonly environment?: object
  /** Its issuer is on this machine too, so that the consumer can fetch its documents. */
  readonly localIssuer?: boolean
}

export interface GuideCluster {
  readonly server: KubeApiServer
  /** The site with the documents of local issuers. */
  readonly site: IssuerSite
  /** Starts the gateway with the endpoints of the guides. */
  start(changes: Readonly<Record<string, Changes>>): Promise<StsGateway>
  /** The settings of a guide's consumer. */
  setUp(guide: string): Omit<Presented, 'token' | 'now'>
  /** Creates the ServiceAccount and the pod of a guide, and runs the admitted sidecar until the pod is Ready. */
  workload(guide: string): Promise<GuideWorkload>
  stop(): Promise<void>
}

export interface GuideWorkload {
  /** The variables of the guide's container, with its files on this machine. */
  readonly variables: Readonly<Record<string, string>>
  readonly sidecar: AdmittedSidecar
  /** Runs a module with only those variables, and returns its output as JSON. */
  node(code: string): Promise<unknown>
}

interface AdmittedPod {
  readonly spec: { readonly containers: readonly { readonly env?: readonly { name: string; value?: string }[] }[] }
}

/** A real API server, which also trusts the issuer of `another-cluster.md`, and a gateway with the endpoints of guides. */
export async function startGuideCluster(): Promise<GuideCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-guides-'))
  const documents = join(folder, 'documents')
  mkdirSync(documents)
  const authority = join(folder, 'authority.pem')
  writeFileSync(authority, testServerCertificate)
  const site = await openIssuerSite(documents, '', true)
  const { jwt, ...rest } = blockOf<{ jwt: [{ issuer: object }] }>('another-cluster', 'authentication.yaml')
  const issuer = { ...jwt[0].issuer, url: `${site.url}/other`, certificateAuthority: testServerCertificate }
  const authentication = join(folder, 'authentication.json')
  writeFileSync(authentication, JSON.stringify({ ...rest, jwt: [{ ...jwt[0], issuer }] }))
  const server = await startKubeApiServer(await kubeBinaries(), [`--authentication-config=${authentication}`])
  await server.client.must('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
  const sidecars: AdmittedSidecar[] = []
  let gateway: StsGateway | undefined
  const endpointOf = (guide: string): GuideEndpoint => blockOf<GuideValues>(guide, 'values.yaml').sts.endpoints[0]

  return {
    server,
    site,
    start: async (guides) => {
      const [port, webhookPort] = [await freePort(), await freePort()]
      const endpoints = Object.entries(guides).map(([guide, { settings, environment, localIssuer = false }]) => {
        const { injector, issuer: own, ...endpoint } = endpointOf(guide)
        return {
          ...endpoint,
          issuer: localIssuer ? { ...own, host: new URL(site.url).host } : own,
          publish: [{ type: 'folder', folder: join(documents, own.path) }],
          explicit_certificate_trust: true,
          injector: {
            ...injector,
            settings: { ...injector.settings, ...settings },
            ...(environment === undefined ? {} : { environment: { ...injector.environment, ...environment } }),
          },
        }
      })
      const webhook = { listen: `127.0.0.1:${webhookPort}`, url: `https://127.0.0.1:${webhookPort}` }
      const injector = { tokenService: `https://127.0.0.1:${port}`, trustedCertificates: 'trusted.pem', webhook }
      gateway = await startStsGateway(server.client, {
        tls: true,
        port,
        webhookConfiguration: 'gatehouse-sts',
        sts: { injector, endpoints },
      })
      // Consumers read them before the first token.
      const discovery = endpoints.map(({ publish }) =>
        join(publish[0]?.folder ?? '', '.well-known/openid-configuration'),
      )
      await until(
        () => discovery.every((file) => existsSync(file)),
        () => `not published: ${discovery.filter((file) => !existsSync(file))}`,
      )
      return gateway
    },
    setUp: (guide) => {
      const { audience, issuer: own } = endpointOf(guide)
      const keys = JSON.parse(readFileSync(join(documents, own.path, 'certs'), 'utf8')) as Presented['keys']
      return { keys, audience, issuer: `https://${own.host}${own.path}` }
    },
    workload: async (guide) => {
      await server.client.call('DELETE', '/api/v1/namespaces/shop/serviceaccounts/cart')
      await server.client.must(
        'POST',
        '/api/v1/namespaces/shop/serviceaccounts',
        blockOf<object>(guide, 'service-account.yaml'),
      )
      const { metadata, ...pod } = blockOf<{ metadata: object }>(guide, 'pod.yaml')
      const named = { ...pod, metadata: { ...metadata, name: `cart-${guide}` } }
      const admitted = await untilInjected(server, named)
      const sidecar = await runAdmittedSidecar(admitted, server.client)
      sidecars.push(sidecar)
      await until(
        () => sidecar.ready(),
        () => sidecar.log(),
      )
      const variables = Object.fromEntries(
        (admitted.spec.containers[0]?.env ?? []).map(({ name, value = '' }) => [
          name,
          value.replaceAll(tokenFolder, sidecar.place(tokenFolder)),
        ]),
      )
      return {
        variables,
        sidecar,
        node: async (code) => {
          const env = { ...variables, NODE_EXTRA_CA_CERTS: authority }
          const args = ['--input-type=module', '--no-warnings', '-e', code]
          return JSON.parse((await run(process.execPath, args, { env, timeout: 60_000 })).stdout) as unknown
        },
      }
    },
    stop: async () => {
      for (const sidecar of sidecars) sidecar.destroy()
      await gateway?.stop()
      site.close()
      server.client.close()
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The gateway registers its webhook with the API server, which calls it a second or so later. */
async function untilInjected({ client }: KubeApiServer, pod: object): Promise<AdmittedPod> {
  const path = '/api/v1/namespaces/shop/pods'
  let answer: { spec: { initContainers?: unknown[] } } | undefined
  await until(
    async () => {
      answer = (await client.call<typeof answer>('POST', `${path}?dryRun=All`, pod)).body
      return answer?.spec?.initContainers !== undefined
    },
    () => JSON.stringify(answer),
  )
  return client.must<AdmittedPod>('POST', path, pod)
}

async function until(holds: () => boolean | Promise<boolean>, complaint: () => string): Promise<void> {
  const end = performance.now() + 40_000
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(complaint())
    await new Promise((resume) => setTimeout(resume, 100))
  }
}

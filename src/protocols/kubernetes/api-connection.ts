import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Agent, OutgoingHttpHeaders } from 'node:http'
import { type AgentOptions, Agent as HttpsAgent, type RequestOptions } from 'node:https'
import { dirname } from 'node:path'
import { readSmallFile, readSmallFileSync } from '#kernel/small-file.ts'
import { exchange, type HttpCall, openExchange, readBody } from '#protocols/http/http-client.ts'
import { Agent as HttpAgent } from '#protocols/http/node-http.ts'
import { environmentProxies, OutgoingHttpsAgent, type OutgoingProxies } from '#protocols/http/outgoing-proxy.ts'

/** An API server's URL, and the credentials for each call. */
export interface ApiServer {
  readonly address: string
  credentials(): Promise<ApiCredentials>
  close(): void
}

const pool: AgentOptions = { keepAlive: true, maxSockets: 32, maxFreeSockets: 8, timeout: 60_000 }

/** Throws a plain Error if files are missing or the connection would not be verified. Makes no call. */
export async function openApiServer(
  connection: KubernetesConnection,
  proxies = environmentProxies(),
): Promise<ApiServer> {
  if (connection.kind === 'kubeconfig') return openByKubeConfig(connection, proxies)
  if (connection.kind === 'address') {
    return openByAddress(connection, agentFor(connection, await authorityOf(connection), proxies))
  }
  // The pod's own API server has an address of the cluster's network, which no proxy outside of it reaches.
  const own = inClusterConnection(process.env)
  return openByAddress(own, new HttpsAgent({ ...pool, ...(await authorityOf(own)) }))
}

type ByAddress = Extract<KubernetesConnection, { kind: 'address' }>

const agentFor = ({ url }: ByAddress, ca: AgentOptions, proxies: OutgoingProxies): Agent =>
  url.protocol === 'https:' ? new OutgoingHttpsAgent({ ...pool, ...ca }, proxies) : new HttpAgent(pool)

async function openByAddress(connection: ByAddress, agent: Agent): Promise<ApiServer> {
  const file = connection.tokenFile === undefined ? undefined : new TokenFile(connection.tokenFile)
  return {
    address: connection.url.href.replace(/\/+$/, ''),
    close: () => agent.destroy(),
    async credentials() {
      const token = (await connection.issueToken?.()) ?? (await file?.read()) ?? connection.token
      return { agent, headers: token === undefined ? {} : { authorization: `Bearer ${token}` } }
    },
  }
}

async function authorityOf(connection: ByAddress): Promise<AgentOptions> {
  if (connection.authority !== undefined) return { ca: connection.authority }
  if (connection.authorityFile === undefined) return {}
  return { ca: await readSmallFile(connection.authorityFile) }
}

/** The client library takes over half a second to load, so only a kubeconfig loads it. */
async function openByKubeConfig(
  connection: Extract<KubernetesConnection, { kind: 'kubeconfig' }>,
  proxies: OutgoingProxies,
): Promise<ApiServer> {
  if (!existsSync(connection.file)) {
    throw new Error(`the kubeconfig ${connection.file} does not exist; correct the path, or use inCluster in a pod`)
  }
  const { KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  try {
    config.loadFromString(readSmallFileSync(connection.file))
  } catch (cause) {
    throw new Error(`${connection.file} is not a kubeconfig: ${firstLine(cause)}`, { cause })
  }
  config.makePathsAbsolute(dirname(connection.file))
  if (connection.context !== undefined) config.setCurrentContext(connection.context)
  const cluster = config.getCurrentCluster()
  const user = config.getCurrentUser()
  if (cluster === null || user === null) throw new Error(`${connection.file} has no such context with cluster and user`)
  if (cluster.skipTLSVerify) throw new Error(`${connection.file} sets insecure-skip-tls-verify, which is not supported`)
  if (!cluster.server.startsWith('https:')) throw new Error(`${connection.file} names an API server without https`)
  if (user.username !== undefined)
    throw new Error(`${connection.file} logs in with a password; use a token or certificate`)
  /** Runs the program for credentials that the kubeconfig may name. */
  const apply = async (): Promise<RequestOptions> => {
    const options: RequestOptions = {}
    try {
      await config.applyToHTTPSOptions(options)
    } catch (cause) {
      const reason = firstLine(cause) || 'its program for credentials failed'
      throw new Error(`${connection.file} gives no credentials: ${reason}. Log in to the cluster again`, { cause })
    }
    return options
  }
  const options = await apply()
  const { ca, cert, key, servername } = options
  const own = new OutgoingHttpsAgent({ ...pool, ...defined({ ca, cert, key, servername }) }, proxies)
  return {
    address: cluster.server.replace(/\/+$/, ''),
    close: () => own.destroy(),
    async credentials() {
      const fresh = await apply()
      const proxied = cluster.proxyUrl !== undefined && fresh.agent instanceof HttpAgent ? fresh.agent : undefined
      return { agent: proxied ?? own, headers: { ...(fresh.headers as Record<string, string> | undefined) } }
    },
  }
}

const firstLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).trim().split('\n', 1)[0]?.slice(0, 500) ?? ''

const defined = (options: { [name: string]: unknown }): AgentOptions =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))

/** A bearer token in a file that its owner replaces from time to time. */
class TokenFile {
  readonly #path: string
  #version = ''
  #token = ''

  constructor(path: string) {
    this.#path = path
  }

  /** The current token; the file is read again only if it was replaced or rewritten. */
  async read(): Promise<string> {
    const { ino, mtimeMs, size } = await stat(this.#path)
    const version = `${ino} ${mtimeMs} ${size}`
    if (version !== this.#version) {
      this.#token = (await readSmallFile(this.#path)).trim()
      this.#version = version
    }
    return this.#token
  }
}

interface ApiRequest {
  readonly url: string
  readonly method: string
  readonly headers: OutgoingHttpHeaders
  readonly body: string
}

export interface ApiAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

interface ApiCredentials {
  readonly agent: Agent | undefined
  readonly headers: OutgoingHttpHeaders
}

interface ApiLimits {
  readonly millis: number
  readonly bytes: number
  /** Ends the call before its time. */
  readonly signal?: AbortSignal | undefined
}

/**
 * One call to an API server over a kept connection, bounded in time and size. Redirects are not followed: the body,
 * which may contain a token, is sent nowhere else.
 */
export async function callApi(request: ApiRequest, credentials: ApiCredentials, limits: ApiLimits): Promise<ApiAnswer> {
  const { millis, bytes, signal } = limits
  const late = AbortSignal.timeout(millis)
  const answer = await exchange(toCall(request, credentials), credentials, {
    signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    bytes,
  })
  return { status: answer.status, contentType: answer.headers['content-type'] ?? '', body: answer.body }
}

const toCall = ({ url, method, headers, body }: ApiRequest, credentials: ApiCredentials): HttpCall => ({
  url: new URL(url),
  method,
  headers: { ...headers, ...credentials.headers },
  body,
})

type LinesAnswer = { readonly lines: AsyncIterable<string> } | { readonly refusal: ApiAnswer }

/** A GET with a streaming response: yields its lines until the server or `signal` ends them. */
export async function openLines(
  { url, headers }: Pick<ApiRequest, 'url' | 'headers'>,
  credentials: ApiCredentials,
  { signal, lineBytes }: { readonly signal: AbortSignal; readonly lineBytes: number },
): Promise<LinesAnswer> {
  const response = await openExchange(
    toCall({ url, method: 'GET', headers, body: '' }, credentials),
    credentials,
    signal,
  )
  if (response.statusCode === 200) return { lines: linesOf(response, lineBytes) }
  const contentType = response.headers['content-type'] ?? ''
  return { refusal: { status: response.statusCode ?? 0, contentType, body: await readBody(response, lineBytes) } }
}

async function* linesOf(response: AsyncIterable<Buffer>, most: number): AsyncGenerator<string> {
  let parts: Buffer[] = []
  let size = 0
  for await (const chunk of response) {
    let start = 0
    for (let end = chunk.indexOf(lineEnd); end >= 0; end = chunk.indexOf(lineEnd, start)) {
      const line = Buffer.concat([...parts, chunk.subarray(start, end)]).toString('utf8')
      start = end + 1
      parts = []
      size = 0
      if (line !== '') yield line
    }
    size += chunk.length - start
    if (size > most) throw new Error(`the API server sent a line of more than ${most} bytes`)
    if (start < chunk.length) parts.push(chunk.subarray(start))
  }
}

const lineEnd = 0x0a

/** How a cluster's API server is reached. Files are absolute paths. */
export type KubernetesConnection =
  | {
      readonly kind: 'address'
      readonly url: URL
      readonly token?: string | undefined
      /** Called for each request. */
      readonly issueToken?: (() => Promise<string>) | undefined
      /** Read again whenever it changes, as the kubelet replaces it. */
      readonly tokenFile?: string | undefined
      /** PEM text of the CA; the system's own if neither is given. */
      readonly authority?: string | undefined
      readonly authorityFile?: string | undefined
    }
  | { readonly kind: 'kubeconfig'; readonly file: string; readonly context?: string | undefined }
  | { readonly kind: 'in-cluster' }

const accountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

/** The kubelet's path of a pod's own token. */
export const podTokenFile = `${accountFolder}/token`
/** The kubelet's path of the cluster's CA. */
export const podAuthorityFile = `${accountFolder}/ca.crt`

/** The connection of a process that runs in a pod. Throws a plain Error outside of a cluster. */
export function inClusterConnection(
  environment: Readonly<Record<string, string | undefined>>,
): Extract<KubernetesConnection, { kind: 'address' }> {
  const host = environment['KUBERNETES_SERVICE_HOST'] ?? ''
  const port = environment['KUBERNETES_SERVICE_PORT'] ?? '443'
  const address = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  if (host === '' || !URL.canParse(address)) {
    throw new Error(
      'KUBERNETES_SERVICE_HOST is not set: this process does not run in a cluster, so it needs a kubeconfig',
    )
  }
  return { kind: 'address', url: new URL(address), tokenFile: podTokenFile, authorityFile: podAuthorityFile }
}

import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { type AgentOptions, Agent as HttpsAgent, type RequestOptions } from 'node:https'
import { dirname } from 'node:path'
import type { KubeConfig } from '@kubernetes/client-node'
import { Agent as HttpAgent } from '#kernel/node-http.ts'
import { readSmallFile, readSmallFileSync } from '#kernel/small-file.ts'
import type { ApiCredentials } from '#protocols/kubernetes/api-transport.ts'
import { inClusterConnection, type KubernetesConnection } from '#protocols/kubernetes/connection.ts'

/** An API server's address, and what to show it with each call. */
export interface ApiServer {
  readonly address: string
  credentials(): Promise<ApiCredentials>
  close(): void
}

const pool: AgentOptions = { keepAlive: true, maxSockets: 32, maxFreeSockets: 8, timeout: 60_000 }

/** Throws a plain Error when files are missing or the connection would not be verified. Calls nothing yet. */
export async function openApiServer(
  connection: KubernetesConnection,
  emptyKubeConfig: () => KubeConfig,
): Promise<ApiServer> {
  if (connection.kind === 'kubeconfig') return openByKubeConfig(connection, emptyKubeConfig())
  return openByAddress(connection.kind === 'in-cluster' ? inClusterConnection(process.env) : connection)
}

async function openByAddress(connection: Extract<KubernetesConnection, { kind: 'address' }>): Promise<ApiServer> {
  const ca = await authorityOf(connection)
  const agent = connection.url.protocol === 'https:' ? new HttpsAgent({ ...pool, ...ca }) : new HttpAgent(pool)
  const file = connection.tokenFile === undefined ? undefined : new TokenFile(connection.tokenFile)
  return {
    address: connection.url.href.replace(/\/+$/, ''),
    close: () => agent.destroy(),
    async credentials() {
      const token = (await file?.read()) ?? connection.token
      return { agent, headers: token === undefined ? {} : { authorization: `Bearer ${token}` } }
    },
  }
}

async function authorityOf(connection: Extract<KubernetesConnection, { kind: 'address' }>): Promise<AgentOptions> {
  if (connection.authority !== undefined) return { ca: connection.authority }
  if (connection.authorityFile === undefined) return {}
  return { ca: await readSmallFile(connection.authorityFile) }
}

async function openByKubeConfig(
  connection: Extract<KubernetesConnection, { kind: 'kubeconfig' }>,
  config: KubeConfig,
): Promise<ApiServer> {
  if (!existsSync(connection.file)) {
    throw new Error(`the kubeconfig ${connection.file} does not exist; correct the path, or use inCluster in a pod`)
  }
  config.loadFromString(readSmallFileSync(connection.file))
  config.makePathsAbsolute(dirname(connection.file))
  if (connection.context !== undefined) config.setCurrentContext(connection.context)
  const cluster = config.getCurrentCluster()
  const user = config.getCurrentUser()
  if (cluster === null || user === null) throw new Error(`${connection.file} has no such context with cluster and user`)
  if (cluster.skipTLSVerify) throw new Error(`${connection.file} asks to skip the verification of the API server`)
  if (!cluster.server.startsWith('https:')) throw new Error(`${connection.file} names an API server without https`)
  if (user.username !== undefined)
    throw new Error(`${connection.file} logs in with a password; use a token or certificate`)
  const options: RequestOptions = {}
  await config.applyToHTTPSOptions(options)
  const { ca, cert, key, servername } = options
  const own = new HttpsAgent({ ...pool, ...defined({ ca, cert, key, servername }) })
  return {
    address: cluster.server.replace(/\/+$/, ''),
    close: () => own.destroy(),
    async credentials() {
      const fresh: RequestOptions = {}
      await config.applyToHTTPSOptions(fresh)
      const proxied = cluster.proxyUrl !== undefined && fresh.agent instanceof HttpAgent ? fresh.agent : undefined
      return { agent: proxied ?? own, headers: { ...(fresh.headers as Record<string, string> | undefined) } }
    },
  }
}

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

  /** The token as it stands now; the file is read again only when it was replaced or rewritten. */
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

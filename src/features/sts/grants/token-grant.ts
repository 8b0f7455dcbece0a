import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { ClusterObject } from '#protocols/kubernetes/cluster.ts'

/** TokenGrant objects of all namespaces. Their definition is deploy/crds/tokengrants.yaml. */
export const tokenGrants = { group: 'gatehouse.dev', version: 'v1', plural: 'tokengrants' } as const
export const namespaces = { group: '', version: 'v1', plural: 'namespaces' } as const

/** As the definition has it; objects that were stored before it had may have more. */
export const mostAccounts = 100
const serviceAccount = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/
const longestEndpoint = 253

/** What a team allows: tokens of an endpoint for service accounts of its own namespace. */
export interface TokenGrant {
  readonly namespace: string
  readonly name: string
  /** When it was created; older grants come first where there are too many. */
  readonly created: string
  readonly endpoint: string
  readonly serviceAccounts: readonly string[]
  /** Why it can't be read. */
  readonly problem: string | undefined
}

/** For people, and the audit. */
export const grantName = ({ namespace, name }: Pick<TokenGrant, 'namespace' | 'name'>): string => `${namespace}/${name}`

export function readGrant({ metadata, content }: Pick<ClusterObject, 'metadata' | 'content'>): TokenGrant {
  const { name, namespace = '', creationTimestamp: created = '' } = metadata
  const spec = isJsonObject(content['spec']) ? content['spec'] : {}
  const { endpoint, serviceAccounts } = spec
  const known = { namespace, name, created }
  const unreadable = (problem: string): TokenGrant => ({ ...known, endpoint: '', serviceAccounts: [], problem })
  if (typeof endpoint !== 'string' || endpoint === '' || endpoint.length > longestEndpoint) {
    return unreadable('spec.endpoint must be the name of a token endpoint')
  }
  const accounts = Array.isArray(serviceAccounts) ? (serviceAccounts as readonly unknown[]) : []
  if (accounts.length === 0 || accounts.length > mostAccounts || !accounts.every(isAccountName)) {
    return unreadable(`spec.serviceAccounts must be names of service accounts, ${mostAccounts} at most`)
  }
  return { ...known, endpoint, serviceAccounts: accounts, problem: undefined }
}

const isAccountName = (value: unknown): value is string => typeof value === 'string' && serviceAccount.test(value)

const read = new WeakMap<ClusterObject, TokenGrant>()
const longestStatus = 16_384

/** What is remembered of a TokenGrant: enough for its status. `grantOf` has the rest. */
export function reducedGrant(object: ClusterObject): ClusterObject {
  const { metadata, content } = object
  const { generation } = isJsonObject(content['metadata']) ? content['metadata'] : ({} as JsonObject)
  const { status } = content
  const isShort = status !== undefined && JSON.stringify(status).length <= longestStatus
  const reduced = { metadata, content: { metadata: { generation }, status: isShort ? status : undefined } }
  read.set(reduced, readGrant(object))
  return reduced
}

/** The grant of an object, as it was before it was reduced. */
export const grantOf = (object: ClusterObject): TokenGrant => read.get(object) ?? readGrant(object)

/** A namespace that has grants. */
export interface GrantNamespace {
  readonly labels: Readonly<Record<string, unknown>>
  /** It is being deleted. */
  readonly isEnding: boolean
}

export function readNamespace({ content }: Pick<ClusterObject, 'content'>): GrantNamespace {
  const { metadata, status } = content
  const { labels, deletionTimestamp } = isJsonObject(metadata) ? metadata : ({} as JsonObject)
  const phase = isJsonObject(status) ? status['phase'] : undefined
  return {
    labels: isJsonObject(labels) ? labels : {},
    isEnding: typeof deletionTimestamp === 'string' || phase === 'Terminating',
  }
}

export function reducedNamespace({ metadata, content }: ClusterObject): ClusterObject {
  const { labels, deletionTimestamp } = isJsonObject(content['metadata']) ? content['metadata'] : ({} as JsonObject)
  return { metadata, content: { metadata: { labels, deletionTimestamp }, status: content['status'] } }
}

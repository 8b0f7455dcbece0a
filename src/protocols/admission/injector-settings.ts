import { createHash } from 'node:crypto'

export interface InjectorSettings {
  /** The URL of the token service for pods, without a trailing slash. */
  readonly tokenService: string
  readonly image: string
  readonly imagePullPolicy: 'IfNotPresent' | 'Always' | 'Never'
  /** Secrets of the pod's namespace. */
  readonly imagePullSecrets: readonly string[]
  /** The shell script that the sidecar runs. */
  readonly script: string
  readonly resources: SidecarResources
  /** The lifetime of the sidecar's own credential. */
  readonly credentialSeconds: number
  /** `auto`: as narrow as the pod's users and groups allow. */
  readonly fileMode: 'auto' | '0440' | '0444'
  /** The cluster supports init containers that keep running (Kubernetes 1.29). */
  readonly nativeSidecars: boolean
  readonly position: 'first' | 'last'
  /** The pod is Ready only while all its tokens are valid. */
  readonly readinessProbe: boolean
  /** Containers that never get a token, unless a pod includes them by name. */
  readonly skipContainers: readonly string[]
  /** PEM, for endpoints with explicit trust. */
  readonly certificates?: string | undefined
  /** Of the pod's namespace, with the key `ca.crt`; it may be absent. */
  readonly trustConfigMap: string
}

export interface SidecarResources {
  readonly cpuRequest: string
  readonly cpuLimit: string
  readonly memoryRequest: string
  readonly memoryLimit: string
}

const quantity = /^(\d{1,9}(?:\.\d{1,3})?)(m|k|Ki|M|Mi|G|Gi)?$/
const units: Readonly<Record<string, number>> = {
  m: 1e-3,
  k: 1e3,
  Ki: 2 ** 10,
  M: 1e6,
  Mi: 2 ** 20,
  G: 1e9,
  Gi: 2 ** 30,
}

/** A Kubernetes amount of CPU or memory, without exponents. */
export const isQuantity = (text: string): boolean => quantity.test(text)

/** The greater of two amounts, as written; the first if they are equal. */
export function greaterQuantity(a: string, b: string): string {
  return amountOf(b) > amountOf(a) ? b : a
}

function amountOf(text: string): number {
  const [, digits = '0', unit = ''] = quantity.exec(text) ?? []
  return Number(digits) * (units[unit] ?? 1)
}

export const sidecarName = 'sts-creds-sidecar'
/** The name of the volume that a pod may define itself (`create-volume: "false"`). */
export const tokenVolume = 'sts-tokens'
export const identityVolume = 'sts-identity'

/** Where containers find their tokens, each in a folder named after its endpoint. */
export const tokenFolder = '/var/run/secrets/gatehouse'
/** "deadline reason": the uptime until which every token of the pod is valid, with a margin, and why not longer. */
export const readyFile = `${tokenFolder}/.ready`
/**
 * The path of the sidecar's own credential: that of the token for the API server, which Kubernetes therefore does
 * not mount into it.
 */
export const identityFolder = '/var/run/secrets/kubernetes.io/serviceaccount'
export const trustFile = `${identityFolder}/trust/ca.crt`

/** In every sidecar of ours: what it fetches, line by line. */
export const targetsVariable = 'STS_TARGETS'

export const tokenFileOf = (endpoint: string): string => fileOf(endpoint, 'token')

/** A file beside an endpoint's token. */
export const fileOf = (endpoint: string, name: string): string => `${tokenFolder}/${folderName(endpoint)}/${name}`

const longestWorkload = 64

/** Namespace and service account as one name of at most 64 characters, with a hash at the end if it was cut. */
export function workloadName(namespace: string, account: string): string {
  const name = `${namespace}-${account}`
  return name.length <= longestWorkload ? name : `${name.slice(0, longestWorkload - 9)}-${shortHash(name)}`
}

export const credentialName = (audience: string): string => `token-${shortHash(audience)}`

const maxFolderName = 63

/** A DNS label. Names that are invalid or too long end with a hash, so that no two endpoints share a folder. */
function folderName(endpoint: string): string {
  if (/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(endpoint)) return endpoint
  const plain = endpoint.toLowerCase().replace(/[^a-z0-9]/g, '-')
  return `e${plain.slice(0, maxFolderName - 10)}-${shortHash(endpoint)}`
}

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

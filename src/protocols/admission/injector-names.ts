import { createHash } from 'node:crypto'

export const sidecarName = 'sts-creds-sidecar'
/** The name under which a pod may bring a volume of its own (`create-volume: "false"`). */
export const tokenVolume = 'sts-tokens'
export const identityVolume = 'sts-identity'

/** Where containers find their tokens, each in a folder named after its endpoint. */
export const tokenFolder = '/var/run/secrets/gatehouse'
/** "deadline reason": the uptime until which every token of the pod is valid, with a margin, and why not after it. */
export const readyFile = `${tokenFolder}/.ready`
/**
 * Where the sidecar finds its own credential: in the place of the token for the API server, which Kubernetes therefore
 * does not mount into it.
 */
export const identityFolder = '/var/run/secrets/kubernetes.io/serviceaccount'
export const trustFile = `${identityFolder}/trust/ca.crt`

/** Present in every sidecar that was made here: what it fetches, line by line. */
export const targetsVariable = 'STS_TARGETS'

export const tokenFileOf = (endpoint: string): string => fileOf(endpoint, 'token')

/** A file beside an endpoint's token. */
export const fileOf = (endpoint: string, name: string): string => `${tokenFolder}/${folderName(endpoint)}/${name}`

const longestWorkload = 64

/** Namespace and service account as one name of at most 64 characters, which end with a hash where it was cut. */
export function workloadName(namespace: string, account: string): string {
  const name = `${namespace}-${account}`
  return name.length <= longestWorkload ? name : `${name.slice(0, longestWorkload - 9)}-${shortHash(name)}`
}

export const credentialName = (audience: string): string => `token-${shortHash(audience)}`

const maxFolderName = 63

/** A DNS label; names that are not one, or too long, end with a hash so that no two endpoints share a folder. */
function folderName(endpoint: string): string {
  if (/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(endpoint)) return endpoint
  const plain = endpoint.toLowerCase().replace(/[^a-z0-9]/g, '-')
  return `e${plain.slice(0, maxFolderName - 10)}-${shortHash(endpoint)}`
}

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

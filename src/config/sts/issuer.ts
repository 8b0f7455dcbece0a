import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { PublishDestination, TokenIssuer, TransitCustody } from '#config/configuration/token-keys.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import type { StsCustodySpec, StsDestinationSpec, StsEndpointSpec, StsFrame } from '#config/kinds/sts.ts'
import { consumerLimits } from '#config/kinds/sts-preset.ts'
import { isLoopbackHost } from '#kernel/address.ts'
import type { Path } from '#kernel/issues.ts'
import {
  isKeyName,
  looksLikePrivateKey,
  privateKeyEndings,
  readSigningKey,
  type TokenAlgorithm,
} from '#protocols/jwt/signing-key.ts'

const hostAndPort = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/
const issuerPath = /^(?:\/[A-Za-z0-9._~-]+)+$/
const defaultRotateDays = 90
const daySeconds = 86_400

export interface IssuerPlace {
  /** `https://host[:port][/path]` */
  readonly url: string
  /** Without the port, as requests are matched. */
  readonly host: string
  readonly path: string
}

const issuerPathOf = ({ issuer }: StsEndpointSpec): string => (issuer.path === '/' ? '' : (issuer.path ?? ''))

/** The issuer's URL; reports what consumers would reject. */
export function readIssuer(spec: StsEndpointSpec, at: Path, { issues }: BuildContext): IssuerPlace {
  const host = spec.issuer.host.toLowerCase()
  const path = issuerPathOf(spec)
  const url = `https://${host}${path}`
  const { noPort, mostIssuer } = consumerLimits(spec.preset)
  const hostAt = [...at, 'issuer', 'host']
  if (!hostAndPort.test(host)) {
    issues.error(hostAt, `"${spec.issuer.host}" is not a host: a name without scheme or path, such as sts.example.com`)
  } else if (noPort && host.includes(':')) {
    issues.error(hostAt, `${spec.preset} takes no issuer with a port`)
  }
  if (path !== '' && (!issuerPath.test(path) || /\/\.{1,2}(\/|$)/.test(path))) {
    issues.error([...at, 'issuer', 'path'], `"${path}" is not a path such as /cloud, without a slash at its end`)
  }
  if (url.length > mostIssuer) issues.error(hostAt, `the issuer has ${url.length} characters, more than ${mostIssuer}`)
  return { url, host: host.replace(/:\d+$/, ''), path }
}

interface IssuerParts {
  readonly spec: StsEndpointSpec
  readonly frame: StsFrame
  readonly issuer: string
  readonly algorithm: TokenAlgorithm
  readonly ttlSeconds: number
  readonly claims: readonly string[]
}

/** The endpoint's settings for keys and publication; its own override those of all. */
export function buildTokenIssuer(parts: IssuerParts, at: Path, context: BuildContext): TokenIssuer {
  const { spec, frame, issuer, algorithm, ttlSeconds, claims } = parts
  const keys = { ...frame.keys, ...spec.keys }
  const [destinations, place]: [readonly StsDestinationSpec[], Path] =
    spec.publish === undefined ? [frame.publish ?? [], ['sts', 'publish']] : [spec.publish, [...at, 'publish']]
  const below = spec.publish === undefined ? issuerPathOf(spec) : ''
  const published = destinations.map((destination, i) => readDestination(destination, below, [...place, i], context))
  if (keys.readBack === 'written' && published.length === 0 && spec.host_in_openunison !== true) {
    context.issues.error([...at, 'keys', 'readBack'], '"written" needs a place in "publish" that is written to')
  }
  const keypair = spec.issuer.keypair ?? spec.name
  if (keys.custody === undefined || keys.custody.leave === true) {
    const place = spec.issuer.keypair === undefined ? ['issuer'] : ['issuer', 'keypair']
    checkGivenKey(keypair, algorithm, [...at, ...place], context)
  }
  return {
    endpoint: spec.name,
    issuer,
    algorithm,
    keypair,
    isTrustDomain: spec.preset === 'spiffe',
    maxTokenSeconds: ttlSeconds,
    claims,
    rotateSeconds: (keys.rotateDays ?? defaultRotateDays) * daySeconds,
    readBack: keys.readBack ?? 'issuer',
    cdnSeconds: keys.cdnSeconds,
    destinations: published,
    custody: keys.custody === undefined ? undefined : readCustody(keys.custody, spec, at, context),
  }
}

const podTokenFile = '/var/run/secrets/kubernetes.io/serviceaccount/token'

function readCustody(spec: StsCustodySpec, endpoint: StsEndpointSpec, at: Path, context: BuildContext): TransitCustody {
  const place = endpoint.keys?.custody === undefined ? ['sts', 'keys', 'custody'] : [...at, 'keys', 'custody']
  const url = URL.parse(spec.address)
  if (url === null || url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== '') {
    const problem = 'must be an address such as https://openbao.example.com:8200, without a path'
    context.issues.error([...place, 'address'], problem)
  } else if (url.protocol === 'http:' && !isLoopbackHost(url.hostname)) {
    context.issues.error([...place, 'address'], 'must start with https://: http is accepted on this machine only')
  }
  if ((spec.token === undefined) === (spec.login === undefined)) {
    context.issues.error(place, 'needs "token" or "login", and not both')
  }
  const token = readSecret(spec.token, [...place, 'token'], context)
  const ca = typeof spec.ca === 'string' ? spec.ca : readSecret(spec.ca, [...place, 'ca'], context)
  return {
    address: url?.origin ?? spec.address,
    namespace: spec.namespace,
    mount: spec.mount ?? 'transit',
    key: spec.key ?? endpoint.name,
    ca,
    login:
      spec.login === undefined
        ? { type: 'token', token: token ?? '' }
        : {
            type: 'jwt',
            mount: spec.login.mount ?? 'kubernetes',
            role: spec.login.role,
            jwtFile: spec.login.jwtFile ?? podTokenFile,
          },
    leave: spec.leave ?? false,
  }
}

/**
 * A destination of all endpoints is the root of the issuers' host, and each issuer is `below` it; a destination of
 * one endpoint is its issuer.
 */
function readDestination(spec: StsDestinationSpec, below: string, at: Path, context: BuildContext): PublishDestination {
  const invalidate = readInvalidation(spec.invalidate, [...at, 'invalidate'], context)
  switch (spec.type) {
    case 'folder':
      return { type: 'folder', folder: spec.folder + below, ...invalidate }
    case 'configmap': {
      context.refer('target', spec.target, [...at, 'target'])
      const { target, namespace, name } = spec
      return { type: 'configmap', target, namespace, name, ...invalidate }
    }
    case 's3': {
      const id = readSecret(spec.accessKeyId, [...at, 'accessKeyId'], context)
      const secret = readSecret(spec.secretAccessKey, [...at, 'secretAccessKey'], context)
      if ((spec.accessKeyId === undefined) !== (spec.secretAccessKey === undefined)) {
        context.issues.error([...at, 'accessKeyId'], 'set both accessKeyId and secretAccessKey')
      }
      return {
        type: 's3',
        bucket: spec.bucket,
        prefix: `${spec.prefix ?? ''}${below}`.replace(/^\//, ''),
        region: spec.region ?? 'us-east-1',
        endpoint: spec.endpoint,
        pathStyle: spec.pathStyle ?? spec.endpoint !== undefined,
        credentials:
          id === undefined || secret === undefined ? undefined : { accessKeyId: id, secretAccessKey: secret },
        ...invalidate,
      }
    }
  }
}

/** Unique for each destination, without secrets. */
export function placeOf(destination: PublishDestination): string {
  switch (destination.type) {
    case 'folder':
      return destination.folder.replace(/\/+$/, '')
    case 's3':
      return `${destination.endpoint ?? 's3:/'}/${destination.bucket}/${destination.prefix}`
    case 'configmap':
      return `${destination.target}/${destination.namespace}/${destination.name}`
  }
}

function readInvalidation(
  spec: StsDestinationSpec['invalidate'],
  at: Path,
  context: BuildContext,
): Pick<PublishDestination, 'invalidate'> {
  if (spec === undefined) return {}
  const secret = readSecret(spec.secret, [...at, 'secret'], context)
  return {
    invalidate: {
      url: spec.url,
      header: spec.header,
      secret,
    },
  }
}

function readSecret(
  spec: { readonly secretName: string; readonly secretKey: string } | undefined,
  at: Path,
  { state, issues }: BuildContext,
): string | undefined {
  if (spec === undefined) return undefined
  const answer = state.secrets.read(spec.secretName, spec.secretKey)
  if ('value' in answer) return answer.value
  if (answer.absent && !state.strictSecrets) issues.warning([...at, 'secretName'], answer.problem)
  else issues.error([...at, 'secretName'], answer.problem)
  return undefined
}

/**
 * Reports a private key of this name, in `keys/` or a secret, that can't sign with the algorithm. A missing one is
 * created later. Always reads the secret, so that a source that fetches secrets has it when keys are looked up.
 */
export function checkGivenKey(name: string, algorithm: TokenAlgorithm, at: Path, context: BuildContext): void {
  const inSecret = context.state.secrets.read(name, 'tls.key')
  try {
    const inFile = keyFile(name, context)
    if (inFile !== undefined) read(inFile.text, inFile.place, algorithm)
    else if ('value' in inSecret) read(inSecret.value, `tls.key of the secret ${name}`, algorithm)
    else if (!inSecret.absent && isKeyName(name)) throw new Error(inSecret.problem)
  } catch (error) {
    context.issues.error(at, error instanceof Error ? error.message : String(error))
  }
}

function keyFile(name: string, { folder, readFile }: BuildContext): { text: string; place: string } | undefined {
  if (!isKeyName(name)) return undefined
  for (const ending of privateKeyEndings) {
    const file = join(folder, 'keys', name + ending)
    if (!existsSync(file)) continue
    const text = readFile(file)
    if (looksLikePrivateKey(text)) return { text, place: `keys/${name}${ending}` }
  }
  return undefined
}

function read(text: string, place: string, algorithm: TokenAlgorithm): void {
  try {
    readSigningKey(text, algorithm)
  } catch (error) {
    throw new Error(`${place} ${error instanceof Error ? error.message : String(error)}`)
  }
}

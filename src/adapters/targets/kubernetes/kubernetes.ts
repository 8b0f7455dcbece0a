import { resolve } from 'node:path'
import { parseTrustedUrl } from '#kernel/address.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import { type KubernetesConnection, podAuthorityFile, podTokenFile } from '#protocols/kubernetes/api-connection.ts'
import { choice, flag, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, type ParsedParameters, parameterReport, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { ClusterApi, ClusterWatches, KubernetesCluster } from '#sdk/target/kubernetes-cluster.ts'
import type { AccountTokenVerifier } from '#sdk/target/token-review.ts'
import type { ServiceTokenCall } from '#sdk/target-module/service-tokens.ts'
import { defineTarget, type PreparedTarget, type TargetHost } from '#sdk/target-module/target-module.ts'

const className = 'targets.Kubernetes'
const defaultTimeoutMillis = 5_000

const tokenTypes = ['STATIC', 'LEGACY', 'TOKENAPI', 'OIDC', 'legacy', 'static', 'tokenapi', 'oidc'] as const
/** What a pod calls its own cluster. */
const ownHost = 'kubernetes.default.svc'

const parameters = {
  url: parsed('https address', parseTrustedUrl, {
    about: 'The `https:` address of the API server; `http:` on this machine only.',
    requirement: 'one of `url`, `kubeconfig`, `inCluster`',
  }),
  token: text({ about: 'The token to call it with.', requirement: 'with `url`, or a token file', secret: true }),
  tokenFile: text({ about: 'A file with the token; reloaded when it changes.' }),
  tokenPath: text({ about: 'The older name of `tokenFile`.' }),
  tokenType: choice(tokenTypes, {
    about:
      '`STATIC`: `token`; `LEGACY`: the account of the pod Gatehouse runs in; `TOKENAPI`: `tokenPath`; `OIDC`: tokens of an own identity provider. Other types are an error. When absent: `STATIC`, or `LEGACY` for `https://kubernetes.default.svc` without a token.',
    fallback: undefined,
  }),
  oidcIdp: text({
    about: 'The identity provider whose tokens the API server trusts.',
    requirement: 'with `tokenType: OIDC`',
    reference: 'identity provider',
  }),
  oidcSub: text({ about: 'The `sub` of those tokens.', requirement: 'with `tokenType: OIDC`' }),
  oidcAudience: text({ about: 'The `aud` of those tokens.', requirement: 'with `tokenType: OIDC`' }),
  oidcIssuerHost: text({
    about: 'The host in the `iss` of those tokens; the first of the identity provider when absent.',
  }),
  useToken: flag({ about: 'Passwords are not supported, so `"false"` is an error.', fallback: true }),
  caFile: text({ about: 'A file with the certificate authority of the API server; the system’s own when absent.' }),
  certPath: text({ about: 'The older name of `caFile`.' }),
  certificate: text({ about: 'The certificate authority itself, as PEM text, or that in base64.' }),
  kubeconfig: text({
    about: 'A kubeconfig file. One that skips the verification of the server or uses a password is refused.',
    requirement: 'one of `url`, `kubeconfig`, `inCluster`',
  }),
  context: text({ about: 'The context of the kubeconfig; its current one when absent.' }),
  inCluster: flag({
    about: 'Use the API server and the account of the pod that Gatehouse runs in.',
    requirement: 'one of `url`, `kubeconfig`, `inCluster`',
  }),
  timeoutMillis: wholeNumber({
    about: 'How long a call may take, in milliseconds.',
    fallback: defaultTimeoutMillis,
    min: 100,
    max: 60_000,
  }),
  timeout: text({ about: 'The older name of `timeoutMillis`.' }),
  label: text({ about: 'What users call the cluster; its name when absent.' }),
  gitUrl: text({ about: 'Not used: objects are written to the cluster, not to Git.' }),
  drqueues: text({ about: 'Not used.' }),
  userName: text({ about: 'Not supported; an error when set.' }),
  password: text({ about: 'Not supported; an error when set.', secret: true }),
} satisfies ParameterTable

interface KubernetesConfig {
  readonly connection: KubernetesConnection
  readonly timeoutMillis: number
  readonly label?: string | undefined
  /** The tokens to call the API server with. */
  readonly tokens?: ServiceTokenCall | undefined
}

export function parseKubernetes(params: Params, issues: Issues, context: ParseContext): KubernetesConfig {
  const given = readParameters(parameters, params, issues, context)
  const { isSet, error, refuse } = parameterReport(params, issues)
  const file = (path: string | undefined) => (path === undefined ? undefined : resolve(context.folder, path))

  for (const name of ['userName', 'password'] as const) refuse(name, 'is not supported: API servers take no passwords')
  if (!given.useToken) error('useToken', '"useToken" must be "true": passwords are not supported')

  const ways = (['url', 'kubeconfig', 'inCluster'] as const).filter((name) =>
    name === 'inCluster' ? given.inCluster : isSet(name),
  )
  const [way, second] = ways
  if (way === undefined) error('url', 'one of "url", "kubeconfig" and "inCluster" is required')
  if (second !== undefined) error(second, `"${second}" cannot be given beside "${way}"`)
  if (way !== 'kubeconfig') refuse('context', 'belongs to "kubeconfig"')
  if (isSet('timeoutMillis')) refuse('timeout', 'is the older name of "timeoutMillis"; remove one')
  const timeoutMillis = given.timeout === undefined ? given.timeoutMillis : readTimeout(given.timeout, error)
  const { label } = given
  if (given.gitUrl !== undefined && given.gitUrl !== '') {
    const text = '"gitUrl" is not used: objects are written to the cluster, not to Git'
    issues.warning(params.pathOf('gitUrl'), text)
  }
  if (way !== 'url') {
    for (const name of ['token', 'tokenFile', 'tokenPath', 'tokenType', 'caFile', 'certPath', 'certificate'] as const) {
      refuse(name, 'belongs to "url"')
    }
    if (given.kubeconfig === undefined) return { connection: { kind: 'in-cluster' }, timeoutMillis, label }
    const path = resolve(context.folder, given.kubeconfig)
    return { connection: { kind: 'kubeconfig', file: path, context: given.context }, timeoutMillis, label }
  }

  const hasToken = (['token', 'tokenFile', 'tokenPath'] as const).some(isSet)
  const usual = given.url?.hostname === ownHost && !hasToken ? 'LEGACY' : 'STATIC'
  const type = given.tokenType?.toUpperCase() ?? usual
  const tokens = readServiceTokens(type, given, error)
  const legacy = type === 'LEGACY'
  if (isSet('tokenFile')) refuse('tokenPath', 'is the older name of "tokenFile"; remove one')
  const tokenFile = legacy ? podTokenFile : file(given.tokenFile ?? given.tokenPath)
  if (legacy || tokenFile !== undefined) refuse('token', 'cannot be given beside a token file')
  if (type === 'OIDC') {
    for (const name of ['token', 'tokenFile', 'tokenPath'] as const)
      refuse(name, 'cannot be given where tokenType is "OIDC"')
  } else if (tokenFile === undefined && !isSet('token')) {
    error('token', '"token" or "tokenFile" is required: the API server rejects anonymous calls')
  }
  if (type === 'TOKENAPI' && tokenFile === undefined) {
    error('tokenPath', '"tokenPath" is required where tokenType is "TOKENAPI"')
  }
  if (isSet('caFile')) refuse('certPath', 'is the older name of "caFile"; remove one')
  const authorityFile = file(given.caFile ?? given.certPath)
  if (authorityFile !== undefined) refuse('certificate', 'cannot be given beside "caFile"')
  return {
    timeoutMillis,
    label,
    tokens,
    connection: {
      kind: 'address',
      url: given.url ?? new URL('https://kubernetes.default.svc'),
      token: given.token,
      tokenFile,
      authority: readCertificate(given.certificate),
      authorityFile: authorityFile ?? (legacy && !isSet('certificate') ? podAuthorityFile : undefined),
    },
  }
}

function readTimeout(text: string, error: (name: 'timeout', message: string) => void): number {
  const millis = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (millis >= 100 && millis <= 60_000) return millis
  error('timeout', `"timeout" must be a whole number from 100 to 60000, not "${text}"`)
  return defaultTimeoutMillis
}

type Given = ParsedParameters<typeof parameters>
type Report = ReturnType<typeof parameterReport>['error']

function readServiceTokens(type: string, given: Given, error: Report): ServiceTokenCall | undefined {
  const { oidcIdp, oidcSub, oidcAudience, oidcIssuerHost } = given
  // Charts give these with every type.
  if (type !== 'OIDC') return undefined
  for (const name of ['oidcIdp', 'oidcSub', 'oidcAudience'] as const) {
    if ((given[name] ?? '') === '') error(name, `"${name}" is required where tokenType is "OIDC"`)
  }
  return {
    issuer: oidcIdp ?? '',
    subject: oidcSub ?? '',
    audience: oidcAudience ?? '',
    ...(oidcIssuerHost === undefined || oidcIssuerHost === '' ? {} : { host: oidcIssuerHost }),
  }
}

/** PEM, or PEM in base64, as kubeconfig files have it. */
function readCertificate(text: string | undefined): string | undefined {
  if (text === undefined || text.includes('-----BEGIN')) return text
  const decoded = Buffer.from(text, 'base64').toString('utf8')
  return decoded.includes('-----BEGIN') ? decoded : text
}

/**
 * A cluster. It reviews and verifies tokens, and other targets store users in its objects. It has no users of its own, so
 * workflows can't provision to it.
 */
export default defineTarget<KubernetesConfig>({
  className,
  aliases: ['com.tremolosecurity.unison.openshiftv3.OpenShiftTarget'],
  parameters,
  parse: parseKubernetes,
  passwords: () => false,
  create: openCluster,
})

type Cluster = AccountTokenVerifier & KubernetesCluster & Required<Pick<KubernetesCluster, 'calls' | 'watches'>>

/** Its parts are loaded on first use: a gateway without such a target is smaller and starts sooner. */
async function openCluster(config: KubernetesConfig, host: TargetHost): Promise<Cluster> {
  const { timeoutMillis, label, tokens } = config
  const { name, clock, log } = host
  const issueToken = tokens && serviceTokens(tokens, host)
  const connection = issueToken === undefined ? config.connection : { ...config.connection, issueToken }
  const { ObjectClient } = await import('#protocols/kubernetes/object-client.ts')
  const { createServiceAccountVerifier } = await import('#protocols/kubernetes/service-account-verifier.ts')
  const { createTokenReviewClient } = await import('#protocols/kubernetes/token-review-client.ts')
  const client = await createTokenReviewClient(connection, { timeoutMillis })
  const verifier = await createServiceAccountVerifier(connection, { timeoutMillis, clock, log })
  const objects = await ObjectClient.open(connection, { who: `target "${name}"`, timeoutMillis })
  return {
    objects,
    calls: objects,
    watches: objects,
    ...(label === undefined || label === '' ? {} : { label }),
    verifyAccountToken: (token) => verifier.verify(token),
    hasKeys: () => verifier.hasKeys(),
    reviewToken: (token, audiences) => client.review(token, audiences),
    ...withoutUsers,
    close: () => {
      verifier.close()
      client.close()
      objects.close()
    },
  }
}

/** Issues a token for the gateway's own calls, and uses it for most of its lifetime. */
function serviceTokens(call: ServiceTokenCall, { issuers, clock, name }: TargetHost): () => Promise<string> {
  let issued: { readonly token: string; readonly expires: Date } | undefined
  return async () => {
    if (issuers === undefined) throw new Error(`target "${name}": there is no identity provider "${call.issuer}"`)
    const isFresh = issued !== undefined && issued.expires.getTime() - clock().getTime() > renewalMillis
    if (!isFresh) issued = await issuers.serviceToken(call)
    return issued?.token ?? ''
  }
}

/** A token that is about to expire might do so on its way. */
const renewalMillis = 20_000

/**
 * The cluster of the pod that Gatehouse runs in. It is opened on first use, so that a configuration that names it loads
 * outside of a cluster.
 */
export const ownCluster: PreparedTarget = {
  className,
  create: async (host) => {
    let opened: Promise<Cluster> | undefined
    const open = async (): Promise<Cluster> => {
      opened ??= openCluster({ connection: { kind: 'in-cluster' }, timeoutMillis: defaultTimeoutMillis }, host)
      try {
        return await opened
      } catch (cause) {
        opened = undefined
        const reason = cause instanceof Error ? cause.message : String(cause)
        const text = `target "${host.name}" is the cluster that Gatehouse runs in: ${reason}`
        throw new GatewayError('TARGET_FAILED', text, { cause })
      }
    }
    const objects: ClusterApi = {
      get: async (...args) => (await open()).objects.get(...args),
      list: async (...args) => (await open()).objects.list(...args),
      create: async (...args) => (await open()).objects.create(...args),
      replace: async (...args) => (await open()).objects.replace(...args),
      patch: async (...args) => (await open()).objects.patch(...args),
      remove: async (...args) => (await open()).objects.remove(...args),
      servedKind: async (...args) => (await open()).objects.servedKind(...args),
    }
    const watches: ClusterWatches = {
      snapshot: async (...args) => (await open()).watches.snapshot(...args),
      watch: async function* (...args) {
        yield* (await open()).watches.watch(...args)
      },
      replaceStatus: async (...args) => (await open()).watches.replaceStatus(...args),
    }
    const cluster: Cluster = {
      objects,
      watches,
      calls: { address: `https://${ownHost}`, call: async (call) => (await open()).calls.call(call) },
      verifyAccountToken: async (token) => (await open()).verifyAccountToken(token),
      reviewToken: async (token, audiences) => (await open()).reviewToken(token, audiences),
      ...withoutUsers,
      close: async () => (await opened?.catch(() => undefined))?.close?.(),
    }
    return cluster
  },
}

async function noUsers(): Promise<never> {
  throw new GatewayError('NOT_SUPPORTED', 'users are not provisioned to a Kubernetes target')
}

const withoutUsers = { findUser: noUsers, createUser: noUsers, syncUser: noUsers, deleteUser: noUsers }

import { resolve } from 'node:path'
import { parseTrustedUrl } from '#kernel/address.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import { type KubernetesConnection, podAuthorityFile, podTokenFile } from '#protocols/kubernetes/api-connection.ts'
import { choice, flag, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, parameterReport, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { ClusterApi, KubernetesCluster } from '#sdk/target/kubernetes-cluster.ts'
import { defineTarget, type PreparedTarget, type TargetHost } from '#sdk/target/target-module.ts'
import type { AccountTokenVerifier } from '#sdk/target/token-review.ts'

const className = 'targets.Kubernetes'
const defaultTimeoutMillis = 5_000

const tokenTypes = ['STATIC', 'LEGACY', 'TOKENAPI', 'legacy', 'static', 'tokenapi'] as const

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
      '`STATIC`: `token`; `LEGACY`: the account of the pod Gatehouse runs in; `TOKENAPI`: `tokenPath`. Other types are an error.',
    fallback: 'STATIC',
  }),
  useToken: flag({ about: 'Passwords are not supported, so `"false"` is an error.', fallback: true }),
  caFile: text({ about: 'A file with the certificate authority of the API server; the system’s own when absent.' }),
  certificate: text({ about: 'The certificate authority itself, as PEM text.' }),
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
  userName: text({ about: 'Not supported; an error when set.' }),
  password: text({ about: 'Not supported; an error when set.', secret: true }),
} satisfies ParameterTable

interface KubernetesConfig {
  readonly connection: KubernetesConnection
  readonly timeoutMillis: number
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
  const { timeoutMillis } = given
  if (way !== 'url') {
    for (const name of ['token', 'tokenFile', 'tokenPath', 'tokenType', 'caFile', 'certificate'] as const) {
      refuse(name, 'belongs to "url"')
    }
    if (given.kubeconfig === undefined) return { connection: { kind: 'in-cluster' }, timeoutMillis }
    const path = resolve(context.folder, given.kubeconfig)
    return { connection: { kind: 'kubeconfig', file: path, context: given.context }, timeoutMillis }
  }

  const type = given.tokenType.toUpperCase()
  const legacy = type === 'LEGACY'
  if (isSet('tokenFile')) refuse('tokenPath', 'is the older name of "tokenFile"; remove one')
  const tokenFile = legacy ? podTokenFile : file(given.tokenFile ?? given.tokenPath)
  if (legacy || tokenFile !== undefined) refuse('token', 'cannot be given beside a token file')
  if (tokenFile === undefined && !isSet('token')) {
    error('token', '"token" or "tokenFile" is required: the API server rejects anonymous calls')
  }
  if (type === 'TOKENAPI' && tokenFile === undefined) {
    error('tokenPath', '"tokenPath" is required where tokenType is "TOKENAPI"')
  }
  if (isSet('caFile')) refuse('certificate', 'cannot be given beside "caFile"')
  return {
    timeoutMillis,
    connection: {
      kind: 'address',
      url: given.url ?? new URL('https://kubernetes.default.svc'),
      token: given.token,
      tokenFile,
      authority: given.certificate,
      authorityFile: file(given.caFile) ?? (legacy && !isSet('certificate') ? podAuthorityFile : undefined),
    },
  }
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
  create: openCluster,
})

type Cluster = AccountTokenVerifier & KubernetesCluster

/** Its parts are loaded on first use: a gateway without such a target is smaller and starts sooner. */
async function openCluster({ connection, timeoutMillis }: KubernetesConfig, host: TargetHost): Promise<Cluster> {
  const { name, clock, log } = host
  const { ObjectClient } = await import('#protocols/kubernetes/object-client.ts')
  const { createServiceAccountVerifier } = await import('#protocols/kubernetes/service-account-verifier.ts')
  const { createTokenReviewClient } = await import('#protocols/kubernetes/token-review-client.ts')
  const client = await createTokenReviewClient(connection, { timeoutMillis })
  const verifier = await createServiceAccountVerifier(connection, { timeoutMillis, clock, log })
  const objects = await ObjectClient.open(connection, { who: `target "${name}"`, timeoutMillis })
  return {
    objects,
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
    const cluster: Cluster = {
      objects,
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

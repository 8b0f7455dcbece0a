import { createPrivateKey, X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import {
  type CertificateWithKey,
  type GivenWebhookTls,
  type MadeWebhookTls,
  type StsWebhookConfig,
  webhookPath,
} from '#config/configuration/sts-webhook.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import { type StsWebhookSpec, stsWebhookSchema } from '#config/kinds/sts.ts'
import { parseHostPort } from '#kernel/address.ts'
import type { Path } from '#kernel/issues.ts'

const at: Path = ['sts', 'injector', 'webhook']
const kubernetesClass = 'targets.Kubernetes'
const defaultConfiguration = 'gatehouse-sts'
const servicePort = 443
/** Settings that apply only to a generated certificate. */
const ofMade = ['cluster', 'service', 'url', 'configuration'] as const

/** `sts.injector.webhook`; undefined, with issues filed, if it is unusable. */
export function buildStsWebhook(value: unknown, context: BuildContext): StsWebhookConfig | undefined {
  const spec = context.part(stsWebhookSchema, value, at)
  if (spec === undefined) return undefined
  const isGiven = spec.secretName !== undefined || spec.certFile !== undefined || spec.keyFile !== undefined
  const tls = isGiven ? readGiven(spec, context) : readMade(spec, context)
  const clientAuthorities = attempt('clientAuthorities', context, () =>
    spec.clientAuthorities === undefined ? undefined : readAuthorities(readFile(spec.clientAuthorities, context)),
  )
  const listen = attempt('listen', context, () => parseHostPort(spec.listen))
  if (tls === undefined || listen === undefined) return undefined
  return { at: context.at(at), listen, clientAuthorities, tls }
}

function readGiven(spec: StsWebhookSpec, context: BuildContext): GivenWebhookTls | undefined {
  const { issues } = context
  for (const name of ofMade) {
    if (spec[name] === undefined) continue
    issues.error([...at, name], 'counts only where the certificate is made by Gatehouse, and one is given')
  }
  const pair = spec.secretName === undefined ? readPairOfFiles(spec, context) : readSecret(spec, context)
  const place = spec.secretName === undefined ? 'certFile' : 'secretName'
  const { certFile, keyFile } = spec
  const files =
    spec.secretName !== undefined || certFile === undefined || keyFile === undefined
      ? undefined
      : { certFile: resolve(context.folder, certFile), keyFile: resolve(context.folder, keyFile) }
  return pair && attempt(place, context, () => ({ kind: 'given', ...checkedPair(pair), files }))
}

function readSecret(spec: StsWebhookSpec, { state, issues }: BuildContext): CertificateWithKey | undefined {
  const { secretName = '' } = spec
  if (spec.certFile !== undefined || spec.keyFile !== undefined) {
    issues.error([...at, 'certFile'], 'the certificate is in the secret already')
  }
  const found: string[] = []
  for (const key of ['tls.crt', 'tls.key']) {
    const answer = state.secrets.read(secretName, key)
    if ('value' in answer) found.push(answer.value)
    else if (answer.absent && !state.strictSecrets) issues.warning([...at, 'secretName'], answer.problem)
    else issues.error([...at, 'secretName'], answer.problem)
  }
  const [certificate, privateKey] = found
  return certificate === undefined || privateKey === undefined ? undefined : { certificate, privateKey }
}

function readPairOfFiles({ certFile, keyFile }: StsWebhookSpec, context: BuildContext): CertificateWithKey | undefined {
  if (certFile === undefined || keyFile === undefined) {
    context.issues.error([...at, certFile === undefined ? 'keyFile' : 'certFile'], 'set both certFile and keyFile')
    return undefined
  }
  const certificate = attempt('certFile', context, () => readFile(certFile, context))
  const privateKey = attempt('keyFile', context, () => readFile(keyFile, context))
  return certificate === undefined || privateKey === undefined ? undefined : { certificate, privateKey }
}

function checkedPair(pair: CertificateWithKey): CertificateWithKey {
  if (!new X509Certificate(pair.certificate).checkPrivateKey(createPrivateKey(pair.privateKey))) {
    throw new Error('the private key is not that of the certificate')
  }
  return pair
}

function readAuthorities(pem: string): string {
  new X509Certificate(pem)
  return pem
}

function readMade(spec: StsWebhookSpec, context: BuildContext): MadeWebhookTls | undefined {
  const client = readClient(spec, context)
  const cluster = readCluster(spec, context)
  if (client === undefined || cluster === undefined) return undefined
  return { kind: 'made', cluster, client, configuration: spec.configuration ?? defaultConfiguration }
}

function readClient({ service, url }: StsWebhookSpec, context: BuildContext): MadeWebhookTls['client'] | undefined {
  if ((service === undefined) === (url === undefined)) {
    const problem = 'set either "service" or "url", so that the API server knows where to call'
    context.issues.error([...at, 'service'], problem)
    return undefined
  }
  if (service !== undefined) return { service: { ...service, port: service.port ?? servicePort, path: webhookPath } }
  return attempt('url', context, () => ({ url: `${readOrigin(url ?? '')}${webhookPath}` }))
}

function readOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'https:' || url.href !== `${url.origin}/`) {
    throw new Error('must be an https address without user, path, query or fragment')
  }
  if (url.hostname.startsWith('[')) {
    throw new Error('must name a host or an IPv4 address: certificates for IPv6 addresses are not made here')
  }
  return url.origin
}

function readCluster({ cluster }: StsWebhookSpec, context: BuildContext): string | undefined {
  const targets = [...context.state.draft.targets.values()].map(({ config }) => config)
  const found = targets.filter(({ target }) => target.className === kubernetesClass).map(({ name }) => name)
  const path = [...at, 'cluster']
  if (cluster === undefined) {
    const [only] = found
    if (only !== undefined && found.length === 1) {
      context.refer('target', only, path)
      return only
    }
    const have = found.length === 0 ? 'there is none' : `there are ${found.join(', ')}`
    context.issues.error(path, `is required unless there is exactly one target of class ${kubernetesClass}; ${have}`)
    return undefined
  }
  context.refer('target', cluster, path)
  if (targets.some(({ name }) => name === cluster) && !found.includes(cluster)) {
    context.issues.error(path, `the target "${cluster}" is not a cluster (class ${kubernetesClass})`)
  }
  return cluster
}

const readFile = (file: string, context: BuildContext): string => context.readFile(resolve(context.folder, file))

/** The result of `read`; undefined, with an issue filed, if it throws. */
function attempt<T>(field: keyof StsWebhookSpec, { issues }: BuildContext, read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    issues.error([...at, field], error instanceof Error ? error.message : String(error))
    return undefined
  }
}

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { InjectorConfig } from '#modules/filters/sts-injector/pod-injection.ts'
import { type InjectorSettings, isQuantity } from '#protocols/admission/injector-settings.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { choice, flag, list, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const quantity = (about: string) =>
  parsed(
    'amount',
    (value) => {
      if (!isQuantity(value)) throw new Error(`"${value}" is not an amount such as "10m" or "16Mi"`)
      return value
    },
    { about },
  )

const injectorParameters = {
  tokenService: parsed('address', parseTokenService, {
    about: 'Where pods reach the token service, such as https://gatehouse.example.com.',
    required: true,
  }),
  image: text({
    about: 'The sidecar’s image, with a POSIX shell and curl 7.84 or later. Name it by its digest.',
    fallback: 'docker.io/curlimages/curl:8.12.1',
  }),
  imagePullPolicy: choice(['IfNotPresent', 'Always', 'Never'], {
    about: 'When nodes fetch the image.',
    fallback: 'IfNotPresent',
  }),
  imagePullSecrets: list({ about: 'Secrets for the image, which must be in the namespace of every pod.' }),
  trustedCertificates: text({
    about: 'A PEM file that sidecars get for endpoints with explicit_certificate_trust.',
  }),
  trustConfigMap: text({
    about: 'A ConfigMap whose ca.crt is also trusted, if the namespace of the pod has it.',
    fallback: 'ouca',
  }),
  credentialSeconds: wholeNumber({
    about: 'Lifetime of the service-account token of the sidecar.',
    fallback: 3600,
    min: 600,
    max: 86_400,
  }),
  fileMode: choice(['auto', '0440', '0444'], {
    about: 'Mode of the token files; auto is as strict as the users and groups of the pod allow.',
    fallback: 'auto',
  }),
  nativeSidecars: flag({
    about: 'The cluster has native sidecars (Kubernetes 1.29 and later).',
    fallback: true,
  }),
  position: choice(['first', 'last'], {
    about: 'Where among the init containers the sidecar starts.',
    fallback: 'first',
  }),
  readinessProbe: flag({
    about: 'A pod is Ready only while all its tokens are valid. Otherwise only its start waits for them.',
    fallback: true,
  }),
  skipContainers: list({ about: 'Containers that get no token in any pod, unless the pod includes them.' }),
  whenNotInjectable: choice(['admit', 'refuse'], {
    about: 'What happens to a pod that does not get its tokens: it is admitted with a warning, or rejected.',
    fallback: undefined,
  }),
  refuseFaultyPods: flag({ about: 'An older name: true is whenNotInjectable: refuse.', fallback: false }),
  cluster: text({
    about: 'The Kubernetes target whose pods are injected: service accounts are read there, and events created.',
    reference: 'target',
  }),
  cpuRequest: quantity('The sidecar’s CPU request.'),
  cpuLimit: quantity('The sidecar’s CPU limit.'),
  memoryRequest: quantity('The sidecar’s memory request.'),
  memoryLimit: quantity('Memory limit of the sidecar; curl needs up to 16Mi.'),
}

const defaultResources = { cpuRequest: '5m', cpuLimit: '200m', memoryRequest: '8Mi', memoryLimit: '32Mi' }

function parseTokenService(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined
  const local = url?.protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname)
  if (url === undefined || !(url.protocol === 'https:' || local))
    throw new Error('must be an https address, such as https://gatehouse.example.com')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new Error('must have no user, query or fragment')
  }
  return url.href.replace(/\/$/, '')
}

/** The mutating webhook that gives pods their tokens: all endpoints of the token service in one answer. */
export default defineFilter<InjectorConfig>({
  className: 'filters.StsInjector',
  parameters: injectorParameters,
  answers: true,
  parse: (params, issues, context) => {
    const { whenNotInjectable, refuseFaultyPods, cluster, trustedCertificates, ...given } = readParameters(
      injectorParameters,
      params,
      issues,
      context,
    )
    let certificates: string | undefined
    if (trustedCertificates !== undefined) {
      try {
        certificates = readCertificates(context.readFile?.(resolve(context.folder, trustedCertificates)) ?? '')
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        issues.error(params.pathOf('trustedCertificates', 0), `"trustedCertificates": ${reason}`)
      }
    }
    const settings: InjectorSettings = {
      ...given,
      tokenService: given.tokenService ?? '',
      script: sidecarScript,
      certificates,
      resources: {
        cpuRequest: given.cpuRequest ?? defaultResources.cpuRequest,
        cpuLimit: given.cpuLimit ?? defaultResources.cpuLimit,
        memoryRequest: given.memoryRequest ?? defaultResources.memoryRequest,
        memoryLimit: given.memoryLimit ?? defaultResources.memoryLimit,
      },
    }
    return { settings, whenNotInjectable: whenNotInjectable ?? (refuseFaultyPods ? 'refuse' : 'admit'), cluster }
  },
  summarize: ({ settings, whenNotInjectable }) => [
    { label: 'token service', value: settings.tokenService },
    { label: 'pods that can’t be injected', value: whenNotInjectable },
  ],
  /** Loaded on first use: a gateway without this filter is smaller and starts sooner. */
  create: async (config, host) =>
    (await import('#modules/filters/sts-injector/pod-injection.ts')).createInjection(config, host),
})

const maxCertificates = 65_536

function readCertificates(pem: string): string {
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new Error('the file holds no certificate')
  if (pem.includes('PRIVATE KEY')) throw new Error('the file holds a private key, which must not go into pods')
  if (pem.length > maxCertificates) throw new Error('the file is longer than 64 KiB')
  return pem.trim()
}

const source = readFileSync(new URL('./sidecar.sh', import.meta.url), 'utf8')

/** The script of injected sidecars: `sidecar.sh` without its comments, since every pod has a copy. */
export const sidecarScript = source
  .split('\n')
  .filter((line) => !/^\s*(?:#.*)?$/.test(line))
  .join('\n')

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type InjectorSettings, isQuantity } from '#protocols/admission/injector-settings.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { choice, flag, list, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { InjectorConfig } from './pod-injection.ts'

const quantity = (fallback: string, about: string) =>
  parsed(
    'amount',
    (value) => {
      if (!isQuantity(value)) throw new Error(`"${value}" is not an amount such as "10m" or "16Mi"`)
      return value
    },
    { about, fallback },
  )

const injectorParameters = {
  tokenService: parsed('address', parseTokenService, {
    about: 'Where pods reach the token service, such as `https://gatehouse.example.com`; `http` on this machine only.',
    required: true,
  }),
  image: text({
    about: "The sidecar's image: a POSIX shell and curl 7.84 or later. Name it by its digest.",
    fallback: 'docker.io/curlimages/curl:8.12.1',
  }),
  imagePullPolicy: choice(['IfNotPresent', 'Always', 'Never'], {
    about: 'When nodes fetch the image.',
    fallback: 'IfNotPresent',
  }),
  imagePullSecrets: list({
    about: "Secrets for the image, added to those of the pod; they must be in the pod's namespace.",
  }),
  trustedCertificates: text({
    about:
      'A PEM file of the configuration folder, which sidecars get for endpoints with `explicit_certificate_trust`.',
  }),
  trustConfigMap: text({
    about: "A ConfigMap whose `ca.crt` is trusted too, where the pod's namespace has it.",
    fallback: 'ouca',
  }),
  credentialSeconds: wholeNumber({
    about: 'Lifetime of the service-account token of the sidecar.',
    fallback: 3600,
    min: 600,
    max: 86_400,
  }),
  fileMode: choice(['auto', '0440', '0444'], {
    about: 'Mode of the token files; `auto` is as strict as the users and groups of the pod allow, see below.',
    fallback: 'auto',
  }),
  nativeSidecars: flag({
    about:
      'The cluster has native sidecars (Kubernetes 1.29 and later). Otherwise the sidecar is a plain container, and containers may start before their token is there.',
    fallback: true,
  }),
  position: choice(['first', 'last'], {
    about: 'Where among the init containers a native sidecar starts.',
    fallback: 'first',
  }),
  readinessProbe: flag({
    about:
      'A pod is Ready only while all its tokens are valid, see [readiness](#readiness). Otherwise only its start waits for them.',
    fallback: true,
  }),
  skipContainers: list({
    about: 'Containers that get no token in any pod, unless the pod includes them by annotation.',
  }),
  whenNotInjectable: choice(['admit', 'refuse'], {
    about:
      "What happens to a pod that does not get what it asks for: `admit` admits it with a warning and without those tokens, `refuse` refuses it. See [pods that can't be injected](#pods-that-cant-be-injected).",
    requirement: 'no, `admit`',
    fallback: undefined,
  }),
  refuseFaultyPods: flag({ about: 'An older name: `true` is `whenNotInjectable: refuse`.', fallback: false }),
  cluster: text({
    about: 'The Kubernetes target whose pods are injected. Service accounts are read there, and events created.',
    requirement: "no, the webhook's cluster or the only Kubernetes target",
    reference: 'target',
  }),
  cpuRequest: quantity('5m', "The sidecar's CPU request."),
  cpuLimit: quantity('200m', "The sidecar's CPU limit."),
  memoryRequest: quantity('8Mi', "The sidecar's memory request."),
  memoryLimit: quantity(
    '32Mi',
    'Memory limit of the sidecar. It needs about 2 MB at rest, and up to 16 MB during each call of curl.',
  ),
}

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
        cpuRequest: given.cpuRequest,
        cpuLimit: given.cpuLimit,
        memoryRequest: given.memoryRequest,
        memoryLimit: given.memoryLimit,
      },
    }
    return { settings, whenNotInjectable: whenNotInjectable ?? (refuseFaultyPods ? 'refuse' : 'admit'), cluster }
  },
  summarize: ({ settings, whenNotInjectable }) => [
    { label: 'token service', value: settings.tokenService },
    { label: 'pods that can’t be injected', value: whenNotInjectable },
  ],
  /** Loaded on first use: a gateway without this filter is smaller and starts sooner. */
  create: async (config, host) => (await import('./pod-injection.ts')).createInjection(config, host),
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

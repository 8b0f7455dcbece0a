import { resolve } from 'node:path'
import { defaultResources, injectorParameters } from '#modules/filters/sts-injector/injector-parameters.ts'
import { sidecarScript } from '#modules/filters/sts-injector/sidecar-script.ts'
import type { InjectorSettings } from '#protocols/admission/injector-settings.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { readParameters } from '#sdk/module/parameters.ts'

export interface InjectorConfig {
  readonly settings: InjectorSettings
  readonly whenNotInjectable: 'admit' | 'refuse'
  /** Undefined: annotations of service accounts do not count, and owners get no events. */
  readonly cluster: string | undefined
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
  /** Loaded where there is such a filter: a gateway without one is smaller and starts sooner. */
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

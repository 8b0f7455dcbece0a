import { resolve } from 'node:path'
import { systemClock } from '#kernel/clock.ts'
import { processName } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import type { KubernetesConnection } from '#protocols/kubernetes/api-connection.ts'
import { type ConfigurationSource, folderSource, type SourceOptions } from './configuration-source.ts'

interface OpenOptions extends SourceOptions {
  /** A file; if absent, that of the environment's KUBECONFIG, else that of the pod in which this process runs. */
  readonly kubeconfig?: string | undefined
  /** Identifies this process among all that read the same objects; if absent, the pod does. */
  readonly identity?: string | undefined
  /** How long an API server may take to answer. */
  readonly answerMillis?: number | undefined
  readonly log: Logger
}

const scheme = 'kubernetes:'
const name = '[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?'
const place = new RegExp(`^${scheme}(${name})(?:/(${name}))?$`)
const defaultValues = 'gatehouse-config'

export const isKubernetes = (config: string): boolean => config.startsWith(scheme)

/**
 * A source by its name: `kubernetes:NAMESPACE`, with `/CONFIGMAP` if the values are not in the default one, or a
 * folder. Throws an Error if a cluster can't be reached.
 */
export async function openConfigurationSource(options: OpenOptions): Promise<ConfigurationSource> {
  const { config, environment, kubeconfig, answerMillis, log, ...others } = options
  const cluster = kubernetesPlace(config, kubeconfig, environment)
  if (cluster === undefined) return folderSource({ config, environment, ...others })
  const { namespace, connection, values } = cluster
  const { openKubernetesSource } = await import('./cluster-watch.ts')
  return openKubernetesSource({
    ...others,
    environment,
    namespace,
    connection,
    values: values ?? defaultValues,
    needsValues: values !== undefined,
    folder: resolve('.'),
    answerMillis,
    identity: options.identity ?? environment['POD_NAME'] ?? processName(),
    clock: systemClock,
    log,
  })
}

interface KubernetesPlace {
  readonly namespace: string
  /** The named ConfigMap of values. */
  readonly values: string | undefined
  readonly connection: KubernetesConnection
}

/** Undefined if the name is not one of a cluster. Throws an Error if it is malformed. */
export function kubernetesPlace(
  config: string,
  kubeconfig: string | undefined,
  environment: SourceOptions['environment'],
): KubernetesPlace | undefined {
  if (!isKubernetes(config)) return undefined
  const [, namespace, values] = place.exec(config) ?? []
  if (namespace === undefined) throw new Error(`"${config}" is not ${scheme}NAMESPACE or ${scheme}NAMESPACE/CONFIGMAP`)
  return { namespace, values, connection: connectionOf(kubeconfig ?? environment['KUBECONFIG']) }
}

const connectionOf = (kubeconfig: string | undefined): KubernetesConnection =>
  kubeconfig === undefined || kubeconfig === ''
    ? { kind: 'in-cluster' }
    : { kind: 'kubeconfig', file: resolve(kubeconfig) }

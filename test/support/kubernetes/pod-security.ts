import type { Pod } from '#protocols/admission/pod.ts'

interface Rule {
  readonly name: string
  /** The names of containers or volumes that break the rule. */
  offenders(pod: Pod): readonly string[]
}

type Loose = Readonly<Record<string, unknown>>

const object = (value: unknown): Loose => (typeof value === 'object' && value !== null ? { ...value } : {})
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const containers = (pod: Pod): readonly Loose[] => [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])]
const context = (container: Loose): Loose => object(container['securityContext'])

const eachContainer =
  (isBroken: (own: Loose, pod: Loose) => boolean) =>
  (pod: Pod): readonly string[] =>
    containers(pod)
      .filter((container) => isBroken(context(container), object(pod.spec.securityContext)))
      .map(({ name }) => String(name))

const volumeTypes = new Set([
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
  'image',
])

/** The checks of Kubernetes' pod security level `restricted`, with its exact comparisons. */
export const restrictedRules: readonly Rule[] = [
  { name: 'privileged', offenders: eachContainer((own) => own['privileged'] === true) },
  {
    name: 'allowPrivilegeEscalation',
    offenders: eachContainer((own) => own['allowPrivilegeEscalation'] !== false),
  },
  {
    name: 'capabilities',
    offenders: eachContainer((own) => {
      const capabilities = object(own['capabilities'])
      const added = list(capabilities['add']).some((name) => name !== 'NET_BIND_SERVICE')
      return added || !list(capabilities['drop']).includes('ALL')
    }),
  },
  {
    name: 'runAsNonRoot',
    offenders: eachContainer((own, pod) => (own['runAsNonRoot'] ?? pod['runAsNonRoot']) !== true),
  },
  { name: 'runAsUser', offenders: eachContainer((own, pod) => (own['runAsUser'] ?? pod['runAsUser']) === 0) },
  {
    name: 'seccompProfile',
    offenders: eachContainer((own, pod) => {
      const type = object(own['seccompProfile'] ?? pod['seccompProfile'])['type']
      return type !== 'RuntimeDefault' && type !== 'Localhost'
    }),
  },
  {
    name: 'procMount',
    offenders: eachContainer((own) => own['procMount'] !== undefined && own['procMount'] !== 'Default'),
  },
  {
    name: 'hostPorts',
    offenders: (pod) =>
      containers(pod)
        .filter(({ ports }) => list(ports).some((port) => object(port)['hostPort'] !== undefined))
        .map(({ name }) => String(name)),
  },
  {
    name: 'hostNamespaces',
    offenders: (pod) => ['hostNetwork', 'hostPID', 'hostIPC'].filter((name) => pod.spec[name] === true),
  },
  {
    name: 'volumes',
    offenders: (pod) =>
      (pod.spec.volumes ?? [])
        .filter((volume) => Object.keys(volume).some((key) => key !== 'name' && !volumeTypes.has(key)))
        .map(({ name }) => name),
  },
]

import { annotationDomain, labelName } from '#kernel/pod-label.ts'
import { type InjectedEndpoint, isQuantity, type SidecarResources } from '#protocols/admission/injector-settings.ts'
import type { Pod } from '#protocols/admission/pod.ts'

/** An endpoint that a pod asks for. */
export interface WantedEndpoint {
  readonly endpoint: InjectedEndpoint
  /** Of the annotation; undefined where the endpoint takes none. */
  readonly value: string | undefined
}

/** What a pod's labels and annotations ask of the injector. */
export interface PodWishes {
  readonly endpoints: readonly WantedEndpoint[]
  readonly user: number | undefined
  readonly group: number | undefined
  readonly createVolume: boolean
  readonly skip: ReadonlySet<string>
  /** Only these containers get tokens; all when undefined. */
  readonly include: ReadonlySet<string> | undefined
  readonly resources: Partial<SidecarResources>
  /** What was asked and cannot be done. */
  readonly faults: readonly string[]
}

const off = new Set(['false', 'disabled'])
const maxValue = 2048

const resourceAnnotations: Readonly<Record<keyof SidecarResources, string>> = {
  cpuRequest: 'sidecar-cpu-request',
  cpuLimit: 'sidecar-cpu-limit',
  memoryRequest: 'sidecar-memory-request',
  memoryLimit: 'sidecar-memory-limit',
}

const noWishes: PodWishes = {
  endpoints: [],
  user: undefined,
  group: undefined,
  createVolume: true,
  skip: new Set(),
  include: undefined,
  resources: {},
  faults: [],
}

export function readWishes(pod: Pod, endpoints: readonly InjectedEndpoint[]): PodWishes {
  const faults: string[] = []
  const labels = new Map(Object.entries(pod.metadata.labels ?? {}))
  const annotations = new Map(Object.entries(pod.metadata.annotations ?? {}))
  const annotation = (name: string): string | undefined => annotations.get(`${annotationDomain}${name}`)

  const wanted = endpoints.flatMap((endpoint): WantedEndpoint[] => {
    const name = labelName(endpoint.label)
    const chosen = labels.get(name)
    if (chosen === undefined || off.has(chosen.toLowerCase())) return []
    if (endpoint.valueVariable === undefined) return [{ endpoint, value: undefined }]
    const value = annotations.get(name)?.trim() ?? ''
    if (value !== '' && value.length <= maxValue && isPlainText(value)) return [{ endpoint, value }]
    faults.push(
      value === ''
        ? `the label "${name}" needs an annotation of the same name, so there is no token of "${endpoint.name}"`
        : `the annotation "${name}" is too long or not plain text, so there is no token of "${endpoint.name}"`,
    )
    return []
  })
  if (wanted.length === 0) return { ...noWishes, faults }
  const fault = (name: string, rule: string): undefined => {
    faults.push(`the annotation "${annotationDomain}${name}" ${rule}`)
    return undefined
  }
  const id = (name: string): number | undefined => {
    const text = annotation(name)
    if (text === undefined) return undefined
    const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
    if (number >= 1 && number <= 2_147_483_647) return number
    return fault(name, 'must be a number from 1 to 2147483647, since the sidecar never runs as root')
  }
  const flag = (name: string): boolean => {
    const text = annotation(name)?.toLowerCase() ?? 'true'
    if (text !== 'true' && text !== 'false') fault(name, 'must be "true" or "false"')
    return text !== 'false'
  }
  const names = (name: string): ReadonlySet<string> | undefined => {
    const listed = annotation(name)
      ?.split(/[,;]/)
      .map((text) => text.trim())
      .filter((text) => text !== '')
    return listed === undefined || listed.length === 0 ? undefined : new Set(listed)
  }
  if (!flag('non-root')) fault('non-root', 'cannot be "false": the sidecar never runs as root')
  return {
    endpoints: wanted,
    user: id('user'),
    group: id('group'),
    createVolume: flag('create-volume'),
    skip: names('skip-containers') ?? new Set(),
    include: names('include-containers'),
    resources: Object.fromEntries(
      Object.entries(resourceAnnotations).flatMap(([key, name]) => {
        const amount = annotation(name)
        if (amount === undefined) return []
        if (isQuantity(amount)) return [[key, amount]]
        fault(name, 'is not an amount such as "10m" or "16Mi"')
        return []
      }),
    ),
    faults,
  }
}

const isPlainText = (text: string): boolean => !/\p{Cc}/u.test(text)

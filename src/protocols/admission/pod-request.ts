import { suggestion } from '#kernel/suggest.ts'
import type { Template } from '#kernel/template.ts'
import { isQuantity, type SidecarResources, tokenFileOf, workloadName } from '#protocols/admission/injector-settings.ts'
import type { Pod } from '#protocols/admission/pod.ts'
import { annotationDomain, labelName, type PodEndpoint, type PodSetting } from './pod-endpoint.ts'

/** The service account of a pod, as far as the injector knows it. */
export interface PodAccount {
  readonly namespace: string
  readonly name: string
  /** The Kubernetes target of the pod. */
  readonly cluster?: string | undefined
  readonly annotations: Readonly<Record<string, string>>
  /** Why its annotations are unknown. */
  readonly problem?: string | undefined
}

/** An endpoint that a pod requests. */
export interface WantedEndpoint {
  readonly endpoint: PodEndpoint
  /** Values of settings and attributes of the workload, by name. */
  readonly values: ReadonlyMap<string, string>
  /** Required settings without a value, with advice. */
  readonly missing: ReadonlyMap<string, string>
}

/** What a pod's labels and annotations request of the injector. */
export interface PodRequest {
  readonly endpoints: readonly WantedEndpoint[]
  readonly user: number | undefined
  readonly group: number | undefined
  readonly createVolume: boolean
  readonly skip: ReadonlySet<string>
  /** Only these containers get tokens; all when undefined. */
  readonly include: ReadonlySet<string> | undefined
  readonly resources: Partial<SidecarResources>
  /** Requests that can't be fulfilled. */
  readonly faults: readonly string[]
}

const off = new Set(['false', 'disabled'])
const maxValue = 2048
const mostUnknown = 10

const resourceAnnotations: Readonly<Record<keyof SidecarResources, string>> = {
  cpuRequest: 'sidecar-cpu-request',
  cpuLimit: 'sidecar-cpu-limit',
  memoryRequest: 'sidecar-memory-request',
  memoryLimit: 'sidecar-memory-limit',
}

const emptyRequest: PodRequest = {
  endpoints: [],
  user: undefined,
  group: undefined,
  createVolume: true,
  skip: new Set(),
  include: undefined,
  resources: {},
  faults: [],
}

/** The endpoints that the pod's labels turn on. */
function labelledEndpoints(pod: Pod, endpoints: readonly PodEndpoint[]): readonly PodEndpoint[] {
  const labels = new Map(Object.entries(pod.metadata.labels ?? {}))
  return endpoints.filter(({ label }) => {
    const chosen = labels.get(labelName(label))
    return chosen !== undefined && !off.has(chosen.toLowerCase())
  })
}

/** True if an annotation of the service account could count. */
export const asksAccount = (pod: Pod, endpoints: readonly PodEndpoint[]): boolean =>
  labelledEndpoints(pod, endpoints).some((endpoint) =>
    settingsOf(endpoint).some((setting) =>
      annotationsFor(endpoint, setting).every((name) => !Object.hasOwn(pod.metadata.annotations ?? {}, name)),
    ),
  )

export function readPodRequest(pod: Pod, endpoints: readonly PodEndpoint[], account: PodAccount): PodRequest {
  const faults: string[] = []
  const annotations = new Map(Object.entries(pod.metadata.annotations ?? {}))
  const annotation = (name: string): string | undefined => annotations.get(`${annotationDomain}${name}`)
  const wanted = labelledEndpoints(pod, endpoints).flatMap((endpoint) =>
    readEndpoint(endpoint, annotations, account, faults),
  )
  if (wanted.length === 0) return { ...emptyRequest, faults }
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

/** Annotations below a label that name no setting, which are ignored: those of the pod, then those of its account. */
export function unknownSettings(
  pod: Pod,
  endpoints: readonly PodEndpoint[],
  { namespace, name: account, annotations }: PodAccount,
): readonly string[] {
  const known = knownAnnotations(endpoints)
  const labels = labelledEndpoints(pod, endpoints).map(({ label }) => `${labelName(label)}.`)
  const unknownIn = (given: object, owner: string): string[] =>
    Object.keys(given)
      .filter((name) => !known.includes(name) && labels.some((label) => name.startsWith(label)))
      .slice(0, mostUnknown)
      .map((name) => `the annotation "${name}"${owner} names no setting${suggestion(name, known)}`)
  return [
    ...unknownIn(pod.metadata.annotations ?? {}, ''),
    ...unknownIn(annotations, ` of the ServiceAccount ${namespace}/${account}`),
  ]
}

/** Whether an annotation of a service account has a meaning for these endpoints, or a warning about its name. */
export function isReadAnnotation(endpoints: readonly PodEndpoint[]): (name: string) => boolean {
  const known = new Set(knownAnnotations(endpoints))
  const labels = endpoints.map(({ label }) => `${labelName(label)}.`)
  return (name) => known.has(name) || labels.some((label) => name.startsWith(label))
}

const knownAnnotations = (endpoints: readonly PodEndpoint[]): readonly string[] =>
  endpoints.flatMap((endpoint) => [
    labelName(endpoint.label),
    ...settingsOf(endpoint).flatMap((setting) => annotationsFor(endpoint, setting)),
  ])

/** An endpoint without a preset has at most one setting: the value of its annotation. */
const settingsOf = ({ settings, valueVariable }: PodEndpoint): readonly PodSetting[] =>
  settings.length > 0 || valueVariable === undefined
    ? settings
    : [{ name: 'value', main: true, form: /^/, example: 'a text', needed: true }]

function annotationsFor({ label }: PodEndpoint, { name, main }: PodSetting): readonly string[] {
  const long = `${labelName(label)}.${name}`
  return main ? [labelName(label), long] : [long]
}

/** Nothing, with a fault, if an annotation has an invalid value. */
function readEndpoint(
  endpoint: PodEndpoint,
  annotations: ReadonlyMap<string, string>,
  account: PodAccount,
  faults: string[],
): WantedEndpoint[] {
  const values = new Map([
    ['namespace', account.namespace],
    ['saname', account.name],
    ['workload', workloadName(account.namespace, account.name)],
    ['token_file', tokenFileOf(endpoint.name)],
    ...(account.cluster === undefined ? [] : [['cluster', account.cluster] as const]),
  ])
  const missing = new Map<string, string>()
  const known = new Map(Object.entries(account.annotations))
  for (const setting of settingsOf(endpoint)) {
    const names = annotationsFor(endpoint, setting)
    const [label = '', long = label] = names
    const place = [annotations, known].flatMap((source) =>
      names.flatMap((name) => {
        const value = source.get(name)?.trim() ?? ''
        return value === '' ? [] : [{ name, value }]
      }),
    )[0]
    const { fallback } = setting
    const value =
      place?.value ?? (fallback?.attributes.every((name) => values.has(name)) ? fallbackText(fallback, values) : '')
    if (value === '') {
      if (setting.needed) missing.set(setting.name, complaint(endpoint, setting, setting.main ? label : long, account))
      continue
    }
    const what = place === undefined ? `setting "${setting.name}" of the endpoint` : `annotation "${place.name}"`
    if ((place !== undefined && value.length > maxValue) || !isPlainText(value)) {
      faults.push(`the ${what} is too long or not plain text, so there is no token of "${endpoint.name}"`)
      return []
    }
    if (!setting.form.test(value)) {
      faults.push(`the ${what} must be a value such as ${setting.example}, so there is no token of "${endpoint.name}"`)
      return []
    }
    values.set(setting.name, value)
  }
  return [{ endpoint, values, missing }]
}

const fallbackText = (text: Template, values: ReadonlyMap<string, string>): string =>
  text.render({ attribute: (name) => values.get(name) })

function complaint(
  { name: endpoint, label }: PodEndpoint,
  setting: PodSetting,
  annotation: string,
  { namespace, name, problem }: PodAccount,
): string {
  const needs = setting.main
    ? `the label "${labelName(label)}" needs an annotation of the same name`
    : `the label "${labelName(label)}" needs the annotation "${annotation}"`
  const where = problem === undefined ? '' : ` (ServiceAccount ${namespace}/${name}: ${problem})`
  return `${needs} on the pod or its ServiceAccount${where}, so there is no token of "${endpoint}"`
}

const isPlainText = (text: string): boolean => !/\p{Cc}/u.test(text)

import { posix } from 'node:path'
import {
  fileOf,
  type InjectorSettings,
  identityVolume,
  sidecarName,
  targetsVariable,
  tokenFileOf,
  tokenFolder,
  tokenVolume,
} from '#protocols/admission/injector-settings.ts'
import type { Container, EnvironmentVariable, NodeRequirement, Pod, Volume } from '#protocols/admission/pod.ts'
import {
  type PodAccount,
  type PodRequest,
  readPodRequest,
  unknownSettings,
  type WantedEndpoint,
} from '#protocols/admission/pod-request.ts'
import {
  escapeVariables,
  identityVolumeOf,
  sidecarContainer,
  tokenVolumeOf,
} from '#protocols/admission/sidecar-container.ts'
import type { PodEndpoint } from './pod-endpoint.ts'

/** The patch has a line for each, and no node runs so many. */
const mostContainers = 1000

export interface Injection {
  readonly pod: Pod
  /** The endpoints whose tokens the pod gets. */
  readonly endpoints: readonly string[]
  /** Requests of the pod that are not fulfilled, or not completely. */
  readonly faults: readonly string[]
  /** What its owner should know although all requests are fulfilled. */
  readonly warnings: readonly string[]
}

/**
 * A pod with the sidecar, volumes, mounts and variables that its labels request. The given one is not modified.
 * Nothing existing is removed or changed, and a pod that was injected before stays unchanged.
 */
export function inject(
  given: Pod,
  endpoints: readonly PodEndpoint[],
  settings: InjectorSettings,
  account: PodAccount,
): Injection {
  const pod = structuredClone(given)
  const asked = readPodRequest(pod, endpoints, account)
  const warnings = [...unknownSettings(pod, endpoints, account)]
  const none = (faults: readonly string[]): Injection => ({ pod: given, endpoints: [], faults, warnings })
  if (asked.endpoints.length === 0) return none(asked.faults)
  const obstacle = obstacleOf(pod)
  if (obstacle !== undefined) return none([...asked.faults, obstacle])

  const receiving = receivers(pod, asked, settings, warnings)
  const faults: string[] = []
  const request = { ...asked, endpoints: asked.endpoints.filter((one) => isComplete(one, receiving, faults)) }
  faults.push(...asked.faults)
  if (request.endpoints.length === 0) return none(faults)
  if (account.problem !== undefined) {
    const name = `${account.namespace}/${account.name}`
    warnings.push(`annotations of the ServiceAccount ${name} do not count: ${account.problem}`)
  }
  const sidecar = sidecarContainer(pod, request, settings)
  const present = containersOf(pod).find(({ name }) => name === sidecarName)
  if (present === undefined) {
    addSidecar(pod, sidecar, settings)
    if (!settings.nativeSidecars) warnings.push(...withoutNativeSidecars(pod))
  } else if (targetsOf(present) !== targetsOf(sidecar)) {
    faults.push(`the sidecar "${sidecarName}" that the pod brings fetches other tokens; it was left as it is`)
  }
  addVolumes(pod, request, settings, faults)
  addPullSecrets(pod, settings)
  for (const container of receiving) giveTokens(container, request.endpoints, faults)
  return { pod, endpoints: request.endpoints.map(({ endpoint }) => endpoint.name), faults, warnings }
}

/** False, with a fault, if a setting is missing and a container lacks the variables for it. */
function isComplete(
  { endpoint, missing }: WantedEndpoint,
  containers: readonly Container[],
  faults: string[],
): boolean {
  const complaints = Array.from(missing).filter(([setting]) =>
    containers.some(({ env }) => {
      const holders = holdersOf(endpoint, setting)
      return holders.length === 0 || !holders.every((holder) => env?.some(({ name }) => name === holder))
    }),
  )
  faults.push(...complaints.map(([, text]) => text))
  return complaints.length === 0
}

/** Why nothing can be injected at all. */
function obstacleOf(pod: Pod): string | undefined {
  if (containersOf(pod).length > mostContainers) return `pods of more than ${mostContainers} containers get no tokens`
  if (isForWindows(pod)) return 'pods on Windows get no tokens'
  const container = containersOf(pod).find(({ name }) => name === sidecarName)
  if (container !== undefined && targetsOf(container) === undefined) {
    return `a container of the pod is named "${sidecarName}", so there is no place for the sidecar, and no token`
  }
  const volume = pod.spec.volumes?.find(({ name }) => name === identityVolume)
  // A pod that was injected before has it with the sidecar.
  if (volume !== undefined && (container === undefined || !Object.hasOwn(volume, 'projected'))) {
    return `a volume of the pod is named "${identityVolume}", so there is no place for the sidecar's, and no token`
  }
  return undefined
}

const systemLabels = ['kubernetes.io/os', 'beta.kubernetes.io/os']
const windowsBuild = 'node.kubernetes.io/windows-build'

/** Whether the pod can only run on Windows nodes. */
function isForWindows({ spec }: Pod): boolean {
  if (spec.os?.name !== undefined) return spec.os.name === 'windows'
  const selector = spec.nodeSelector ?? {}
  if (Object.hasOwn(selector, windowsBuild) || systemLabels.some((label) => selector[label] === 'windows')) return true
  // One of the terms must hold, with all its expressions.
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  return terms.length > 0 && terms.every(({ matchExpressions }) => matchExpressions?.some(isOfWindows) === true)
}

function isOfWindows({ key, operator, values }: NodeRequirement): boolean {
  if (key === windowsBuild) return operator !== 'DoesNotExist' && operator !== 'NotIn'
  if (!systemLabels.includes(key)) return false
  if (operator === 'In') return (values ?? []).length > 0 && (values ?? []).every((value) => value === 'windows')
  return operator === 'NotIn' && (values ?? []).includes('linux')
}

function addSidecar(pod: Pod, sidecar: Container, { nativeSidecars, position }: InjectorSettings): void {
  const list = nativeSidecars ? 'initContainers' : 'containers'
  const present = pod.spec[list] ?? []
  // Tools treat the first plain container as the pod's main one.
  const first = nativeSidecars && position === 'first'
  pod.spec[list] = first ? [sidecar, ...present] : [...present, sidecar]
}

function withoutNativeSidecars(pod: Pod): string[] {
  const texts = ['containers may start before their tokens are there, since this cluster has no native sidecars']
  const isJob = pod.metadata.ownerReferences?.some(({ kind }) => kind === 'Job') === true
  if (isJob) texts.push('the job will not end while its sidecar runs, since this cluster has no native sidecars')
  return texts
}

function addVolumes(pod: Pod, request: PodRequest, settings: InjectorSettings, faults: string[]): void {
  const present = pod.spec.volumes ?? []
  const has = (volume: string): boolean => present.some(({ name }) => name === volume)
  const added: Volume[] = []
  if (!has(tokenVolume)) {
    added.push(tokenVolumeOf())
    if (!request.createVolume) faults.push(`the pod brings no volume "${tokenVolume}", so one was added`)
  }
  if (!has(identityVolume)) added.push(identityVolumeOf(request, settings))
  if (added.length > 0) pod.spec.volumes = [...present, ...added]
}

function addPullSecrets(pod: Pod, { imagePullSecrets }: InjectorSettings): void {
  const present = pod.spec.imagePullSecrets ?? []
  const absent = imagePullSecrets.filter((secret) => !present.some(({ name }) => name === secret))
  if (absent.length > 0) pod.spec.imagePullSecrets = [...present, ...absent.map((name) => ({ name }))]
}

function receivers(pod: Pod, request: PodRequest, settings: InjectorSettings, warnings: string[]): Container[] {
  const candidates = containersOf(pod).filter(({ name }) => name !== sidecarName)
  const present = new Set(candidates.map(({ name }) => name))
  for (const named of new Set([...request.skip, ...(request.include ?? [])])) {
    if (present.has(named)) continue
    warnings.push(`the pod has no container "${named}", which an annotation names`)
  }
  return candidates.filter(({ name }) => {
    if (request.skip.has(name)) return false
    return request.include?.has(name) ?? !settings.skipContainers.includes(name)
  })
}

const containersOf = (pod: Pod): Container[] => [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])]

const targetsOf = (container: Container): string | undefined =>
  container.env?.find(({ name }) => name === targetsVariable)?.value ?? undefined

/**
 * Adds the tokens' mount and variables to a container. Its own variables stay. The variables of an endpoint that
 * name an identity are set together or not at all: half of them would present one identity as another.
 */
function giveTokens(container: Container, wanted: readonly WantedEndpoint[], faults: string[]): void {
  const mounts = container.volumeMounts ?? []
  const present = mounts.find(({ mountPath }) => withoutSlash(mountPath) === tokenFolder)
  if (present !== undefined && present.name !== tokenVolume) {
    faults.push(`container "${container.name}" mounts another volume at ${tokenFolder}, so it gets no token`)
    return
  }
  for (const { endpoint } of wanted) {
    const folder = posix.dirname(tokenFileOf(endpoint.name))
    const cover = mounts.find(({ mountPath }) => `${posix.normalize(mountPath)}/`.startsWith(`${folder}/`))
    if (cover === undefined) continue
    faults.push(
      `container "${container.name}" mounts another volume at ${cover.mountPath}, which hides the token of "${endpoint.name}"`,
    )
  }
  if (present === undefined) {
    container.volumeMounts = [...mounts, { name: tokenVolume, mountPath: tokenFolder, readOnly: true }]
  }
  const given = new Map<string, string>()
  for (const one of wanted) setVariables(container, one, given, faults)
}

function setVariables(
  container: Container,
  wanted: WantedEndpoint,
  given: Map<string, string>,
  faults: string[],
): void {
  const { endpoint } = wanted
  const { identity, other } = variablesOf(wanted)
  const present = container.env ?? []
  const own = identity.find((wanted) =>
    present.some((variable) => variable.name === wanted.name && !isSame(variable, wanted)),
  )
  if (own !== undefined) {
    const rival = given.get(own.name)
    const owner =
      rival === undefined ? `container "${container.name}" sets ${own.name} itself` : `"${rival}" sets ${own.name} too`
    faults.push(`${owner}, so the variables of "${endpoint.name}" are not set in it`)
    return
  }
  const absent = [...identity, ...other].filter((wanted) => !present.some(({ name }) => name === wanted.name))
  for (const { name } of absent) given.set(name, endpoint.name)
  if (absent.length > 0) container.env = [...present, ...absent]
}

interface Variables {
  readonly identity: readonly { readonly name: string; readonly value: string }[]
  readonly other: readonly { readonly name: string; readonly value: string }[]
}

/** Those with a value: an empty variable would still hide what an SDK finds elsewhere. */
function variablesOf({ endpoint, values }: WantedEndpoint): Variables {
  const rendered = endpoint.variables.flatMap(({ name, text, identity }) => {
    if (!text.attributes.every((attribute) => values.has(attribute))) return []
    const value = text.render({ attribute: (attribute) => values.get(attribute) })
    return value === '' ? [] : [{ name, value: escapeVariables(value), identity }]
  })
  const { tokenVariable, valueVariable, settings, file } = endpoint
  const main = values.get(settings.find((setting) => setting.main)?.name ?? 'value')
  const identity = [{ name: tokenVariable, value: tokenFileOf(endpoint.name) }]
  if (valueVariable !== undefined && main !== undefined) {
    identity.push({ name: valueVariable, value: escapeVariables(main) })
  }
  if (file?.needs.every((name) => values.has(name))) {
    identity.push({ name: file.variable, value: fileOf(endpoint.name, file.name) })
  }
  const pick = (wanted: boolean) =>
    rendered.filter((one) => one.identity === wanted).map(({ name, value }) => ({ name, value }))
  return { identity: [...identity, ...pick(true)], other: pick(false) }
}

/**
 * The variables with a setting, so that a container that has them all does not need it. None for an annotation that
 * the endpoint requires by name.
 */
function holdersOf({ variables, file, valueVariable, settings }: PodEndpoint, setting: string): string[] {
  const main = settings.find((one) => one.main)?.name ?? setting
  if (valueVariable !== undefined && main === setting) return []
  return [
    ...variables.filter(({ text, identity }) => identity && text.attributes.includes(setting)).map(({ name }) => name),
    ...(file?.needs.includes(setting) ? [file.variable] : []),
  ]
}

const isSame = (variable: EnvironmentVariable, wanted: { readonly value: string }): boolean =>
  variable.value === wanted.value && !Object.hasOwn(variable, 'valueFrom')

/** From the end: a pattern would search from every slash on. */
function withoutSlash(path: string): string {
  let end = path.length
  while (path[end - 1] === '/') end -= 1
  return path.slice(0, end)
}

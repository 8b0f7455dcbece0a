import { posix } from 'node:path'
import type { PodEndpoint } from '#kernel/pod-endpoint.ts'
import { fileOf, tokenFileOf, tokenFolder, tokenVolume } from '#protocols/admission/injector-names.ts'
import type { Container, EnvironmentVariable } from '#protocols/admission/pod.ts'
import type { WantedEndpoint } from '#protocols/admission/pod-wishes.ts'
import { escapeVariables } from '#protocols/admission/variable-escape.ts'

/**
 * Gives a container the tokens' mount and variables. Variables that it sets itself are left, and those of an endpoint
 * that name an identity come together or not at all: half of them would pass one identity off as another.
 */
export function giveTokens(container: Container, wanted: readonly WantedEndpoint[], faults: string[]): void {
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
  const own = identity.find((wish) =>
    present.some((variable) => variable.name === wish.name && !isSame(variable, wish)),
  )
  if (own !== undefined) {
    const rival = given.get(own.name)
    const owner =
      rival === undefined ? `container "${container.name}" sets ${own.name} itself` : `"${rival}" sets ${own.name} too`
    faults.push(`${owner}, so the variables of "${endpoint.name}" are not set in it`)
    return
  }
  const absent = [...identity, ...other].filter((wish) => !present.some(({ name }) => name === wish.name))
  for (const { name } of absent) given.set(name, endpoint.name)
  if (absent.length > 0) container.env = [...present, ...absent]
}

interface Variables {
  readonly identity: readonly { readonly name: string; readonly value: string }[]
  readonly other: readonly { readonly name: string; readonly value: string }[]
}

/** Those that have a value: an empty variable would still hide what an SDK finds elsewhere. */
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
 * The variables that hold a setting, so that a container that has them all can do without it. None for an annotation
 * that the endpoint asks for by name.
 */
export function holdersOf({ variables, file, valueVariable, settings }: PodEndpoint, setting: string): string[] {
  const main = settings.find((one) => one.main)?.name ?? setting
  if (valueVariable !== undefined && main === setting) return []
  return [
    ...variables.filter(({ text, identity }) => identity && text.attributes.includes(setting)).map(({ name }) => name),
    ...(file?.needs.includes(setting) ? [file.variable] : []),
  ]
}

const isSame = (variable: EnvironmentVariable, wish: { readonly value: string }): boolean =>
  variable.value === wish.value && !Object.hasOwn(variable, 'valueFrom')

/** Counted from the end: a pattern would look from every slash on. */
function withoutSlash(path: string): string {
  let end = path.length
  while (path[end - 1] === '/') end -= 1
  return path.slice(0, end)
}

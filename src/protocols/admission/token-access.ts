import { tokenFileOf, tokenFolder, tokenVolume } from '#protocols/admission/injector-names.ts'
import type { Container, EnvironmentVariable } from '#protocols/admission/pod.ts'
import type { WantedEndpoint } from '#protocols/admission/pod-wishes.ts'
import { escapeVariables } from '#protocols/admission/variable-escape.ts'

/**
 * Gives a container the tokens' mount and variables. Variables that it sets itself are left, and those of an endpoint
 * come together or not at all: half of a pair would pass one identity off as another.
 */
export function giveTokens(container: Container, wanted: readonly WantedEndpoint[], faults: string[]): void {
  const mounts = container.volumeMounts ?? []
  const present = mounts.find(({ mountPath }) => withoutSlash(mountPath) === tokenFolder)
  if (present !== undefined && present.name !== tokenVolume) {
    faults.push(`container "${container.name}" mounts another volume at ${tokenFolder}, so it gets no token`)
    return
  }
  if (present === undefined) {
    container.volumeMounts = [...mounts, { name: tokenVolume, mountPath: tokenFolder, readOnly: true }]
  }
  for (const one of wanted) setVariables(container, one, faults)
}

function setVariables(container: Container, { endpoint, value }: WantedEndpoint, faults: string[]): void {
  const wishes = [{ name: endpoint.tokenVariable, value: tokenFileOf(endpoint.name) }]
  if (endpoint.valueVariable !== undefined && value !== undefined) {
    wishes.push({ name: endpoint.valueVariable, value: escapeVariables(value) })
  }
  const present = container.env ?? []
  const own = wishes.find((wish) => present.some((variable) => variable.name === wish.name && !isSame(variable, wish)))
  if (own !== undefined) {
    faults.push(
      `container "${container.name}" sets ${own.name} itself, so the variables of "${endpoint.name}" are not set in it`,
    )
    return
  }
  const absent = wishes.filter((wish) => !present.some(({ name }) => name === wish.name))
  if (absent.length > 0) container.env = [...present, ...absent]
}

const isSame = (variable: EnvironmentVariable, wish: { readonly value: string }): boolean =>
  variable.value === wish.value && !Object.hasOwn(variable, 'valueFrom')

/** Counted from the end: a pattern would look from every slash on. */
function withoutSlash(path: string): string {
  let end = path.length
  while (path[end - 1] === '/') end -= 1
  return path.slice(0, end)
}

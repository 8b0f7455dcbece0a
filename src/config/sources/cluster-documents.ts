import { groups, type Kind, kinds } from '#config/build/kinds.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import type { SourceFile, SourceProblem, Sources } from './folder-documents.ts'
import { openUnisonKind } from './openunison-values.ts'

/** An object of a known kind, as the API server returns it. */
export interface ListedObject {
  readonly kind: string
  readonly apiVersion: string
  readonly content: Readonly<Record<string, unknown>>
}

interface NamespaceLimits {
  readonly objects: number
  readonly totalBytes: number
}

const defaultLimits: NamespaceLimits = { objects: 5_000, totalBytes: 64 << 20 }
/** A tool's second copy of the object. */
const copiedObject = 'kubectl.kubernetes.io/last-applied-configuration'

/** No kind has as many levels, and later code may recurse. */
const mostDepth = 100

/** The name of an object in problems. */
export const objectPlace = (kind: string, namespace: string, name: string): string => `${kind}/${namespace}/${name}`

/**
 * The objects of a namespace as files, one for each object, and one for each YAML of the ConfigMap of values.
 * Fields of the API server and others (status, versions, managed fields) are left out: they are not configuration.
 */
export function namespaceSources(
  namespace: string,
  objects: readonly ListedObject[],
  values: readonly ListedObject[],
  limits: NamespaceLimits = defaultLimits,
): Pick<Sources, 'origin' | 'files' | 'problems'> {
  const problems: SourceProblem[] = []
  const all = [
    ...objects.flatMap((object) => objectFile(namespace, object, problems)),
    ...values.flatMap((object) => valuesFiles(namespace, object)),
  ].sort((a, b) => (a.name < b.name ? -1 : 1))
  const files: SourceFile[] = []
  let bytes = 0
  for (const file of all) {
    bytes += Buffer.byteLength(file.text)
    if (files.length >= limits.objects || bytes > limits.totalBytes) {
      const most = `${limits.objects} objects or ${limits.totalBytes} bytes`
      problems.push({
        name: file.name,
        message: `the namespace holds more than ${most}: this and later ones are not read`,
        whole: true,
      })
      break
    }
    files.push(file)
  }
  return { origin: `the namespace ${namespace}`, files, problems }
}

function objectFile(
  namespace: string,
  { kind, apiVersion, content }: ListedObject,
  problems: SourceProblem[],
): SourceFile[] {
  const { name, labels, annotations } = metadataOf(content)
  const kept = isJsonObject(annotations)
    ? Object.fromEntries(Object.entries(annotations).filter(([key]) => key !== copiedObject))
    : undefined
  const object = {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      ...(kept === undefined ? {} : { annotations: kept }),
    },
    spec: content['spec'],
  }
  const place = objectPlace(kind, namespace, String(name))
  if (isTooDeep(object)) {
    problems.push({ name: place, message: 'is nested too deeply' })
    return []
  }
  return [{ name: place, text: JSON.stringify(sorted(object)), isObject: true }]
}

/** Searched without recursion, level by level. */
function isTooDeep(root: unknown): boolean {
  let level: unknown[] = [root]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > mostDepth) return true
    level = level.flatMap((value) => (typeof value === 'object' && value !== null ? Object.values(value) : []))
  }
  return false
}

function valuesFiles(namespace: string, { kind, content }: ListedObject): SourceFile[] {
  const { data } = content
  const place = objectPlace(kind, namespace, String(metadataOf(content)['name']))
  return Object.entries(isJsonObject(data) ? data : {}).flatMap(([key, text]) =>
    /\.ya?ml$/.test(key) && typeof text === 'string' ? [{ name: `${place}/${key}`, text }] : [],
  )
}

const metadataOf = ({ metadata }: ListedObject['content']): Readonly<Record<string, unknown>> =>
  isJsonObject(metadata) ? metadata : {}

/** With sorted keys, so that the same object is always the same text. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isJsonObject(value)) return value
  const entries: [string, JsonValue][] = Object.entries(value)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, sorted(item)]))
}

/** How a cluster's API serves the objects of one kind. */
export interface ConfigResource {
  readonly kind: Kind
  readonly group: string
  /** The version that is stored and watched: the newest, since the API server returns every object in it. */
  readonly version: string
  readonly plural: string
  readonly singular: string
}

/** OpenUnison's names, if they are not the kind in lower case. */
const singularNames: Readonly<Record<string, string>> = {
  AuthenticationMechanism: 'authmech',
  AuthenticationChain: 'authchain',
  CustomAuthorization: 'customaz',
}

/** A cluster has OpenUnison's group only: two groups would be two sets of objects. */
const configGroup = groups[0]

export const configResources: readonly ConfigResource[] = kinds.map((kind) => {
  const singular = singularNames[kind.kind] ?? kind.kind.toLowerCase()
  return {
    kind,
    group: configGroup,
    version: kind.versions.at(-1) ?? 'v1',
    plural: `${singular}s`,
    singular,
  }
})

/**
 * OpenUnison's own object, which is read for its values. Its definition is OpenUnison's, and its status that of
 * OpenUnison's operator: it has no list of conditions, so nothing is written there.
 */
export const openUnisonResource = {
  kind: openUnisonKind,
  group: configGroup,
  plural: 'openunisons',
  /** The oldest first. */
  versions: ['v1', 'v2', 'v3', 'v4', 'v5', 'v6'],
} as const

import { FixedPlace, type PartPlace, type Place } from '#config/context/config-document.ts'
import { absence, type Reference } from '#config/context/draft.ts'
import type { HiddenValues } from '#config/context/hidden-values.ts'
import { inOneLine, pathText, plainLine } from '#config/context/located-issue.ts'
import { isStored } from '#config/sources/stored-objects.ts'
import type { Issue } from '#kernel/issues.ts'

/** Why an object is not served: the object that all of it goes back to, which may be itself. */
export interface Cause {
  /** As people call it: `Target "k8s"`, or `target "k8s"` if nothing has the name. */
  readonly object: string
  /** Absent if nothing has the name. */
  readonly at?: string
  /** What is wrong with it. */
  readonly message: string
  /** Whether it is the object itself. */
  readonly own: boolean
  /** The YAML has no error, but the object could not be created: another attempt may succeed. */
  readonly mayPass?: boolean
}

/** An object of the configuration, without its content. */
export interface FoundObject {
  /** `values` for a document without a kind, `file` for a file that can't be read; an endpoint of the token service. */
  readonly kind: string
  readonly name: string | undefined
  /** Relative to the configuration folder, or `Kind/namespace/name` of an object of a cluster. */
  readonly file: string
  /** Undefined for an object of a cluster. */
  readonly line: number | undefined
  readonly errors: number
  readonly warnings: number
  /** Set if it is not served. */
  readonly cause?: Cause | undefined
}

/** An object with the place that its issues have. */
export interface ObjectNode {
  readonly place: Place
  readonly kind: string
  readonly name: string | undefined
}

/** What depends on what. */
export interface Dependencies {
  readonly nodes: readonly ObjectNode[]
  /** By place: the places of the objects that can't be served without it. */
  readonly dependents: ReadonlyMap<Place, readonly Place[]>
  /** Required references to nothing, by the place that has them. */
  readonly missing: readonly (Pick<Reference, 'kind' | 'name'> & { readonly place: Place })[]
}

/** The kind of an endpoint of the token service, which is a part of a values document. */
export const endpointKind = 'token endpoint'

/** The place of the object that can't be used because of the issue, or `everything`. */
export function concernedBy(
  { document, path }: Pick<Issue, 'document' | 'path'>,
  values: ReadonlySet<Place>,
  parts: readonly PartPlace[],
): Place | 'everything' {
  if (document instanceof FixedPlace) return document.concerns
  const part = parts.find((one) => one.contains(document, path))
  if (part !== undefined) return part
  const place = document as Place | undefined
  // A wrong value would change objects that are otherwise valid. Only the token service is separate.
  const isShared = place === undefined || (values.has(place) && path[0] !== 'sts')
  return isShared ? 'everything' : place
}

/** The objects that can't be served: those with errors, of which those in `later` may pass, and all that depend on them. */
export function findCauses(
  { nodes, dependents, missing }: Dependencies,
  errors: readonly (readonly [Place, Issue])[],
  later: readonly Issue[],
  hidden: HiddenValues,
): Map<Place, Cause> {
  const titles = new Map(nodes.map((node) => [node.place, titleOf(node)]))
  const causes = new Map<Place, Cause>()
  const lacking = Map.groupBy(missing, ({ place }) => place)
  for (const [place, own] of Map.groupBy(errors, ([place]) => place)) {
    const absent = lacking.get(place) ?? []
    const isAbsence = ({ message }: Issue): boolean =>
      absent.some(({ kind, name }) => message.startsWith(absence(kind, name)))
    const [first] = own.map(([, issue]) => issue).filter((issue) => !isAbsence(issue))
    const [reference] = absent
    if (first === undefined && reference !== undefined) {
      const { kind, name } = reference
      const object = hidden.values.without(`${kind} "${name}"`)
      causes.set(place, { object, message: hidden.values.without(absence(kind, name)), own: false })
    } else if (first !== undefined) {
      const { document, path } = first
      const at = (document as Place).at(path)
      const message = withPath(path, hidden.messageOf(first))
      const object = titles.get(place) ?? place.file
      causes.set(place, { object, at, message, own: true, ...(later.includes(first) ? { mayPass: true } : {}) })
    }
  }
  // Objects are added while the loop runs, so that each gets the nearest cause.
  for (const [place, cause] of causes) {
    for (const dependent of dependents.get(place) ?? []) {
      if (!causes.has(dependent)) causes.set(dependent, { ...cause, own: false })
    }
  }
  return causes
}

const withPath = (path: Issue['path'], message: string): string =>
  inOneLine(path.length === 0 ? message : `${pathText(path)}: ${message}`)

/** As people call it: `Workflow "new-user"`. */
export const titleOf = ({
  kind,
  name,
  ...rest
}: Pick<FoundObject, 'kind' | 'name'> & ({ readonly place: Place } | { readonly file: string })): string =>
  name === undefined ? `${kind} ${'place' in rest ? rest.place.file : rest.file}` : `${kind} "${name}"`

/** Two objects of one name and kind are the same object, even if it moved to another file. */
export const objectKey = ({ kind, name, file }: FoundObject): string => JSON.stringify([kind, name ?? file])

/**
 * The objects that a gateway serves and would lose with another configuration, although no one removed them: they are
 * set aside there, or their file can't be read.
 */
export function lostObjects(served: readonly FoundObject[], next: readonly FoundObject[]): FoundObject[] {
  const kept = new Map(next.map((object) => [objectKey(object), object]))
  const unread = next.filter(({ name, cause }) => name === undefined && cause !== undefined).map(({ file }) => file)
  return served.filter((object) => {
    // An object of the configuration wins over one of the database.
    if (object.cause !== undefined || isStored(object.file)) return false
    const found = kept.get(objectKey(object))
    if (found !== undefined) return found.cause !== undefined
    // The kind may be misspelled now.
    if (next.some(({ name, file, cause }) => name === object.name && file === object.file && cause !== undefined)) {
      return true
    }
    return unread.some((file) => object.file === file || object.file.startsWith(`${file}/`))
  })
}

/** How many objects are served. Values documents and their endpoints are not objects. */
export const servedCount = (found: readonly FoundObject[]): number =>
  found.filter(({ kind, cause }) => cause === undefined && kind !== 'values' && kind !== endpointKind).length

const mostCauses = 100
const mostNames = 20

/**
 * Why objects are set aside, the cause of most of them first, and how many are served. Empty if all are. Without a
 * configuration none is.
 */
export function summarize({
  configuration,
  found,
}: {
  readonly configuration?: unknown
  readonly found: readonly FoundObject[]
}): string[] {
  if (configuration === undefined) return ['nothing is served: an error concerns the whole configuration']
  const aside = found.filter(({ cause }) => cause !== undefined)
  if (aside.length === 0) return []
  const groups = [...Map.groupBy(aside, ({ cause }) => placeText(cause)).values()]
  // Their errors are listed with all others.
  const alone = groups.filter((group) => group.length === 1 && group[0]?.cause?.own === true).flat()
  const causes = groups
    .filter((group) => group.length > 1 || group[0]?.cause?.own !== true)
    .sort((a, b) => b.length - a.length)
  const more = causes.length - mostCauses
  const line = (reason: string, objects: readonly FoundObject[]): string =>
    plainLine(`${objects.length} set aside because of ${reason}: ${namesOf(objects)}`)
  return [
    ...causes.slice(0, mostCauses).map((group) => line(placeText(group[0]?.cause), group)),
    ...(more > 0 ? [`… and ${more} more causes`] : []),
    ...(alone.length > 0 ? [line(alone.length === 1 ? 'its own errors' : 'their own errors', alone)] : []),
    `${counted(servedCount(found))} served, ${aside.length} set aside`,
  ]
}

function namesOf(objects: readonly FoundObject[]): string {
  const names = objects.slice(0, mostNames).map(titleOf).join(', ')
  return objects.length > mostNames ? `${names} and ${objects.length - mostNames} more` : names
}

/** `Target "k8s" (targets.yaml:2:3)`. What is wrong there is listed with all other errors. */
const placeText = (cause: Cause | undefined): string =>
  cause === undefined ? '' : `${cause.object}${cause.at === undefined ? ', which does not exist' : ` (${cause.at})`}`

/** Follows "because of": `Target "k8s" (targets.yaml:2:3): spec.className: no target named "x"`. */
export function causeText(cause: Cause | undefined): string {
  if (cause === undefined) return ''
  const { own, at, message } = cause
  return `${own ? 'its own error' : cause.object}${at === undefined ? '' : ` (${at})`}: ${message}`
}

const counted = (count: number): string => `${count} object${count === 1 ? '' : 's'}`

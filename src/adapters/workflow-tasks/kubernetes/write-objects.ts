import { isDeepStrictEqual } from 'node:util'
import { hasCode } from '#adapters/targets/shared/user-reconciler.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { DryRunRefused } from '#protocols/kubernetes/api-failure.ts'
import {
  type ClusterObject,
  type ClusterPatch,
  type ClusterResource,
  objectPath,
} from '#protocols/kubernetes/cluster.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import type { StepCluster } from './on-cluster.ts'

/**
 * Writes to a cluster that can be repeated: a second attempt of a step finds what the first did, and every change is
 * planned before and reported after it. What is already as wanted is neither written nor reported.
 */

export interface NamedObject {
  readonly kind: string
  readonly resource: ClusterResource
  readonly name: string
  /** Where it is created, if not in its own collection: a ProjectRequest creates a Project. */
  readonly createdAt?: ClusterResource
}

/** What an existing object becomes: this content, a patched one, or what `edit` makes of its content. */
type ObjectChange =
  | { readonly object: JsonObject }
  | { readonly patch: ClusterPatch }
  | { readonly edit: (content: ClusterObject['content']) => ClusterObject['content'] }

/** Attempts of a change while other writers change the same object. */
const maxAttempts = 10
/** Seconds until an object that is being deleted may be gone. */
const retryAfter = 5

/** Creates the object. An existing one is replaced, kept as it is, or patched if there is a patch. */
export async function putObject(
  cluster: StepCluster,
  what: NamedObject,
  object: JsonObject,
  ifExists: 'replace' | 'keep' | ClusterPatch,
): Promise<void> {
  const { api, request } = cluster
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const found = await api.get(what.resource, what.name)
    if (found !== undefined) {
      if (ifExists === 'keep') {
        refuseEnding(cluster, what, found)
        request.log.info('a Kubernetes object already exists', { target: cluster.target, object: pathOf(what) })
        return
      }
      if (await changeObject(cluster, what, found, ifExists === 'replace' ? { object } : { patch: ifExists })) return
      continue
    }
    const change = changeOf(what, 'add')
    await request.planChanges?.([change])
    try {
      await api.create(what.createdAt ?? what.resource, object)
    } catch (error) {
      if (hasCode(error, 'CONFLICT')) continue
      throw error
    }
    request.audit(change)
    request.log.info('created a Kubernetes object', { target: cluster.target, object: pathOf(what) })
    return
  }
  throw changedMeanwhile(cluster, what)
}

/** Changes an object that must exist. */
export async function changeExisting(cluster: StepCluster, what: NamedObject, change: ObjectChange): Promise<void> {
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const found = await cluster.api.get(what.resource, what.name)
    if (found === undefined) {
      throw new GatewayError('TARGET_FAILED', `target "${cluster.target}": ${pathOf(what)} does not exist`)
    }
    if (await changeObject(cluster, what, found, change)) return
  }
  throw changedMeanwhile(cluster, what)
}

/** False if another writer changed the object meanwhile. */
async function changeObject(
  cluster: StepCluster,
  what: NamedObject,
  found: ClusterObject,
  wanted: ObjectChange,
): Promise<boolean> {
  const { api, request, target } = cluster
  const where = { target, object: pathOf(what) }
  requireKind(cluster, what, found)
  refuseEnding(cluster, what, found)
  if ('patch' in wanted && wanted.patch.type === 'json' && lastPatch(found) === request.idempotencyKey) {
    request.log.info('a Kubernetes object was already patched by this step', where)
    return true
  }
  const write = (dryRun: boolean): Promise<ClusterObject | undefined> => {
    if ('patch' in wanted) {
      return api.patch(what.resource, what.name, onceOnly(wanted.patch, found, request.idempotencyKey), { dryRun })
    }
    const object = 'edit' in wanted ? wanted.edit(found.content) : wanted.object
    const metadata = { ...(isJsonObject(object['metadata']) ? object['metadata'] : {}) }
    const { resourceVersion } = found.metadata
    return api.replace(what.resource, what.name, { ...object, metadata: { ...metadata, resourceVersion } }, { dryRun })
  }
  try {
    if (!(await wouldChange(found, () => write(true)))) {
      request.log.info('a Kubernetes object already exists as wanted', where)
      return true
    }
    const change = changeOf(what, 'replace')
    await request.planChanges?.([change])
    const stored = await write(false)
    if (stored === undefined) return false
    if (stored.metadata.resourceVersion === found.metadata.resourceVersion) return true
    request.audit(change)
    request.log.info('changed an existing Kubernetes object', where)
    return true
  } catch (error) {
    if (hasCode(error, 'VERSION_MISMATCH')) return false
    // A JSON patch fails as a whole if its test of the version does.
    if (!hasCode(error, 'BAD_REQUEST')) throw error
    const now = await api.get(what.resource, what.name)
    if (now?.metadata.resourceVersion === found.metadata.resourceVersion) throw error
    return false
  }
}

/** Deletes the object. False if there is none, or it is being deleted already. */
export async function deleteObject(cluster: StepCluster, what: NamedObject, known?: ClusterObject): Promise<boolean> {
  const { api, request, target } = cluster
  const where = { target, object: pathOf(what) }
  const found = known ?? (await api.get(what.resource, what.name))
  if (found !== undefined) requireKind(cluster, what, found)
  if (found === undefined || isEnding(found)) {
    request.log.info(
      found === undefined
        ? 'there is no such Kubernetes object to delete'
        : 'a Kubernetes object is already being deleted',
      where,
    )
    return false
  }
  const change = changeOf(what, 'delete')
  await request.planChanges?.([change])
  if (!(await api.remove(what.resource, what.name, { uid: found.metadata.uid }))) return false
  request.audit(change)
  request.log.info('deleted a Kubernetes object', where)
  return true
}

function requireKind({ target }: StepCluster, what: NamedObject, { content }: ClusterObject): void {
  const { kind } = content
  if (what.kind === '' || typeof kind !== 'string' || kind.toLowerCase() === what.kind.toLowerCase()) return
  throw new GatewayError(
    'WORKFLOW_FAILED',
    `target "${target}": ${pathOf(what)} is of the kind ${kind}, not ${what.kind}`,
  )
}

/** Asks the API server for the result of a write that it does not store. */
async function wouldChange(found: ClusterObject, dryRun: () => Promise<ClusterObject | undefined>): Promise<boolean> {
  try {
    const result = await dryRun()
    return result === undefined || !isDeepStrictEqual(lasting(result), lasting(found))
  } catch (error) {
    if (error instanceof DryRunRefused) return true
    throw error
  }
}

/** An object without what every write changes. */
function lasting({ content }: ClusterObject): unknown {
  const metadata = isJsonObject(content['metadata']) ? content['metadata'] : {}
  const { resourceVersion: _, managedFields: __, generation: ___, ...rest } = metadata
  return { ...content, metadata: rest }
}

const lastPatchName = 'gatehouse.dev/last-patch'

function lastPatch({ content }: ClusterObject): unknown {
  const { metadata } = content
  const annotations = isJsonObject(metadata) ? metadata['annotations'] : undefined
  return isJsonObject(annotations) ? annotations[lastPatchName] : undefined
}

/**
 * Repeating a merge changes nothing, but repeating the operations of a JSON patch may: the patch records its step in an
 * annotation, and applies only to the version that was read.
 */
function onceOnly(patch: ClusterPatch, found: ClusterObject, step: string): ClusterPatch {
  if (patch.type !== 'json' || !Array.isArray(patch.content)) return patch
  const { metadata } = found.content
  const hasAnnotations = isJsonObject(metadata) && isJsonObject(metadata['annotations'])
  const path = '/metadata/annotations'
  const record: JsonValue = hasAnnotations
    ? { op: 'add', path: `${path}/${lastPatchName.replace('/', '~1')}`, value: step }
    : { op: 'add', path, value: { [lastPatchName]: step } }
  const test = { op: 'test', path: '/metadata/resourceVersion', value: found.metadata.resourceVersion }
  return { type: 'json', content: [test, record, ...patch.content] }
}

function refuseEnding({ target }: StepCluster, what: NamedObject, found: ClusterObject): void {
  if (!isEnding(found)) return
  const text = `target "${target}": ${pathOf(what)} is being deleted`
  throw new GatewayError('TARGET_UNREACHABLE', text, { retryAfter })
}

const isEnding = ({ content }: ClusterObject): boolean =>
  isJsonObject(content['metadata']) && content['metadata']['deletionTimestamp'] !== undefined

const changeOf = (what: NamedObject, action: TargetChange['action']): TargetChange => ({
  subject: 'entry',
  action,
  attribute: `kubernetes-${what.kind === '' ? what.resource.plural : what.kind}`,
  value: pathOf(what),
})

const pathOf = ({ resource, name }: NamedObject): string => objectPath(resource, name)

const changedMeanwhile = ({ target }: StepCluster, what: NamedObject): GatewayError =>
  new GatewayError('TARGET_UNREACHABLE', `target "${target}": others keep changing ${pathOf(what)}`, { retryAfter })

import { GatewayError } from '#kernel/errors.ts'
import type { ClusterObject, ClusterPatch, ClusterResource, ServedKind } from '#protocols/kubernetes/cluster.ts'
import type { WatchedObjects } from '#protocols/kubernetes/informer.ts'
import type { Target, TargetSource } from '#sdk/target/target.ts'

/** The condition for deleting an object. */
interface DeletePreconditions {
  readonly uid: string
  readonly resourceVersion?: string
}

/**
 * Reads and writes objects, each call bounded in time and size. Throws TARGET_UNREACHABLE if the API server did not
 * answer or asks to retry, TARGET_FAILED if it refuses, BAD_REQUEST for what it can't store, CONFLICT for a name
 * that is taken and VERSION_MISMATCH if the object was changed since it was read. Each error names the target.
 */
export interface ClusterObjects {
  /** Undefined if there is none. */
  get(resource: ClusterResource, name: string): Promise<ClusterObject | undefined>
  /** All of them, up to `most`; TARGET_FAILED if there are more. */
  list(resource: ClusterResource, most: number): Promise<readonly ClusterObject[]>
  create(resource: ClusterResource, object: Readonly<Record<string, unknown>>): Promise<ClusterObject>
  /** Only while the stored object has the `metadata.resourceVersion` of this one. */
  replace(resource: ClusterResource, name: string, object: Readonly<Record<string, unknown>>): Promise<ClusterObject>
  /** False if there was none. */
  remove(resource: ClusterResource, name: string, preconditions: DeletePreconditions): Promise<boolean>
}

interface WriteOptions {
  /** The API server answers with the result and stores nothing. */
  readonly dryRun?: boolean
}

/** Objects of any kind. Throws as `ClusterObjects` does. */
export interface ClusterApi extends ClusterObjects {
  /** Undefined if the API server has no such kind; `apiVersion` as in an object, such as `apps/v1`. */
  servedKind(apiVersion: string, kind: string): Promise<ServedKind | undefined>
  list(
    resource: ClusterResource,
    most: number,
    selection?: { readonly labels: string },
  ): Promise<readonly ClusterObject[]>
  replace(
    resource: ClusterResource,
    name: string,
    object: Readonly<Record<string, unknown>>,
    options?: WriteOptions,
  ): Promise<ClusterObject>
  /** Undefined if there is none. */
  patch(
    resource: ClusterResource,
    name: string,
    patch: ClusterPatch,
    options?: WriteOptions,
  ): Promise<ClusterObject | undefined>
}

/** A call to any path of an API server. */
export interface ClusterCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Begins with a slash, and may have a query. BAD_REQUEST for anything that isn't a path. */
  readonly path: string
  readonly body?: string
  readonly contentType?: string
}

/** An API server, for scripts. */
export interface ClusterCalls {
  readonly address: string
  /** Whatever the server answers is returned; TARGET_UNREACHABLE if it doesn't. */
  call(call: ClusterCall): Promise<{ readonly status: number; readonly body: string }>
}

/** What follows all objects of a kind, and writes their status. Throws as `ClusterObjects` does. */
export interface ClusterWatches extends WatchedObjects {
  /** Only its `status`, and only while the stored object has the `metadata.resourceVersion` of this one. */
  replaceStatus(
    resource: ClusterResource,
    name: string,
    object: Readonly<Record<string, unknown>>,
  ): Promise<ClusterObject>
}

/** Optional: the target is a cluster in whose objects other targets store their users. */
export interface KubernetesCluster extends Target {
  readonly objects: ClusterApi
  readonly calls?: ClusterCalls
  readonly watches?: ClusterWatches
  /** What users call it; its name if absent. */
  readonly label?: string
}

/** The clusters among the targets, for people to choose from. */
export function clustersOf(targets: TargetSource): { readonly name: string; readonly label: string }[] {
  return (targets.names?.() ?? []).flatMap((name) => {
    const target = targets.get(name)
    return isCluster(target) ? [{ name, label: target.label ?? name }] : []
  })
}

/** Whether the target is a Kubernetes cluster. */
export const isCluster = (target: Target): target is KubernetesCluster => 'objects' in target

/** The objects of the cluster of the target of this name. INTERNAL if the target is something else. */
export function objectsOf(targets: { get(name: string): Target }, cluster: string): ClusterApi {
  const target = targets.get(cluster)
  if (isCluster(target)) return target.objects
  throw new GatewayError('INTERNAL', `target "${cluster}" is not a Kubernetes cluster`)
}

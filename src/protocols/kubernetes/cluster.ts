/** A resource of a cluster's API, such as all RoleBindings of one namespace. */
export interface ClusterResource {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
  /** Absent for cluster-wide resources, and to list those of all namespaces. */
  readonly namespace?: string | undefined
}

/** The path of an object in the API, for people and the audit. */
export function objectPath({ group, version, plural, namespace }: ClusterResource, name: string): string {
  const place = namespace === undefined ? '' : `/namespaces/${namespace}`
  return `${group === '' ? '/api' : `/apis/${group}`}/${version}${place}/${plural}/${name}`
}

const pathForm = /^\/api(?:s\/([^/]+))?\/([^/]+)(?:\/namespaces\/([^/]+)(?=\/[^/]+\/))?\/([^/]+)\/([^/]+)$/

/** Reads what `objectPath` returned. Undefined for any other text. */
export function parseObjectPath(
  path: string,
): { readonly resource: ClusterResource; readonly name: string } | undefined {
  const [, group = '', version, namespace, plural, name] = pathForm.exec(path) ?? []
  if (version === undefined || plural === undefined || name === undefined) return undefined
  return { resource: { group, version, plural, namespace }, name }
}

/** An object from the API server: untrusted, beyond its metadata. */
export interface ClusterObject {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid: string
    readonly resourceVersion: string
    readonly creationTimestamp?: string
  }
  readonly content: Readonly<Record<string, unknown>>
}

/** A kind of objects that an API server serves. */
export interface ServedKind {
  readonly plural: string
  readonly namespaced: boolean
}

/** A change of an object: RFC 7386, by the merge keys of its schema, or RFC 6902. */
export interface ClusterPatch {
  readonly type: 'merge' | 'strategic' | 'json'
  readonly content: unknown
}

/** The API server's review of a token. */
export interface TokenReview {
  readonly authenticated: boolean
  /** Why the token could not be checked; for the log. */
  readonly error: string | undefined
  readonly username: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: ReadonlyMap<string, readonly string[]>
  /** The requested audiences that the token has. */
  readonly audiences: readonly string[]
}

/** The claims of a service-account token, with its signature, issuer and times verified by the cluster's keys. */
export interface VerifiedAccountToken {
  readonly issuer: string
  /** `system:serviceaccount:<namespace>:<name>` */
  readonly username: string
  readonly uid: string
  readonly audiences: readonly string[]
  readonly expires: Date
  /** As in a review's extras: `pod-name`, `pod-uid`, `node-name`, `node-uid`, `credential-id`, if they are known. */
  readonly extras: ReadonlyMap<string, string>
}

export type AccountTokenVerdict =
  | { readonly kind: 'verified'; readonly token: VerifiedAccountToken }
  /** `foreign`: signed by a key that is not the cluster's, so it may be another cluster's. `reason` is for the log. */
  | { readonly kind: 'refused'; readonly foreign: boolean; readonly reason: string; readonly expired?: boolean }

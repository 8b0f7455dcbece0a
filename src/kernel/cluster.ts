/** A resource of a cluster's API, such as all RoleBindings of one namespace. */
export interface ClusterResource {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
  /** Absent for cluster-wide resources, and to list those of all namespaces. */
  readonly namespace?: string
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

/** The injector's decision about a pod that requests tokens. */
export interface PodAdmission {
  /** Of the call, as in the access log. */
  readonly requestId: string
  readonly namespace: string
  readonly serviceAccount: string
  /** Its name, or the prefix that its name is made of. */
  readonly pod: string
  /** Such as `ReplicaSet/cart-5d9c`; absent if no controller owns it. */
  readonly owner?: string | undefined
  /** `admitted`: without any token. */
  readonly decision: 'injected' | 'admitted' | 'refused'
  /** The endpoints whose tokens it gets. */
  readonly endpoints: readonly string[]
  /** Why it does not get all requested tokens. */
  readonly reasons: readonly string[]
}

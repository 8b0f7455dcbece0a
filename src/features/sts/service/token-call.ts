/** One request for a token. */
export interface TokenCall {
  /** The name of the endpoint. */
  readonly endpoint: string
  readonly requestId: string
  readonly remoteAddress: string
  /**
   * The workload's own token, read once; `audience` is that of the endpoint's tokens. Its errors are refusals like
   * any other, and are audited.
   */
  subjectToken(audience: string): Promise<string>
  /** Called when the signature of that token is verified, even if nothing is issued then. */
  identified?(workload: CallingWorkload): void
}

interface CallingWorkload {
  /** The name of the cluster or of the issuer. */
  readonly source: string
  /** `system:serviceaccount:<namespace>:<name>`, or `<issuer>:<sub>`. */
  readonly username: string
  readonly podName?: string | undefined
  readonly podUid: string | undefined
}

/** A token issued to a workload. */
export interface IssuedToken {
  readonly token: string
  readonly expires: Date
  readonly expiresInSeconds: number
  /** When to return, so that the token never expires; each caller has to spread its own calls. */
  readonly refreshAfterSeconds: number
  /** `system:serviceaccount:<namespace>:<name>` */
  readonly workload: string
}

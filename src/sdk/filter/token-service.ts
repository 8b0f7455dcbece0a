import type { IssuerDocuments } from '#sdk/sts/token-keys.ts'

/** One call for a token, from wherever the credential is read. */
export interface TokenCall {
  /** The name of the endpoint. */
  readonly endpoint: string
  readonly requestId: string
  readonly remoteAddress: string
  /**
   * The workload's own token, read once; `audience` is that of the endpoint's tokens. What it throws is a refusal like
   * any other, and is audited.
   */
  subjectToken(audience: string): Promise<string>
  /** Called when the signature of that token is verified, whether or not anything is issued then. */
  identified?(workload: CallingWorkload): void
}

export interface CallingWorkload {
  /** The name of the cluster or of the issuer. */
  readonly cluster: string
  /** `system:serviceaccount:<namespace>:<name>`, or `<issuer>:<sub>`. */
  readonly username: string
  readonly podName?: string | undefined
  readonly podUid: string | undefined
}

export interface IssuedToken {
  readonly token: string
  readonly expires: Date
  readonly expiresInSeconds: number
  /** When to come again, so that the token never runs out; each caller still has to spread its own calls. */
  readonly refreshAfterSeconds: number
  /** `system:serviceaccount:<namespace>:<name>` */
  readonly workload: string
}

/** The token endpoints of the configuration. */
export interface TokenService {
  /**
   * Decides, signs and writes the decision down; nothing is issued that could not be audited. Throws a GatewayError whose
   * keyword is that of `oauth-errors.ts`: `invalid_grant` for a credential that is not accepted, ACCESS_DENIED with
   * `access_denied` where no rule allows the workload, TOO_MANY_REQUESTS and TARGET_UNREACHABLE with a time to come again.
   */
  exchange(call: TokenCall): Promise<IssuedToken>
  /** Throws NOT_FOUND for an endpoint that there is not. */
  documents(endpoint: string): Promise<IssuerDocuments>
}

import type { EndpointName } from '#config/configuration/token-endpoint.ts'
import type { IssuerDocuments } from '#config/configuration/token-keys.ts'

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

/** The token endpoints of the configuration. */
export interface TokenService {
  /**
   * Decides, signs and audits the decision; nothing is issued that could not be audited. Throws a GatewayError
   * whose keyword is that of `oauth-errors.ts`: `invalid_grant` for a credential that is not accepted,
   * ACCESS_DENIED with `access_denied` if no rule allows the workload, TOO_MANY_REQUESTS and TARGET_UNREACHABLE
   * with Retry-After.
   */
  exchange(call: TokenCall): Promise<IssuedToken>
  /** The name of the endpoint whose tokens have this issuer and audience; undefined if there is none. */
  endpointOf(name: EndpointName): string | undefined
  /** Throws NOT_FOUND for an unknown endpoint. */
  documents(endpoint: string): Promise<IssuerDocuments>
}

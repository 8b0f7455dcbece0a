/** An endpoint of the token service, as far as the pods of a cluster are concerned. */
export interface StsPodEndpoint {
  readonly name: string
  /** Below the token service's address. */
  readonly path: string
  /** Of the tokens it issues. */
  readonly audience: string
  /** Of the service-account tokens it takes. */
  readonly incomingAudience: string
  /** A label's suffix after `tremolo.io/`, or a whole label name. */
  readonly label: string
  /** Gets the path of the token file. */
  readonly tokenVariable: string
  /** Gets the value of the pod's annotation; pods need no annotation where it is absent. */
  readonly valueVariable?: string | undefined
  /** The service's certificate is not signed by a public authority. */
  readonly explicitTrust: boolean
}

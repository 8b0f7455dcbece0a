/** Issues tokens with which the gateway itself calls systems that trust one of our own issuers. */
export interface ServiceTokens {
  /** The token is never given to a caller. */
  serviceToken(call: ServiceTokenCall): Promise<{ readonly token: string; readonly expires: Date }>
}

export interface ServiceTokenCall {
  readonly issuer: string
  readonly subject: string
  readonly audience: string
  /** The host in the issuer's URL; its first one if absent. */
  readonly host?: string
}

/** The lifetime of such a token. */
export const serviceTokenSeconds = 60

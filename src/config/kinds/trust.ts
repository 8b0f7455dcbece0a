import * as z from 'zod'

const millis = z.int().min(0)

export const trustSchema = z.strictObject({
  label: z.string().optional(),
  clientId: z.string().min(1),
  clientSecret: z.strictObject({ secretName: z.string().min(1), keyName: z.string().min(1) }).optional(),
  publicEndpoint: z.boolean().optional(),
  /** Empty only for an application that exchanges tokens, or that others exchange tokens for. */
  redirectURI: z.array(z.string().min(1)),
  /** Where users may be redirected after a logout that the application started. */
  postLogoutRedirectURI: z.array(z.string().min(1)).optional(),
  codeLastMileKeyName: z.string().optional(),
  authChainName: z.string().optional(),
  codeTokenSkewMilis: millis.optional(),
  accessTokenTimeToLive: millis.optional(),
  accessTokenSkewMillis: millis.optional(),
  signedUserInfo: z.boolean().optional(),
  verifyRedirect: z.boolean().optional(),
  /** Devices may log in with a code that a person types (RFC 8628). */
  enableDeviceGrant: z.boolean().optional(),
  /** Not used: the grant is not offered, and no cookie has a token. */
  enableClientCredentialsGrant: z.boolean().optional(),
  tokenCookieName: z.string().optional(),
  /** It exchanges tokens of users for tokens of other applications (RFC 8693). The fields below belong to it. */
  isSts: z.boolean().optional(),
  stsImpersonation: z.boolean().optional(),
  stsDelegation: z.boolean().optional(),
  /** Client ids. */
  authorizedAudiences: z.array(z.string().min(1)).max(200).optional(),
  /** Rules as `scope;constraint`. */
  clientAzRules: z.array(z.string().min(1)).max(200).optional(),
  subjectAzRules: z.array(z.string().min(1)).max(200).optional(),
})
export type TrustSpec = z.infer<typeof trustSchema>

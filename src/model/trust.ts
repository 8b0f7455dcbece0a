import * as z from 'zod'

const millis = z.int().min(0)

export const trustSchema = z.strictObject({
  label: z.string().optional(),
  clientId: z.string().min(1),
  clientSecret: z.strictObject({ secretName: z.string().min(1), keyName: z.string().min(1) }).optional(),
  publicEndpoint: z.boolean().optional(),
  redirectURI: z.array(z.string().min(1)).min(1),
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
  /** Not supported: applications that exchange the tokens of users. The fields below belong to it. */
  isSts: z.boolean().optional(),
  stsImpersonation: z.boolean().optional(),
  stsDelegation: z.boolean().optional(),
  authorizedAudiences: z.array(z.string()).optional(),
  clientAzRules: z.array(z.string()).optional(),
  subjectAzRules: z.array(z.string()).optional(),
})
export type TrustSpec = z.infer<typeof trustSchema>

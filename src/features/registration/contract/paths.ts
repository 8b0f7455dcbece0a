/** Paths of the registration API below its mount, which may end in `/register` or be its parent. */
export const registerPaths = {
  config: '/register/config',
  values: '/register/values',
  submit: '/register/submit',
  /** A new proof-of-work challenge, if the form requires one. */
  challenge: '/register/challenge',
  /** The page that the link in a verification mail opens. */
  verify: '/register/verify',
  /** The content of an invitation, by its token. */
  invitation: '/register/invitation',
  /** Invitations, for users who may invite. */
  invitations: '/register/invitations',
  swagger: '/register/swagger.json',
  openapi: '/register/openapi.json',
} as const

export const registerApiVersion = '1.0.0'

import { choice, flag, list, text, wholeNumber } from '#sdk/module/parameter-types.ts'

/** Where the predecessor kept what its issuers remember; here that is in Gatehouse's own database. */
const unusedAbout = 'Not used: what an issuer remembers is in Gatehouse’s own database.'

export const unusedIssuerParameters = [
  'sessionStoreClassName',
  'k8sTarget',
  'k8sNameSpace',
  'trustConfigurationClassName',
  'trusts.k8starget',
  'driver',
  'url',
  'user',
  'password',
  'maxCons',
  'maxIdleCons',
  'dialect',
  'validationQuery',
  'hibernateConfig',
] as const

const unused = text({ about: unusedAbout })

/** Parameters of an `idp`. */
export const issuerParameters = {
  jwtSigningKey: text({
    about:
      'The name of the key that signs: a private key of that name in the `keys/` folder or in a secret is used; otherwise keys are made, and replaced in time.',
  }),
  algorithm: choice(['RS256', 'ES256'], { about: 'The signature algorithm.', fallback: 'RS256' }),
  rotateDays: wholeNumber({
    about: 'Days after which a generated key is replaced; 0 for never.',
    fallback: 90,
    max: 3650,
  }),
  'trusts.namespace': text({
    about: 'Only `Trust` objects of this namespace, and those of none, belong to the issuer; all when absent.',
  }),
  updateClaimsClassName: text({ about: 'Not supported: say in `mappings` what the claims are.' }),
  sessionStoreClassName: unused,
  k8sTarget: unused,
  k8sNameSpace: unused,
  trustConfigurationClassName: unused,
  'trusts.k8starget': unused,
  driver: unused,
  url: unused,
  user: unused,
  password: text({ about: unusedAbout, secret: true }),
  maxCons: unused,
  maxIdleCons: unused,
  dialect: unused,
  validationQuery: unused,
  hibernateConfig: unused,
}

const millis = (about: string) => text({ about })

/** Parameters of a trust inside an `idp`. */
export const trustParameters = {
  clientID: text({ about: 'The client id of the application.', required: true }),
  clientSecret: text({ about: 'Its secret; required unless `publicEndpoint`.', secret: true }),
  publicEndpoint: flag({ about: 'A public client without a secret, which must use PKCE.' }),
  redirectURI: list({
    about: 'The exact redirect addresses; on `localhost` and `127.0.0.1` with any port.',
    required: true,
  }),
  postLogoutRedirectURI: list({ about: 'Where users may be redirected after a logout that the application started.' }),
  label: text({ about: 'The name of the application that users see; its name when absent.' }),
  codeLastMileKeyName: text({ about: 'Not used: codes are random and stored as hashes.' }),
  authChainName: text({
    about: 'The chain with which users log in; the `authChain` of the URL when absent.',
    reference: 'chain',
  }),
  codeTokenSkewMilis: millis('How long a code is good for, in milliseconds; 60000 when absent.'),
  accessTokenTimeToLive: millis('How long access and id tokens are good for, in milliseconds; 60000 when absent.'),
  accessTokenSkewMillis: millis('How long before it was made an id token is valid, for clocks that are behind.'),
  signedUserInfo: flag({ about: 'Userinfo returns a signed JWT.' }),
  verifyRedirect: flag({ about: 'Must be true: a redirect is always verified.', fallback: true }),
  enableDeviceGrant: flag({ about: 'Devices without a browser may log in with a code that a user types (RFC 8628).' }),
}

import { choice, flag, list, text, wholeNumber } from '#sdk/parameter-types.ts'

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
    about: 'After how many days of signing a key that was made is replaced; 0 is never.',
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
  clientID: text({ about: 'What the application calls itself.', required: true }),
  clientSecret: text({ about: 'Its secret; required unless `publicEndpoint`.', secret: true }),
  publicEndpoint: flag({ about: 'It can keep no secret, and must use PKCE.' }),
  redirectURI: list({
    about: 'Where people may be sent back to, exactly; on `localhost` and `127.0.0.1` at any port.',
    required: true,
  }),
  postLogoutRedirectURI: list({ about: 'Where users may be redirected after a logout that the application started.' }),
  label: text({ about: 'What people read where they are asked about the application; its name when absent.' }),
  codeLastMileKeyName: text({ about: 'Not used: codes are random, and kept as hashes.' }),
  authChainName: text({
    about: 'The chain that people log in by; the URL’s `authChain` when absent.',
    reference: 'chain',
  }),
  codeTokenSkewMilis: millis('How long a code is good for, in milliseconds; 60000 when absent.'),
  accessTokenTimeToLive: millis('How long access and id tokens are good for, in milliseconds; 60000 when absent.'),
  accessTokenSkewMillis: millis('How long before it was made an id token is valid, for clocks that are behind.'),
  signedUserInfo: flag({ about: 'Userinfo is answered as a signed JWT.' }),
  verifyRedirect: flag({ about: 'Must be true: a redirect is always verified.', fallback: true }),
  enableDeviceGrant: flag({ about: 'Devices without a browser may log in by a code that a person types (RFC 8628).' }),
}

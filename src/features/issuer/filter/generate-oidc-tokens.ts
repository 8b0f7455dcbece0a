import type { TokenHost } from '#features/issuer/host.ts'
import { type AuthAttempt, type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { flag, parsed, text } from '#sdk/module/parameter-types.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import { latestTokensSlot, storeRequest, storeTokens, tokensSlot } from './session-tokens.ts'

const parameters = {
  idpName: text({
    about:
      'The identity provider that makes the tokens: what follows `/auth/idp/` in its uri, or the name of its Application.',
    required: true,
    reference: 'identity provider',
  }),
  trustName: text({ about: 'The trust that they are for: its name, or its client id.', required: true }),
  doNotTieSession: flag({
    about:
      '`"true"`, also when absent: the refresh token has a session of its own, which outlives that of the browser. `"false"`: it ends with the session of the browser.',
    fallback: true,
  }),
  overrideURL: parsed('address', readAddress, {
    about: 'An address with the scheme and host of the issuer, if browsers use another one.',
  }),
}

type Config = ParsedParameters<typeof parameters>

/** Creates tokens of an own issuer at login, and keeps them in the session for the Token API. */
export default defineAuthMechanism({
  className: 'auth.GenerateOIDCTokens',
  aliases: ['com.tremolosecurity.proxy.auth.GenerateOIDCTokens'],
  parameters,
  parse: (params, issues, context) => {
    const config = readParameters(parameters, params, issues, context)
    const { idpName, trustName } = config
    if (idpName !== '' && trustName !== '') {
      context.refer('trust of an identity provider', `${idpName} ${trustName}`, params.pathOf('trustName'))
    }
    return config
  },
  create: (config, host: TokenHost) => ({ begin: (attempt) => begin(attempt, config, host) }),
})

async function begin(attempt: AuthAttempt, config: Config, host: TokenHost): Promise<AuthOutcome> {
  const { subject, sessionId, request } = attempt
  const { idpName: issuer, trustName: trust, doNotTieSession, overrideURL: origin } = config
  if (subject === undefined)
    return {
      kind: 'rejected',
      reason:
        'no user is signed in yet, so no tokens can be issued; put this mechanism after one that identifies the user',
    }
  const slot = tokensSlot(issuer, trust)
  // A caller without a session sends a credential each time: the tokens are issued when it reads them.
  if (sessionId === undefined) {
    if (!doNotTieSession) return { kind: 'passed' }
    const requested = storeRequest({ idp: issuer, trust, ...(origin === undefined ? {} : { origin }) })
    return { kind: 'passed', session: { slots: { [slot]: requested, [latestTokensSlot]: slot } } }
  }
  const { issuers, clock, log } = host
  if (issuers === undefined) throw new Error('no identity provider is configured')
  const companion = doNotTieSession ? issuers.companion(issuer) : undefined
  const tokens = await issuers.mint({
    issuer,
    trust,
    subject,
    sessionId: companion?.id ?? sessionId,
    authenticated: clock(),
    how: 'login',
    request,
    origin,
  })
  if (tokens === undefined) {
    log.info('no rule of the identity provider allows this user: no tokens issued', { issuer, uid: subject.uid })
    return { kind: 'passed' }
  }
  const kept = storeTokens({
    ...tokens,
    ...{ idp: issuer, trust },
    ...(origin === undefined ? {} : { origin }),
    ...(companion === undefined ? {} : { companion: companion.id }),
  })
  const slots = { [slot]: kept, [latestTokensSlot]: slot }
  return { kind: 'passed', session: { slots, ...(companion === undefined ? {} : { companions: [companion] }) } }
}

function readAddress(written: string): string {
  const url = URL.parse(written)
  if (url !== null && /^https?:$/.test(url.protocol)) return url.origin
  throw new Error(`must be a web address, not "${written}"`)
}

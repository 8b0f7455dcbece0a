import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { readParameters, withParameters } from '#sdk/module/parameters.ts'

/** Passes every login, and decides nothing. Without it, chains that log the user agent would not load. */
export default defineAuthMechanism({
  className: 'auth.LogUserAgent',
  aliases: ['com.tremolosecurity.proxy.auth.LogUserAgentAuth'],
  initParameters: {},
  ...withParameters({}),
  parse: (params, issues, context) => {
    readParameters({}, params, issues, context)
    const message = 'auth.LogUserAgent has no effect here: the audit entry of every login has the user agent'
    issues.warning(params.pathOf('').slice(0, -1), message)
  },
  create: () => ({ begin: async () => ({ kind: 'passed' }) }),
})

import { defineAuthorization } from '#sdk/auth/authorization.ts'
import { readParameters } from '#sdk/module/parameters.ts'

/** Denies every user: for closed resources, and for approvals that only escalation can decide. */
export default defineAuthorization({
  className: 'authorizations.AlwaysFail',
  aliases: ['com.tremolosecurity.proxy.az.AlwaysFail'],
  parameters: {},
  parse: (params, issues, context) => readParameters({}, params, issues, context),
  create: () => ({ isAuthorized: () => false }),
})

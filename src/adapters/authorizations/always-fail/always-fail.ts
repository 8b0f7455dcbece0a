import { defineAuthorization } from '#sdk/auth/authorization.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** Denies every user: for closed resources, and for approvals that only escalation can decide. */
export default defineAuthorization({
  className: 'authorizations.AlwaysFail',
  aliases: ['com.tremolosecurity.proxy.az.AlwaysFail'],
  ...withParameters({}),
  create: () => ({ isAuthorized: () => false }),
})

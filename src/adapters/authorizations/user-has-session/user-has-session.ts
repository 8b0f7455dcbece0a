import { defineAuthorization } from '#sdk/auth/authorization.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** Allows users who are logged in: who have a session of any application that has neither ended nor expired. */
export default defineAuthorization({
  className: 'authorizations.UserHasSession',
  aliases: ['com.tremolosecurity.proxy.az.UserHasSessionAz'],
  ...withParameters({
    target: text({ about: 'Not used: sessions are stored in the database of the gateway.' }),
    namespace: text({ about: 'Not used.' }),
  }),
  create: (_, { sessions }) => ({
    isAuthorized: async ({ identity }) => (await sessions.ofUser(identity)).length > 0,
  }),
})

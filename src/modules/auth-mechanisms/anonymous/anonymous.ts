import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { ownIdentity } from '#identity/identity.ts'
import { type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** Every caller passes, under one name. The rules decide what they may do. */
export default defineAuthMechanism({
  className: 'auth.Anonymous',
  aliases: ['com.tremolosecurity.proxy.auth.AnonAuth'],
  ...withParameters({
    userName: text({ about: 'The `uid` of anonymous callers.', fallback: 'Anonymous' }),
  }),
  create: ({ userName }) => {
    const attributes = Attributes.from({ uid: [userName], objectClass: ['inetOrgPerson'] })
    let last: { readonly root: string; readonly outcome: AuthOutcome } | undefined
    return {
      async begin({ root }) {
        if (last?.root !== root) {
          const dn = Dn.parse(root).child('uid', userName)
          const subject = { dn, identity: ownIdentity('anonymous'), uid: userName, attributes }
          last = { root, outcome: { kind: 'authenticated', subject } }
        }
        return last.outcome
      },
    }
  },
})

import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** Runs another chain's mechanisms in this place. */
export default defineAuthMechanism({
  className: 'auth.IncludeChain',
  aliases: ['com.tremolosecurity.proxy.auth.IncludeChain'],
  ...withParameters({
    chainName: text({ about: 'The chain whose mechanisms run here.', required: true, reference: 'chain' }),
  }),
  includes: ({ chainName }) => (chainName === '' ? [] : [chainName]),
  create: ({ chainName }) => ({ begin: async () => ({ kind: 'include', chain: chainName }) }),
})

import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  chainName: text({ about: 'The chain whose mechanisms run here.', required: true, reference: 'chain' }),
}

/** Runs another chain's mechanisms in this place. */
export default defineAuthMechanism({
  className: 'auth.IncludeChain',
  aliases: ['com.tremolosecurity.proxy.auth.IncludeChain'],
  parameters,
  parse: (params, issues, context) => readParameters(parameters, params, issues, context),
  includes: ({ chainName }) => (chainName === '' ? [] : [chainName]),
  create: ({ chainName }) => ({ begin: async () => ({ kind: 'include', chain: chainName }) }),
})

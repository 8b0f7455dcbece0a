import type { Subject } from '#identity/subject.ts'
import { type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { list } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { readRuleParameter } from '#sdk/rule/rule-parameter.ts'

const parameters = {
  rules: list({
    about: 'Rules as `scope;constraint`; one must pass. Scopes: `dn`, `filter`, `group`, `dynamicGroup`, `custom`.',
    required: true,
  }),
}

/** Accepts the caller that earlier mechanisms established if one of the rules passes. */
export default defineAuthMechanism({
  className: 'auth.Authorization',
  aliases: ['com.tremolosecurity.proxy.auth.AuthorizationAuthMech'],
  parameters,
  parse: (params, issues, context) => {
    const { rules } = readParameters(parameters, params, issues, context)
    return { rules: rules.flatMap((text, i) => readRuleParameter('rules', text, i, params, issues, context) ?? []) }
  },
  create: ({ rules }, host) => {
    const decide = async (subject: Subject): Promise<AuthOutcome> => {
      const decision = await host.authorize(subject, rules)
      if (decision.allowed) return { kind: 'passed' }
      return { kind: 'rejected', reason: 'no rule of the authorization mechanism passed', status: 403 }
    }
    return {
      begin: async ({ subject }) =>
        subject === undefined
          ? { kind: 'rejected', reason: 'no earlier mechanism of the chain established a caller' }
          : await decide(subject),
      renew: decide,
    }
  },
})

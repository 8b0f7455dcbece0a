import type { Issues } from '#kernel/issues.ts'
import { defineAuthMechanism } from '#sdk/auth-mechanism.ts'
import { list } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { ParseContext } from '#sdk/parse-context.ts'
import { parseRule, type Rule, ruleScopes } from '#sdk/rule.ts'

const parameters = {
  rules: list({ about: 'Rules as `scope;constraint`; one must pass.', required: true }),
}

/** Lets the caller that earlier mechanisms established pass when one of the rules does. */
export default defineAuthMechanism({
  className: 'auth.Authorization',
  aliases: ['com.tremolosecurity.proxy.auth.AuthorizationAuthMech'],
  parameters,
  parse: (params, issues, context) => {
    const { rules } = readParameters(parameters, params, issues, context)
    return { rules: rules.flatMap((text, i) => readRule(text, i, params, issues, context) ?? []) }
  },
  create: ({ rules }, host) => ({
    async begin({ subject }) {
      if (subject === undefined) {
        return { kind: 'rejected', reason: 'no earlier mechanism of the chain established a caller' }
      }
      const decision = await host.authorize(subject, rules)
      if (decision.allowed) return { kind: 'passed' }
      return { kind: 'rejected', reason: 'no rule of the authorization mechanism passed', status: 403 }
    },
  }),
})

function readRule(
  text: string,
  index: number,
  params: Params,
  issues: Issues,
  context: ParseContext,
): Rule | undefined {
  const path = params.pathOf('rules', index)
  const end = text.indexOf(';')
  const scope = ruleScopes.find((word) => word === text.slice(0, end))
  if (end < 0 || scope === undefined) {
    issues.error(path, `"rules": must be "scope;constraint" with one of ${ruleScopes.join(', ')}, not "${text}"`)
    return undefined
  }
  return parseRule(scope, text.slice(end + 1), path, issues, context)
}

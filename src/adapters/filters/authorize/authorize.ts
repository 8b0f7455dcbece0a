import { GatewayError } from '#kernel/errors.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { list, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { readRuleParameter } from '#sdk/rule/rule-parameter.ts'

const parameters = {
  rules: list({
    about: 'The rules, as `scope;constraint`; one must pass, beside one of the URL.',
    required: true,
  }),
  azSuccess: text({ about: 'Accepted and not used: use the results of the URL. `check` says so.' }),
  azFail: text({ about: 'Accepted and not used: a caller whom no rule allows gets 403. `check` says so.' }),
}

/** Decides by rules of its own, in addition to those of the URL. */
export default defineFilter({
  className: 'filters.Authorize',
  aliases: ['com.tremolosecurity.proxy.filters.AzFilter'],
  parameters,
  answers: false,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    for (const name of ['azSuccess', 'azFail'] as const) {
      if (given[name] === undefined) continue
      const instead = name === 'azFail' ? 'a caller whom no rule allows gets 403' : 'use the results of the URL'
      issues.warning(params.pathOf(name), `"${name}" is not used: ${instead}`)
    }
    return given.rules.flatMap((rule, i) => readRuleParameter('rules', rule, i, params, issues, context) ?? [])
  },
  summarize: (rules) => [
    { label: 'rules', value: rules.map(({ scope, constraint }) => `${scope} ${constraint}`).join(', or ') },
  ],
  create: (rules, host) => ({
    async handle({ subject }, next) {
      const { allowed } = await host.authorize(subject, rules)
      if (!allowed) throw new GatewayError('ACCESS_DENIED', `no rule of filters.Authorize allows ${subject.dn}`)
      return next()
    },
  }),
})

import type { Issues } from '#kernel/issues.ts'
import { parseRule, type Rule, ruleScopes } from '#sdk/auth/rule.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

/** A rule of a list parameter, written `scope;constraint`; undefined, with an issue reported, if it is invalid. */
export function readRuleParameter(
  name: string,
  text: string,
  index: number,
  params: Params,
  issues: Issues,
  context: ParseContext,
): Rule | undefined {
  const path = params.pathOf(name, index)
  const end = text.indexOf(';')
  const scope = ruleScopes.find((word) => word === text.slice(0, end))
  if (end >= 0 && scope !== undefined) return parseRule(scope, text.slice(end + 1), path, issues, context)
  const scopes = ruleScopes.join(', ')
  issues.error(path, `"${name}": must be "scope;constraint" with one of ${scopes}, not "${text}"`)
  return undefined
}

import type { Issues } from '#kernel/issues.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { parseRuleText, type Rule } from './rule.ts'

/** A rule of a list parameter, written `scope;constraint`; undefined, with an issue reported, if it is invalid. */
export function readRuleParameter(
  name: string,
  text: string,
  index: number,
  params: Params,
  issues: Issues,
  context: ParseContext,
): Rule | undefined {
  return parseRuleText(text, params.pathOf(name, index), issues, context, `"${name}": `)
}

import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import type { UserRef } from '#identity/identity.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

/** One parsed authorization rule. `constraint` is its text. */
export type Rule =
  | { readonly scope: 'dn'; readonly constraint: string; readonly dn: Dn }
  | { readonly scope: 'filter'; readonly constraint: string; readonly filter: Filter }
  | { readonly scope: 'group' | 'dynamicGroup'; readonly constraint: string; readonly group: Dn }
  | {
      readonly scope: 'custom'
      readonly constraint: string
      readonly name: string
      readonly params: readonly string[]
      /** The user whom the request is about, in rules of an approval. */
      readonly about?: UserRef
    }

/** The result of one rule. */
export interface RuleVerdict {
  readonly rule: Rule
  readonly passed: boolean
  /** The reason, for `explain` and the log; never sent to the client. */
  readonly reason: string
}

/** The result of a list of rules. */
export interface RuleDecision {
  readonly allowed: boolean
  readonly verdicts: readonly RuleVerdict[]
}

/** The kinds of rules. */
export const ruleScopes = ['dn', 'filter', 'group', 'dynamicGroup', 'custom'] as const

/** A rule whose constraint says everything. Throws an Error if the constraint is invalid. */
export function plainRule(scope: Exclude<Rule['scope'], 'custom'>, constraint: string): Rule {
  switch (scope) {
    case 'dn':
      return { scope, constraint, dn: Dn.parse(constraint) }
    case 'filter':
      return { scope, constraint, filter: parseFilter(constraint) }
    case 'group':
    case 'dynamicGroup':
      return { scope, constraint, group: Dn.parse(constraint) }
  }
}

/** Undefined, with an issue filed, if the constraint is invalid. */
export function parseRule(
  scope: Rule['scope'],
  constraint: string,
  path: Path,
  issues: Issues,
  context: ParseContext,
): Rule | undefined {
  if (scope === 'custom') {
    const [name = '', ...params] = constraint.split('!')
    context.refer('custom authorization', name, path)
    return { scope, constraint, name, params }
  }
  try {
    const rule = plainRule(scope, constraint)
    if (rule.scope === 'filter') for (const name of groupNamesIn(rule.filter)) context.addGroupName?.(name, path)
    return rule
  } catch (error) {
    issues.error(path, error instanceof Error ? error.message : String(error))
    return undefined
  }
}

const groupAttributes: ReadonlySet<string> = new Set(['groups', 'memberof'])

function groupNamesIn(filter: Filter): string[] {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.flatMap(groupNamesIn)
    case 'not':
      return groupNamesIn(filter.filter)
    case 'equal':
      return groupAttributes.has(filter.attribute.toLowerCase()) ? [filter.value] : []
    default:
      return []
  }
}

/** The same for a rule in one text, `scope;constraint`. `name` begins the message if the text isn't one. */
export function parseRuleText(
  text: string,
  path: Path,
  issues: Issues,
  context: ParseContext,
  name = '',
): Rule | undefined {
  const end = text.indexOf(';')
  const scope = ruleScopes.find((word) => word === text.slice(0, end))
  if (end >= 0 && scope !== undefined) return parseRule(scope, text.slice(end + 1), path, issues, context)
  issues.error(path, `${name}must be "scope;constraint" with one of ${ruleScopes.join(', ')}, not "${text}"`)
  return undefined
}

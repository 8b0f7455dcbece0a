import { Dn } from '#identity/dn.ts'
import { parseFilterTemplate } from '#identity/filter/filter-template.ts'
import { printFilter } from '#identity/filter/filter-text.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { Rule, ruleScopes } from '#sdk/rule/rule.ts'

const maxValueLength = 1000

/** The values of a template's names; empty if absent. */
export interface RuleValues {
  key(name: string): readonly string[]
  attribute(name: string): readonly string[]
}

/**
 * A rule with placeholders. Its structure is fixed when it is parsed: a value can only ever be a value of the filter, a
 * value of the name or a parameter.
 */
export interface RuleTemplate {
  /** As written. */
  readonly constraint: string
  /** The attributes that it reads. */
  readonly attributes: readonly string[]
  /** The name of the group whose members pass, if the rule names one without placeholders. */
  readonly group?: string | undefined
  /** Undefined, so that no user passes, if a value is missing, empty, too long or ambiguous. */
  bind(values: RuleValues): Rule | undefined
}

/** Values may contain `$key$` and `${attribute}`. Undefined, with an issue, if the constraint does not parse. */
export function parseRuleTemplate(
  scope: (typeof ruleScopes)[number],
  constraint: string,
  path: Path,
  issues: Issues,
  context: ParseContext,
): RuleTemplate | undefined {
  try {
    switch (scope) {
      case 'filter':
        return filterRule(constraint)
      case 'dn':
      case 'group':
      case 'dynamicGroup':
        return nameRule(scope, constraint)
      case 'custom':
        return customRule(constraint, path, context)
    }
  } catch (error) {
    issues.error(path, error instanceof Error ? error.message : String(error))
    return undefined
  }
}

const templateOf = (text: string): Template => parseTemplate(text, { keys: true, attributes: true })

function filterRule(constraint: string): RuleTemplate {
  const template = templateOf(constraint)
  // Both forms become placeholders of the filter, distinguished by a prefix, before its structure is parsed.
  const text = template.render({ key: (name) => `\${key:${name}}`, attribute: (name) => `\${attribute:${name}}` })
  const filters = parseFilterTemplate(text)
  return {
    constraint,
    attributes: template.attributes,
    bind: (values) => {
      const filter = filters.bind((placeholder) => usable(placeholderValues(placeholder, values)))
      return filter && { scope: 'filter', constraint: printFilter(filter), filter }
    },
  }
}

function placeholderValues(placeholder: string, values: RuleValues): readonly string[] {
  const [kind = '', ...name] = placeholder.split(':')
  return kind === 'key' ? values.key(name.join(':')) : values.attribute(name.join(':'))
}

function nameRule(scope: 'dn' | 'group' | 'dynamicGroup', constraint: string): RuleTemplate {
  const rdns = Dn.parse(constraint).rdns.map((rdn) =>
    rdn.map(({ type, value }) => ({ type, value: templateOf(value) })),
  )
  const attributes = rdns.flatMap((rdn) => rdn.flatMap(({ value }) => value.attributes))
  const isConstant = rdns.every((rdn) => rdn.every(({ value }) => value.keys.length + value.attributes.length === 0))
  const group = scope !== 'dn' && isConstant ? rdns[0]?.[0]?.value.text : undefined
  return {
    constraint,
    attributes,
    group,
    bind: (values) => {
      const missing = new Set<string>()
      const bound = new Dn(
        rdns.map((rdn) => rdn.map(({ type, value }) => ({ type, value: rendered(value, values, missing) }))),
      )
      if (missing.size > 0) return undefined
      const text = bound.toString()
      return scope === 'dn' ? { scope, constraint: text, dn: bound } : { scope, constraint: text, group: bound }
    },
  }
}

function customRule(constraint: string, path: Path, context: ParseContext): RuleTemplate {
  const [name = '', ...texts] = constraint.split('!')
  context.refer('custom authorization', name, path)
  const templates = texts.map(templateOf)
  return {
    constraint,
    attributes: templates.flatMap(({ attributes }) => attributes),
    bind: (values) => {
      const missing = new Set<string>()
      const params = templates.map((template) => rendered(template, values, missing))
      return missing.size > 0 ? undefined : { scope: 'custom', constraint, name, params }
    },
  }
}

function rendered(template: Template, values: RuleValues, missing: Set<string>): string {
  const only = (name: string, found: readonly string[]): string => {
    const [value] = usable(found)
    if (value === undefined || value === '' || found.length > 1) missing.add(name)
    return value ?? ''
  }
  return template.render({
    key: (name) => only(name, values.key(name)),
    attribute: (name) => only(name, values.attribute(name)),
  })
}

/** Empty if one is unreasonably long. */
const usable = (values: readonly string[]): readonly string[] =>
  values.some((value) => value.length > maxValueLength) ? [] : values

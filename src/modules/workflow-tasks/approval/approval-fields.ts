import type { Issues, Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import { spanMillis, type TimeSpan } from '#kernel/time-span.ts'
import { parseRuleTemplate, type RuleTemplate } from '#modules/workflow-tasks/approval/rule-template.ts'
import { ruleScopes } from '#sdk/auth/rule.ts'
import type { TaskParseContext } from '#sdk/workflow/workflow-task.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const exact = (millis: number): TimeSpan => ({ months: 0, millis })

/** Both the predecessor's own words and those of its guide. */
const units: Readonly<Record<string, TimeSpan>> = {
  sec: exact(second),
  min: exact(minute),
  hr: exact(hour),
  hour: exact(hour),
  day: exact(day),
  wk: exact(7 * day),
  week: exact(7 * day),
  month: { months: 1, millis: 0 },
  year: { months: 12, millis: 0 },
}

const maxRules = 100
const maxEscalations = 50

export interface EscalationTemplate {
  readonly after: TimeSpan
  readonly approvers: readonly RuleTemplate[]
  readonly onlyIf: RuleTemplate | undefined
}

export interface EscalationPolicy {
  readonly escalations: readonly EscalationTemplate[]
  /** Undefined where the approval is left with those who have it. */
  readonly failure: readonly RuleTemplate[] | undefined
}

type Fields = Readonly<Record<string, unknown>>

/** Reads the parts of an approval that are lists and objects. Every problem is reported where it stands. */
export class ApprovalFields {
  readonly #issues: Issues
  readonly #context: TaskParseContext

  constructor(issues: Issues, context: TaskParseContext) {
    this.#issues = issues
    this.#context = context
  }

  /** At least one, since nobody could decide otherwise. */
  rules(value: unknown, path: Path): RuleTemplate[] {
    const items = this.#list(value, path, maxRules)
    if (items === undefined) return []
    if (items.length === 0) this.#issues.error(path, 'at least one rule is required: without a rule no one may decide')
    return items.flatMap((item, i) => this.#rule(item, [...path, i]) ?? [])
  }

  policy(value: unknown, path: Path): EscalationPolicy {
    const policy = this.#object(value, path, ['escalations', 'failure'])
    if (policy === undefined) return { escalations: [], failure: undefined }
    const at = [...path, 'escalations']
    const escalations = this.#list(policy['escalations'], at, maxEscalations) ?? []
    return {
      escalations: escalations.flatMap((item, i) => this.#escalation(item, [...at, i]) ?? []),
      failure: this.#failure(policy['failure'], [...path, 'failure']),
    }
  }

  #rule(value: unknown, path: Path): RuleTemplate | undefined {
    const rule = this.#object(value, path, ['scope', 'constraint'])
    if (rule === undefined) return undefined
    const scope = ruleScopes.find((known) => known === rule['scope'])
    if (scope === undefined) this.#issues.error([...path, 'scope'], `must be one of ${ruleScopes.join(', ')}`)
    const { constraint } = rule
    if (typeof constraint !== 'string' || constraint === '') {
      this.#issues.error([...path, 'constraint'], 'must be text')
      return undefined
    }
    if (scope === undefined) return undefined
    return parseRuleTemplate(scope, constraint, [...path, 'constraint'], this.#issues, this.#context)
  }

  #escalation(value: unknown, path: Path): EscalationTemplate | undefined {
    const names = ['executeAfterTime', 'executeAfterUnits', 'validateEscalationClass', 'azRules']
    const fields = this.#object(value, path, names)
    if (fields === undefined) return undefined
    const after = this.#after(fields, path)
    const approvers = this.rules(fields['azRules'], [...path, 'azRules'])
    const onlyIf = this.#validation(fields['validateEscalationClass'], [...path, 'validateEscalationClass'])
    return after && { after, approvers, onlyIf }
  }

  #after(fields: Fields, path: Path): TimeSpan | undefined {
    const count = wholeNumber(fields['executeAfterTime'])
    if (count === undefined) this.#issues.error([...path, 'executeAfterTime'], 'must be a whole number from 1')
    const unit = fields['executeAfterUnits']
    const span = typeof unit === 'string' && Object.hasOwn(units, unit) ? units[unit] : undefined
    if (span === undefined) {
      this.#issues.error([...path, 'executeAfterUnits'], `must be one of ${Object.keys(units).join(', ')}`)
    }
    if (count === undefined || span === undefined) return undefined
    const after = { months: span.months * count, millis: span.millis * count }
    if (spanMillis(new Date(0), after) !== undefined) return after
    this.#issues.error([...path, 'executeAfterTime'], 'is more than 100 years')
    return undefined
  }

  /** The name of a custom authorization; what stands behind `!` goes to it as parameters. */
  #validation(value: unknown, path: Path): RuleTemplate | undefined {
    if (value === undefined || value === null || value === '') return undefined
    if (typeof value === 'string') return parseRuleTemplate('custom', value, path, this.#issues, this.#context)
    this.#issues.error(path, 'must be the name of a custom authorization')
    return undefined
  }

  #failure(value: unknown, path: Path): readonly RuleTemplate[] | undefined {
    if (value === undefined || value === null) return undefined
    const failure = this.#object(value, path, ['action', 'azRules'])
    if (failure === undefined) return undefined
    const { action } = failure
    if (action === 'assign') return this.rules(failure['azRules'], [...path, 'azRules'])
    if (action !== 'leave') this.#issues.error([...path, 'action'], 'must be assign or leave')
    return undefined
  }

  #object(value: unknown, path: Path, names: readonly string[]): Fields | undefined {
    if (!isJsonObject(value)) {
      this.#issues.error(path, `must have ${names.join(', ')}`)
      return undefined
    }
    for (const name of Object.keys(value)) {
      if (!names.includes(name)) this.#issues.error([...path, name], `unknown key "${name}"${suggestion(name, names)}`)
    }
    return value
  }

  #list(value: unknown, path: Path, most: number): readonly unknown[] | undefined {
    if (!Array.isArray(value)) {
      this.#issues.error(path, 'must be a list')
      return undefined
    }
    if (value.length > most) this.#issues.error(path, `has more than ${most} entries`)
    return value.slice(0, most)
  }
}

function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 1 ? number : undefined
}

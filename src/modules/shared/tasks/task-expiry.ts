import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import type { Template } from '#kernel/template.ts'
import type { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import { renderTask, templateReads } from '#modules/shared/tasks/task-template.ts'
import { type Expiry, parseExpiresAfter, parseExpiresAt } from '#sdk/target/expiry.ts'
import type { AttributePlace } from '#sdk/workflow/flow.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'

/** The fields of a task that gives access for a time. */
export const expiryFields = {
  expiresAfter: {
    about: 'How long the access lasts, such as `8h`, `30d` or `P30D`; a template. For good when absent.',
    required: false,
  },
  expiresAt: {
    about: 'When the access ends, as an ISO 8601 time; a template, instead of `expiresAfter`.',
    required: false,
  },
} as const

const forms = {
  expiresAfter: { parse: parseExpiresAfter, what: 'a length of time such as 8h, 30d or P30D' },
  expiresAt: { parse: parseExpiresAt, what: 'an ISO 8601 time' },
} as const

export interface TaskExpiry {
  readonly reads: readonly AttributePlace[]
  /** Undefined where access is for good: no field, or a template that gives nothing. Throws BAD_REQUEST. */
  of(context: Pick<TaskContext, 'request' | 'user'>): Expiry | undefined
}

/** Reads both fields; constants are checked at once. */
export function readTaskExpiry(read: TaskFields, issues: Issues): TaskExpiry {
  const given = (['expiresAfter', 'expiresAt'] as const)
    .map((name) => ({ name, template: read.template(name) }))
    .filter(({ template }) => template.text !== '')
  for (const { name, template } of given) {
    if (isConstant(template) && forms[name].parse(template.text) === undefined) {
      issues.error(read.pathOf(name), `"${name}" must be ${forms[name].what}`)
    }
  }
  if (given.length > 1) issues.error(read.pathOf('expiresAt'), 'either "expiresAfter" or "expiresAt", not both')
  return {
    reads: given.flatMap(({ name, template }) => templateReads(template, read.pathOf(name))),
    of: (context) => {
      for (const { name, template } of given) {
        const text = renderTask(template, context).trim()
        if (text === '') continue
        const expiry = forms[name].parse(text)
        if (expiry !== undefined) return expiry
        throw new GatewayError('BAD_REQUEST', `${name}: "${template.text}" gave "${text.slice(0, 100)}"`, {
          publicText: `The time at which the access is to end must be ${forms[name].what}.`,
        })
      }
      return undefined
    },
  }
}

const isConstant = ({ keys, attributes }: Template): boolean => keys.length === 0 && attributes.length === 0

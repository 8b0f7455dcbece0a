import { GatewayError } from '#kernel/errors.ts'
import type { Template } from '#kernel/template.ts'
import type { AttributePlace } from '#sdk/flow/flow.ts'
import { type Expiry, parseExpiresAfter, parseExpiresAt } from '#sdk/target/expiry.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'
import { type TaskPlaces, template } from './task-fields.ts'
import { renderTask, templateReads } from './task-template.ts'

/** The fields of a task that grants access for a limited time. */
export const expiryFields = {
  expiresAfter: template({
    about: 'How long the access lasts, such as `8h`, `30d` or `P30D`; a template. For good when absent.',
  }),
  expiresAt: template({ about: 'When the access ends, as an ISO 8601 time; a template, instead of `expiresAfter`.' }),
}

const forms = {
  expiresAfter: { parse: parseExpiresAfter, what: 'a length of time such as 8h, 30d or P30D' },
  expiresAt: { parse: parseExpiresAt, what: 'an ISO 8601 time' },
} as const

export interface TaskExpiry {
  readonly reads: readonly AttributePlace[]
  /** Undefined if access doesn't expire: no field, or a template with an empty result. Throws BAD_REQUEST. */
  of(context: Pick<TaskContext, 'request' | 'user'>): Expiry | undefined
}

/** Checks constants at once. */
export function readTaskExpiry(
  fields: Readonly<Record<keyof typeof expiryFields, Template>>,
  { issues, pathOf }: Pick<TaskPlaces<typeof expiryFields>, 'issues' | 'pathOf'>,
): TaskExpiry {
  const given = (['expiresAfter', 'expiresAt'] as const)
    .map((name) => ({ name, template: fields[name] }))
    .filter(({ template }) => template.text !== '')
  for (const { name, template } of given) {
    if (isConstant(template) && forms[name].parse(template.text) === undefined) {
      issues.error(pathOf(name), `"${name}" must be ${forms[name].what}`)
    }
  }
  if (given.length > 1) issues.error(pathOf('expiresAt'), 'either "expiresAfter" or "expiresAt", not both')
  return {
    reads: given.flatMap(({ name, template }) => templateReads(template, pathOf(name))),
    of: (context) => {
      for (const { name, template } of given) {
        const text = renderTask(template, context).trim()
        if (text === '') continue
        const expiry = forms[name].parse(text)
        if (expiry !== undefined) return expiry
        throw new GatewayError('BAD_REQUEST', `${name}: "${template.text}" gave "${text.slice(0, 100)}"`, {
          publicText: `The expiry time must be ${forms[name].what}.`,
        })
      }
      return undefined
    },
  }
}

const isConstant = ({ keys, attributes }: Template): boolean => keys.length === 0 && attributes.length === 0

import { userIdName } from '#identity/mapping/mapped-value.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Path } from '#kernel/issues.ts'
import { findTemplateKey, type Template } from '#kernel/template.ts'
import type { AttributePlace } from '#sdk/flow/flow.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'
import { userValues } from '#sdk/workflow/workflow-user.ts'

/**
 * Renders `$key$` from the request map and `${attribute}` from the user, in one pass; inserted values are never
 * scanned. `safe` escapes a value for the format of the text.
 */
export function renderTask(
  template: Template,
  { request, user }: Pick<TaskContext, 'request' | 'user'>,
  safe: (value: string) => string = (value) => value,
): string {
  const escaped = (value: string | undefined) => (value === undefined ? undefined : safe(value))
  return template.render({
    key: (name) => escaped(requestText(findTemplateKey(request, name))),
    attribute: (name) => escaped(userValues(user, name)[0]),
  })
}

/** Renders the name of a group. Throws as `renderName` does. */
export const renderGroupName = (template: Template, context: Pick<TaskContext, 'request' | 'user'>): string =>
  renderName(template, context, 'group')

/**
 * Renders the name of something with its spaces, which may be part of the name. Throws UNPROCESSABLE if a value in the
 * name is missing or blank, since the rest, such as `team-`, would be another name, and WORKFLOW_FAILED if the
 * template itself is blank.
 */
export function renderName(
  template: Template,
  context: Pick<TaskContext, 'request' | 'user'>,
  of: 'group' | 'Kubernetes object' | 'target',
): string {
  const { request, user } = context
  const key = template.keys.find((name) => isBlank(requestText(findTemplateKey(request, name))))
  const attribute = template.attributes.find((name) => isBlank(userValues(user, name)[0]))
  const missing = key !== undefined ? `the parameter "${key}"` : attribute && `the attribute "${attribute}" of the user`
  if (missing !== undefined) {
    throw new GatewayError('UNPROCESSABLE', `"${template.text}" gave no ${of} name: ${missing} has no value`, {
      publicText: `The workflow names a ${of} by ${missing}, which has no value. Send a value.`,
    })
  }
  const name = renderTask(template, context)
  if (isBlank(name)) throw new GatewayError('WORKFLOW_FAILED', `"${template.text}" gave no ${of} name`)
  return name
}

const isBlank = (text: string | undefined): boolean => text === undefined || text.trim() === ''

/** The attributes that a template reads, at the position of the template. */
export function templateReads(template: Template, path: Path): AttributePlace[] {
  return template.attributes.flatMap((name) => attributeReads(name, path))
}

/** The read of an attribute, at the position of its name. The login is not one: every user has it. */
export function attributeReads(attribute: string, path: Path): AttributePlace[] {
  return attribute === '' || attribute === userIdName ? [] : [{ attribute, path }]
}

function requestText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

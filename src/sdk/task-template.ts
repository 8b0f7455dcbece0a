import { userIdName } from '#identity/mapping/mapped-value.ts'
import type { Path } from '#kernel/issues.ts'
import { findTemplateKey, type Template } from '#kernel/template.ts'
import type { AttributePlace } from '#sdk/flow.ts'
import type { TaskContext } from '#sdk/workflow-task.ts'
import { userValues } from '#sdk/workflow-user.ts'

/**
 * Renders `$key$` from the request map and `${attribute}` from the user, in one pass; what is put in is never scanned.
 * `safe` makes a value safe for what the text is going to be.
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

/** The attributes a template reads, at the place where the template stands. */
export function templateReads(template: Template, path: Path): AttributePlace[] {
  return template.attributes.filter((name) => name !== userIdName).map((attribute) => ({ attribute, path }))
}

function requestText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

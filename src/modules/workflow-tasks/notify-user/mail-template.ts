import { escapeHtml } from '#kernel/html.ts'
import type { Issues } from '#kernel/issues.ts'
import type { Template } from '#kernel/template.ts'
import type { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import { renderTask, templateReads } from '#modules/shared/tasks/task-template.ts'
import type { MailText } from '#sdk/notifier/mail.ts'
import { textOfHtml } from '#sdk/notifier/mail-body.ts'
import type { AttributePlace } from '#sdk/workflow/flow.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'

/** A mail as a task writes it, with places for values. */
export interface MailTemplate {
  /** The attributes it reads. */
  readonly reads: readonly AttributePlace[]
  /** Values are escaped where the text is HTML. A value that would break the subject into lines is left to `checkMail`. */
  render(context: Pick<TaskContext, 'request' | 'user'>): MailText
}

/** The mail in the fields of these names of a task; without a field for the content type it is plain text. */
export function readMailTemplate(
  fields: TaskFields,
  names: { readonly subject: string; readonly text: string; readonly contentType?: string },
  issues: Issues,
): MailTemplate {
  const subject = fields.template(names.subject)
  const body = fields.template(names.text)
  const isHtml = names.contentType !== undefined && readIsHtml(fields, names.contentType, issues)
  return {
    reads: [...templateReads(subject, fields.pathOf(names.subject)), ...templateReads(body, fields.pathOf(names.text))],
    render: (context) => ({ subject: renderTask(subject, context).trim(), ...renderBody(body, isHtml, context) }),
  }
}

function renderBody(body: Template, isHtml: boolean, context: Pick<TaskContext, 'request' | 'user'>) {
  if (!isHtml) return { text: renderTask(body, context) }
  const html = renderTask(body, context, escapeHtml)
  return { text: textOfHtml(html), html }
}

function readIsHtml(fields: TaskFields, name: string, issues: Issues): boolean {
  const type = fields.text(name).split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (type === '' || type === 'text/plain') return false
  if (type !== 'text/html') issues.error(fields.pathOf(name), `"${name}" must be text/plain or text/html`)
  return true
}
